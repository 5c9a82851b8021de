//! Volumes that people made, for claims that wait for their first Pod.

use kube::ResourceExt as _;

use super::{LOCAL, NO_VOLUME, TEAM, VolumeSite, ensure_contains};
use crate::error::{Result, ensure};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::PodTemplate;
use crate::objects::volumes::{
    ClaimState, ClaimTemplate, ClassTemplate, VolumeState as _, VolumeTemplate,
};

/// Local volumes on two of three nodes: Pods go where one fits, and take the smallest that does. One too many
/// is told so.
pub async fn smallest_local_volume_is_taken(site: &VolumeSite) -> Result<()> {
    let admin = site.admin();
    site.cluster.create_nodes(3, &NodeTemplate::new("4", "16Gi")).await?;
    ClassTemplate::made_by_hand().create(admin, LOCAL).await?;
    site.create_volume("too-small", &VolumeTemplate::local(LOCAL, "1Gi", "node-1")).await?;
    site.create_volume("large", &VolumeTemplate::local(LOCAL, "20Gi", "node-2")).await?;
    site.create_volume("fitting", &VolumeTemplate::local(LOCAL, "5Gi", "node-2")).await?;
    let _scheduler = site.cluster.start_scheduler().await?;

    for (claim, volume) in [("first", "fitting"), ("second", "large")] {
        ClaimTemplate::new(LOCAL, "4Gi").create(admin, TEAM, claim).await?;
        site.create_pod(claim, &PodTemplate::small().claims(&[claim])).await?;
        let bound = site.until_bound_with_claim(claim).await?;
        let found = bound.volume.name_any();
        ensure(bound.node == "node-2", || format!("{claim} is on {}", bound.node))?;
        ensure(found == volume, || format!("{claim} has {found}, not {volume}"))?;
        ensure(bound.volume.is_bound_by_controller(), || format!("{found} has no mark of ours"))?;
        ensure(bound.claim.selected_node().is_none(), || {
            format!("claim {claim} has a volume already, and asks for another to be provisioned")
        })?;
        site.ensure_prompt(claim, site.claim_bound_at(claim)?).await?;
    }

    ClaimTemplate::new(LOCAL, "4Gi").create(admin, TEAM, "one-too-many").await?;
    site.create_pod("one-too-many", &PodTemplate::small().claims(&["one-too-many"])).await?;
    let message = site.until_held("one-too-many", &[NO_VOLUME]).await?;
    let expected = "0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind. no new \
                    claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for \
                    scheduling. Volumes: claim team-a/one-too-many (class local, 4Gi): 3 volumes of the class, \
                    2 bound to other claims, 1 too small (largest free 1Gi).";
    ensure(message == expected, || format!("{message:?} is not {expected:?}"))?;
    let event = site.cluster.until_event(TEAM, "one-too-many", "FailedScheduling").await?;
    ensure_contains(event.message.as_deref().unwrap_or_default(), &[NO_VOLUME])?;
    site.ensure_unclaimed("too-small")
}

/// Two claims of one Pod: only one node has a volume for each, and each takes its own by label and mode.
pub async fn claims_of_one_pod_meet_on_one_node(site: &VolumeSite) -> Result<()> {
    let admin = site.admin();
    site.cluster.create_nodes(3, &NodeTemplate::new("4", "16Gi")).await?;
    ClassTemplate::made_by_hand().create(admin, LOCAL).await?;
    let on = |node| VolumeTemplate::local(LOCAL, "5Gi", node);
    site.create_volume("plain-1", &on("node-1")).await?;
    site.create_volume("shared-2", &on("node-2").modes(&["ReadWriteMany"])).await?;
    site.create_volume("plain-3", &on("node-3")).await?;
    site.create_volume("shared-3", &on("node-3").modes(&["ReadWriteMany"])).await?;
    let _scheduler = site.cluster.start_scheduler().await?;

    let shared = ClaimTemplate::new(LOCAL, "5Gi").modes(&["ReadWriteMany"]);
    shared.create(admin, TEAM, "shared").await?;
    ClaimTemplate::new(LOCAL, "5Gi").create(admin, TEAM, "plain").await?;
    site.create_pod("both", &PodTemplate::small().claims(&["shared", "plain"])).await?;
    site.until_bound("both").await?;
    for (claim, volume) in [("shared", "shared-3"), ("plain", "plain-3")] {
        let claim = site.until_claim(claim, "bound", ClaimState::is_bound).await?;
        ensure(claim.volume() == Some(volume), || {
            format!("claim {} has {:?}, not {volume}", claim.name_any(), claim.volume())
        })?;
    }
    site.ensure_unclaimed("plain-1")?;
    site.ensure_unclaimed("shared-2")
}

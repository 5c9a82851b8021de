//! Claims that are bound before any Pod uses them, and claims at their end.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::{FAST, LOCAL, NOT_HERE, TEAM, VolumeSite};
use crate::error::{Doing as _, Result, ensure};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::PodTemplate;
use crate::objects::volumes::{ClaimState, ClaimTemplate, ClassTemplate, VolumeTemplate};
use crate::provisioner::{self, Provisioner};

/// A Pod goes where the volume of its claim is, and says so if it cannot; a volume that is everywhere decides
/// nothing.
pub async fn bound_claim_decides_the_node(site: &VolumeSite) -> Result<()> {
    let admin = site.admin();
    site.cluster.create_nodes(3, &NodeTemplate::new("4", "16Gi")).await?;
    ClassTemplate::made_by_hand().immediate().create(admin, LOCAL).await?;
    provisioner::class().immediate().create(admin, FAST).await?;
    let _provisioner = Provisioner::start(admin);
    site.create_volume("on-3", &VolumeTemplate::local(LOCAL, "5Gi", "node-3")).await?;
    ClaimTemplate::new(LOCAL, "5Gi").create(admin, TEAM, "data").await?;
    ClaimTemplate::new(FAST, "5Gi").create(admin, TEAM, "anywhere").await?;
    for claim in ["data", "anywhere"] {
        site.until_claim(claim, "bound without a Pod", ClaimState::is_bound).await?;
    }
    let _scheduler = site.cluster.start_scheduler().await?;

    site.create_pod("follower", &PodTemplate::small().claims(&["data"])).await?;
    let bound = site.until_bound_with_claim("follower").await?;
    ensure(bound.node == "node-3", || format!("it is on {}", bound.node))?;

    site.create_pod("pinned", &PodTemplate::small().claims(&["data"]).only_on("node-1")).await?;
    let expected = "0/3 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, 2 node(s) \
                    didn't match Pod's node affinity/selector. no new claims to deallocate, preemption: 0/3 \
                    nodes are available: 3 Preemption is not helpful for scheduling. Volumes: claim team-a/data ";
    let message = site.until_held("pinned", &[NOT_HERE]).await?;
    ensure(message.starts_with(expected), || format!("{message:?} is not {expected:?}"))?;

    let anywhere = PodTemplate::small().claims(&["anywhere"]).only_on("node-2");
    site.create_pod("anywhere", &anywhere).await?;
    let bound = site.until_bound_with_claim("anywhere").await?;
    ensure(bound.node == "node-2", || format!("it is on {}", bound.node))?;
    let chosen = site.claim_versions("anywhere").iter().any(|it| it.selected_node().is_some());
    ensure(!chosen, || "a node was chosen for a claim that is bound at once".to_owned())
}

/// A claim that is being deleted takes no further Pod; one whose volume is gone takes none at all.
pub async fn claims_at_their_end_say_so(site: &VolumeSite) -> Result<()> {
    let admin = site.admin();
    site.cluster.create_nodes(2, &NodeTemplate::new("4", "16Gi")).await?;
    ClassTemplate::made_by_hand().create(admin, LOCAL).await?;
    // The smaller one cannot be taken by the other claim.
    for (name, size) in [("ending", "5Gi"), ("lost", "2Gi")] {
        site.create_volume(name, &VolumeTemplate::local(LOCAL, size, "node-1")).await?;
        ClaimTemplate::new(LOCAL, size).create(admin, TEAM, name).await?;
    }
    let _scheduler = site.cluster.start_scheduler().await?;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(admin.clone(), TEAM);
    let volumes: Api<PersistentVolume> = Api::all(admin.clone());

    let using = |claim: &str| PodTemplate::small().claims(&[claim]);
    site.create_pod("user", &using("ending")).await?;
    site.until_bound_with_claim("user").await?;
    let doing = "deleting a claim in use";
    claims.delete("ending", &DeleteParams::default()).await.doing(doing)?;
    site.create_pod("late", &using("ending")).await?;
    let words = r#"0/2 nodes are available: persistentvolumeclaim "ending" is being deleted"#;
    site.until_held("late", &[words]).await?;

    // Bound by hand to nothing: the controller finds that its volume is gone.
    let bound = json!({
        "metadata": { "annotations": { "pv.kubernetes.io/bind-completed": "yes" } },
        "spec": { "volumeName": "lost" },
    });
    let doing = "losing a claim";
    volumes.delete("lost", &DeleteParams::default()).await.doing(doing)?;
    site.until_volume_is_gone("lost").await?;
    claims.patch("lost", &PatchParams::default(), &Patch::Merge(bound)).await.doing(doing)?;
    site.until_claim("lost", "Lost", |claim| claim.phase() == "Lost").await?;
    site.create_pod("orphan", &using("lost")).await?;
    let words = r#"persistentvolumeclaim "lost" bound to non-existent persistentvolume "lost""#;
    site.until_held("orphan", &[words]).await.map(drop)
}

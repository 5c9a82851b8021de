//! Volumes that live as long as their Pod.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt as _};

use super::{FAST, TEAM, VolumeSite};
use crate::error::{Doing as _, Result, ensure};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{PodState as _, PodTemplate, delete_pod};
use crate::objects::volumes::{ClaimState as _, ClaimTemplate};
use crate::provisioner::{self, Provisioner};

/// The claim is made for the Pod, bound with it, and gone with it, and so is the volume.
pub async fn claim_of_an_ephemeral_volume_ends_with_its_pod(site: &VolumeSite) -> Result<()> {
    let admin = site.admin();
    site.cluster.create_nodes(2, &NodeTemplate::new("4", "16Gi")).await?;
    provisioner::class().create(admin, FAST).await?;
    let _provisioner = Provisioner::start(admin);
    let _scheduler = site.cluster.start_scheduler().await?;

    let template = PodTemplate::small().ephemeral("scratch", &ClaimTemplate::new(FAST, "1Gi"));
    let pod = site.create_pod("worker", &template).await?;
    let bound = site.until_bound_with_claim("worker").await?;
    let name = bound.claim.name_any();
    ensure(name == "worker-scratch", || format!("its claim is {name}"))?;
    let owners = bound.claim.owner_references();
    ensure(owners.iter().any(|owner| owner.uid == pod.uid_str()), || {
        format!("its claim belongs to {owners:?}")
    })?;
    ensure(bound.claim.selected_node() == Some(bound.node.as_str()), || {
        format!("on {}, and the claim is for {:?}", bound.node, bound.claim.selected_node())
    })?;
    site.ensure_prompt("worker", site.claim_bound_at("worker-scratch")?).await?;

    delete_pod(admin, TEAM, "worker").await?;
    site.until_claim_is_gone("worker-scratch").await?;
    site.until_volume_is_gone(&bound.volume.name_any()).await
}

/// Whose claim has the name already: the Pod is not given it, and says so; it goes on when the name is free.
pub async fn foreign_claim_is_refused(site: &VolumeSite) -> Result<()> {
    let admin = site.admin();
    site.cluster.create_nodes(2, &NodeTemplate::new("4", "16Gi")).await?;
    provisioner::class().create(admin, FAST).await?;
    let _provisioner = Provisioner::start(admin);
    let claim = ClaimTemplate::new(FAST, "1Gi");
    let foreign = claim.create(admin, TEAM, "worker-scratch").await?;
    let _scheduler = site.cluster.start_scheduler().await?;

    site.create_pod("worker", &PodTemplate::small().ephemeral("scratch", &claim)).await?;
    let words = "0/2 nodes are available: PVC team-a/worker-scratch was not created for pod team-a/worker (pod \
                 is not owner)";
    site.until_held("worker", &[words]).await?;
    let chosen =
        site.claim_versions("worker-scratch").iter().any(|it| it.selected_node().is_some());
    ensure(!chosen, || "a node was chosen for the claim of another".to_owned())?;
    // It stands in the way of nothing else.
    let other = PodTemplate::small().ephemeral("scratch", &claim);
    site.create_pod("other", &other).await?;
    site.until_bound_with_claim("other").await?;

    let claims: Api<PersistentVolumeClaim> = Api::namespaced(admin.clone(), TEAM);
    let deleted = claims.delete("worker-scratch", &DeleteParams::default()).await;
    deleted.map(drop).doing("deleting the claim of another")?;
    let bound = site.until_bound_with_claim("worker").await?;
    ensure(bound.claim.uid() != foreign.uid(), || "it has the claim of another".to_owned())
}

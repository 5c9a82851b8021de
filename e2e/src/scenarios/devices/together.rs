//! Pods with a device, a volume and a Corridor: none is taken without the others.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::Api;

use super::{CANNOT_ALLOCATE, DeviceSite, GPU, TEAM};
use crate::error::{Doing as _, Result, ensure};
use crate::objects::corridors::Corridor;
use crate::objects::devices::{DeviceClaim, Uses};
use crate::objects::pods::{GRANT, PodState as _, PodTemplate};
use crate::objects::volumes::{
    ClaimState as _, ClaimTemplate, ClassTemplate, VolumeState as _, VolumeTemplate,
};

const LOCAL: &str = "local";

/// One of the three is missing, in turn; then the Pod has all of them on the node of its volume.
pub async fn device_volume_and_corridor_are_taken_together(site: &DeviceSite) -> Result<()> {
    let admin = site.admin();
    site.create_gpus(&[1, 1]).await?;
    site.create_claim("gpu", &DeviceClaim::of(GPU, 1)).await?;
    site.create_claim("other-gpu", &DeviceClaim::of(GPU, 1)).await?;
    ClassTemplate::made_by_hand().create(admin, LOCAL).await?;
    ClaimTemplate::new(LOCAL, "5Gi").create(admin, TEAM, "data").await?;
    VolumeTemplate::local(LOCAL, "5Gi", "node-2").create(admin, "volume").await?;
    let _lease = site.cluster.hold_corrd_lease().await?;
    let corridor = Corridor::create(admin, TEAM, "c1", 100).await?;
    corridor.set_status("Ready", 40).await?;
    let _scheduler = site.cluster.start_scheduler().await?;

    let all = PodTemplate::small().devices(&[Uses::Claim("gpu")]).claims(&["data"]);
    site.create_pod_as("pod", &all.corridor(&corridor, "60")).await?;
    site.until_held("pod", &["corridor team-a/c1 (Ready): "]).await?;
    ensure_nothing_is_taken(site).await?;

    let other = PodTemplate::small().devices(&[Uses::Claim("other-gpu")]).only_on("node-2");
    site.create_pod_as("other", &other).await?;
    site.until_bound("other").await?;
    corridor.set_status("Ready", 100).await?;
    site.until_held("pod", &[CANNOT_ALLOCATE]).await?;
    ensure_nothing_is_taken(site).await?;
    let whole = PodTemplate::small().corridor(&corridor, "100");
    site.create_pod_as("whole", &whole).await?;
    site.until_bound("whole").await?;

    site.end_pod("other").await?;
    site.until_held("pod", &["corridor team-a/c1 (Ready): "]).await?;
    ensure_nothing_is_taken(site).await?;
    site.end_pod("whole").await?;
    site.until_bound_to("pod", "node-2").await?;
    site.until_bound_with("pod", &["node-2/gpu-0"]).await?;
    let (pod, claim) = (site.until_bound("pod").await?, claim(site).await?);
    let (found, expected) = (pod.annotation(GRANT), corridor.grant(60));
    ensure(found == Some(&expected), || format!("{GRANT} is {found:?}, not {expected}"))?;
    ensure(claim.is_bound(), || "its volume is not bound".to_owned())
}

async fn claim(site: &DeviceSite) -> Result<PersistentVolumeClaim> {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(site.admin().clone(), TEAM);
    claims.get("data").await.doing("reading the claim for a volume")
}

async fn ensure_nothing_is_taken(site: &DeviceSite) -> Result<()> {
    site.ensure_never_bound("pod")?;
    site.ensure_never_allocated("gpu")?;
    let chosen = claim(site).await?.selected_node().map(str::to_owned);
    ensure(chosen.is_none(), || {
        format!("{chosen:?} was chosen for the volume of a Pod that waits")
    })?;
    let volumes: Api<PersistentVolume> = Api::all(site.admin().clone());
    let volume = volumes.get("volume").await.doing("reading a volume")?;
    ensure(volume.claim().is_none(), || "the volume of a Pod that waits is claimed".to_owned())
}

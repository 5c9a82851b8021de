//! Extended resources that a DeviceClass serves take a ResourceClaim, which is not implemented.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::DeviceClass;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

use super::{TEAM, ensure_contains, until_held};
use crate::cluster::Cluster;
use crate::error::{Doing as _, Error, Result, ensure};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{PodState as _, PodTemplate};

const CLASS: &str = "fpga.example.com";
const RESOURCE: &str = "example.com/fpga";
const PLAIN: &str = "0/2 nodes are available: 2 Insufficient example.com/fpga.";

/// A Pod that waits already is told when the class comes, and again when it goes. An API server that knows no classes
/// has none to tell of.
pub async fn extended_resource_of_a_device_class_is_unsupported(cluster: &Cluster) -> Result<()> {
    cluster.ensure_namespace(TEAM).await?;
    cluster.create_nodes(2, &NodeTemplate::new("4", "16Gi")).await?;
    let _scheduler = cluster.start_scheduler().await?;
    let resources = json!({ "requests": { RESOURCE: "1" }, "limits": { RESOURCE: "1" } });
    let containers = json!([{ "name": "main", "image": "none", "resources": resources }]);
    let pod = PodTemplate::small().spec("containers", containers);
    pod.create(cluster.admin(), TEAM, "asks").await?;
    ensure_contains(&until_held(cluster, TEAM, "asks").await?, &[PLAIN])?;

    let classes: Api<DeviceClass> = Api::all(cluster.admin().clone());
    let class =
        json!({ "metadata": { "name": CLASS }, "spec": { "extendedResourceName": RESOURCE } });
    let class: DeviceClass = serde_json::from_value(class)
        .map_err(|error| Error::malformed("writing a DeviceClass", error))?;
    match classes.create(&PostParams::default(), &class).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
        created => created.map(drop).doing("creating a DeviceClass")?,
    }
    let told = told_of(cluster, true).await;
    classes.delete(CLASS, &DeleteParams::default()).await.doing("deleting the DeviceClass")?;
    let told = told?;
    ensure_contains(&told, &["UnsupportedFeature: ", RESOURCE, CLASS, PLAIN])?;
    ensure(told.starts_with("UnsupportedFeature: "), || format!("told late: {told}"))?;
    told_of(cluster, false).await.map(drop)
}

/// What the Pod is told once it says so of the class, or does no more.
async fn told_of(cluster: &Cluster, of_class: bool) -> Result<String> {
    let is_told =
        |pod: &Pod| pod.waiting_message().is_some_and(|it| it.contains(CLASS) == of_class);
    let awaited = if of_class { "told of the class" } else { "told of no class" };
    let pod = cluster.until_pod(TEAM, "asks", awaited, is_told).await?;
    Ok(pod.waiting_message().unwrap_or_default().to_owned())
}

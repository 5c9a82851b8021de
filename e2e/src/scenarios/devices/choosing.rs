//! Which devices a claim gets: alternatives, taints, pools that are not complete, expressions that fail, administrators.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::{CANNOT_ALLOCATE, DeviceSite, GPU, TEAM};
use crate::error::{Doing as _, Result, ensure};
use crate::objects::devices::{
    DeviceClaim, DeviceClaimState as _, SliceTemplate, Uses, create_device_class,
};
use crate::objects::nodes::NodeTemplate;

/// A device of a model, with other fields as given.
fn of_model(model: &str, mut fields: Value) -> Value {
    fields["attributes"] = json!({ "model": { "string": model } });
    fields
}

async fn create_class_of_model(site: &DeviceSite, model: &str) -> Result<()> {
    let expression = format!("device.attributes['{GPU}'].model == '{model}'");
    create_device_class(site.admin(), model, &expression).await
}

async fn create_node(site: &DeviceSite) -> Result<()> {
    site.cluster.create_nodes(1, &NodeTemplate::new("16", "64Gi")).await
}

/// The first choice as long as there is one, then the next.
pub async fn second_choice_is_taken_when_the_first_is_gone(site: &DeviceSite) -> Result<()> {
    create_node(site).await?;
    let slice = SliceTemplate::on_node(GPU, "node-1")
        .device("small-0", of_model("small", json!({})))
        .device("small-1", of_model("small", json!({})))
        .device("large-0", of_model("large", json!({})));
    slice.create(site.admin(), "node-1").await?;
    create_class_of_model(site, "large").await?;
    create_class_of_model(site, "small").await?;
    let either = DeviceClaim::default().first_available("gpu", &[("large", 1), ("small", 2)]);
    site.create_template("either", &either).await?;
    let _scheduler = site.cluster.start_scheduler().await?;

    site.create_pod("first", &[Uses::Template("either")]).await?;
    site.until_bound_with("first", &["node-1/large-0"]).await?;
    site.create_pod("second", &[Uses::Template("either")]).await?;
    let claim = site.until_bound_with_claim("second").await?;
    let found: Vec<_> = claim.results().iter().map(|it| (&*it.request, &*it.device)).collect();
    ensure(found == [("gpu/small", "small-0"), ("gpu/small", "small-1")], || {
        format!("the second choice is {found:?}")
    })?;
    site.create_pod("third", &[Uses::Template("either")]).await?;
    site.until_held("third", &[CANNOT_ALLOCATE]).await?;
    site.end_pod("first").await?;
    site.until_bound_with("third", &["node-1/large-0"]).await
}

/// A tainted device is for those that tolerate it, and for all once the taint is gone.
pub async fn tainted_device_waits_for_who_tolerates_it(site: &DeviceSite) -> Result<()> {
    create_node(site).await?;
    let taints = json!([{ "key": "example.com/hot", "value": "very", "effect": "NoSchedule" }]);
    let cool = SliceTemplate::on_node(GPU, "node-1").device("gpu-0", json!({}));
    let hot = SliceTemplate::on_node(GPU, "node-1").device("gpu-0", json!({ "taints": taints }));
    hot.create(site.admin(), "node-1").await?;
    create_device_class(site.admin(), GPU, "true").await?;
    site.create_template("any", &DeviceClaim::of(GPU, 1)).await?;
    let tolerations = json!([{ "key": "example.com/hot", "operator": "Exists" }]);
    let tolerant = DeviceClaim::one(GPU, json!({ "tolerations": tolerations }));
    site.create_template("tolerant", &tolerant).await?;
    let _scheduler = site.cluster.start_scheduler().await?;

    site.create_pod("plain", &[Uses::Template("any")]).await?;
    site.until_held("plain", &[CANNOT_ALLOCATE]).await?;
    site.create_pod("tolerant", &[Uses::Template("tolerant")]).await?;
    let claim = site.until_bound_with_claim("tolerant").await?;
    let copied = claim.results().iter().all(|it| it.tolerations.is_some());
    ensure(copied, || "the tolerations are not in the result".to_owned())?;
    site.ensure_never_bound("plain")?;
    site.end_pod("tolerant").await?;
    cool.replace(site.admin(), "node-1").await?;
    site.until_bound_with("plain", &["node-1/gpu-0"]).await
}

/// A pool of which a slice is missing gives nothing out until it is there.
pub async fn pool_is_used_when_it_is_complete(site: &DeviceSite) -> Result<()> {
    create_node(site).await?;
    create_device_class(site.admin(), GPU, "true").await?;
    site.create_template("one", &DeviceClaim::of(GPU, 1)).await?;
    let half = |name| SliceTemplate::on_node(GPU, "node-1").one_of(2).devices(&[name]);
    half("gpu-0").create(site.admin(), "a").await?;
    let _scheduler = site.cluster.start_scheduler().await?;
    site.create_pod("pod", &[Uses::Template("one")]).await?;
    site.until_held("pod", &[CANNOT_ALLOCATE]).await?;
    half("gpu-1").create(site.admin(), "b").await?;
    site.until_bound_with("pod", &["node-1/gpu-0"]).await
}

/// An expression that fails for a device ends the attempt; the Pod says which, and goes on when the device is mended.
pub async fn failing_expression_is_told(site: &DeviceSite) -> Result<()> {
    create_node(site).await?;
    create_device_class(site.admin(), GPU, "true").await?;
    let bare = SliceTemplate::on_node(GPU, "node-1").device("gpu-0", json!({}));
    bare.create(site.admin(), "node-1").await?;
    let expression = format!("device.attributes['{GPU}'].model == 'large'");
    let selectors = json!([{ "cel": { "expression": expression } }]);
    let picky = DeviceClaim::one(GPU, json!({ "selectors": selectors }));
    site.create_claim("picky", &picky).await?;
    let _scheduler = site.cluster.start_scheduler().await?;
    site.create_pod("pod", &[Uses::Claim("picky")]).await?;
    let words = "claim team-a/picky: selector #0: CEL runtime error: no such key: model";
    site.until_said("pod", "SchedulerError", &[words]).await?;
    site.ensure_never_bound("pod")?;
    let mended =
        SliceTemplate::on_node(GPU, "node-1").device("gpu-0", of_model("large", json!({})));
    mended.replace(site.admin(), "node-1").await?;
    site.until_bound_with("pod", &["node-1/gpu-0"]).await
}

/// Who looks at a device as an administrator takes it from nobody.
pub async fn administrator_takes_nothing(site: &DeviceSite) -> Result<()> {
    let admin_access = |value: Value| async move {
        let namespaces: Api<Namespace> = Api::all(site.admin().clone());
        let label = json!({ "resource.kubernetes.io/admin-access": value });
        let patch = Patch::Merge(json!({ "metadata": { "labels": label } }));
        let patched = namespaces.patch(TEAM, &PatchParams::default(), &patch).await;
        patched.map(drop).doing("labelling a namespace")
    };
    admin_access(json!("true")).await?;
    site.create_gpus(&[1]).await?;
    site.create_template("one", &DeviceClaim::of(GPU, 1)).await?;
    site.create_template("look", &DeviceClaim::one(GPU, json!({ "adminAccess": true }))).await?;
    let _scheduler = site.cluster.start_scheduler().await?;
    site.create_pod("early", &[Uses::Template("look")]).await?;
    site.until_bound_with("early", &["node-1/gpu-0"]).await?;
    site.create_pod("user", &[Uses::Template("one")]).await?;
    site.until_bound_with("user", &["node-1/gpu-0"]).await?;
    site.create_pod("late", &[Uses::Template("look")]).await?;
    site.until_bound_with("late", &["node-1/gpu-0"]).await?;
    site.create_pod("other", &[Uses::Template("one")]).await?;
    site.until_held("other", &[CANNOT_ALLOCATE]).await?;
    admin_access(Value::Null).await
}

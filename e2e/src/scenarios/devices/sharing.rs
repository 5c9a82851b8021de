//! Devices that several claims draw from: by capacity, and by the counters of their pool.

use serde_json::{Value, json};

use super::{CANNOT_ALLOCATE, DeviceSite, TEAM};
use crate::error::{Result, ensure};
use crate::objects::devices::{
    DeviceClaim, DeviceClaimState as _, SliceTemplate, Uses, create_class_of_driver,
    create_device_class,
};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{PodState as _, delete_pod};

const CXL: &str = "cxl.example.com";
const PARTS: &str = "parts.example.com";

/// Memory that all nodes reach is given out to the last byte, and not twice.
pub async fn capacity_of_a_shared_device_is_held(site: &DeviceSite) -> Result<()> {
    site.cluster.create_nodes(2, &NodeTemplate::new("16", "64Gi")).await?;
    create_class_of_driver(site.admin(), CXL, CXL).await?;
    let capacity = json!({ "memory": { "value": "64Gi" } });
    let device = json!({ "allowMultipleAllocations": true, "capacity": capacity });
    let pool = SliceTemplate::everywhere(CXL, "rack").device("expander", device);
    pool.create(site.admin(), "rack").await?;
    for size in ["16Gi", "24Gi"] {
        let capacity = json!({ "requests": { "memory": size } });
        let claim = DeviceClaim::one(CXL, json!({ "capacity": capacity }));
        site.create_template(&size.to_lowercase(), &claim).await?;
    }
    let _scheduler = site.cluster.start_scheduler().await?;
    let mut nodes = Vec::new();
    for (pod, size) in [("a", "24gi"), ("b", "24gi"), ("c", "16gi")] {
        site.create_pod(pod, &[Uses::Template(size)]).await?;
        let claim = site.until_bound_with_claim(pod).await?;
        nodes.extend(site.until_bound(pod).await?.node().map(str::to_owned));
        let is_shared = claim
            .results()
            .iter()
            .all(|it| it.share_id.is_some() && it.consumed_capacity.is_some());
        ensure(is_shared, || format!("claim of {pod} does not say what it consumes"))?;
        let selector = claim.allocation().and_then(|it| it.node_selector.as_ref());
        ensure(selector.is_none(), || format!("claim of {pod} is held to {selector:?}"))?;
    }
    nodes.sort();
    nodes.dedup();
    ensure(nodes.len() == 2, || format!("they are all on {nodes:?}"))?;
    site.create_pod("d", &[Uses::Template("24gi")]).await?;
    site.until_held("d", &[CANNOT_ALLOCATE]).await?;
    site.create_pod("e", &[Uses::Template("16gi")]).await?;
    site.until_held("e", &[CANNOT_ALLOCATE]).await?;
    site.end_pod("c").await?;
    site.until_bound("e").await?;
    site.ensure_never_bound("d")?;
    delete_pod(site.admin(), TEAM, "a").await?;
    site.until_bound("d").await.map(drop)
}

/// Parts of one device, and the whole of it, draw from the same counters.
pub async fn parts_and_the_whole_exclude_each_other(site: &DeviceSite) -> Result<()> {
    site.cluster.create_nodes(1, &NodeTemplate::new("16", "64Gi")).await?;
    let sets = json!([{ "name": "gpu-0", "counters": { "slices": { "value": "4" } } }]);
    let counters = SliceTemplate::on_node(PARTS, "node-1").one_of(2).set("sharedCounters", sets);
    counters.create(site.admin(), "node-1-counters").await?;
    let part = |kind: &str, slices: &str| -> Value {
        let counters = json!({ "slices": { "value": slices } });
        json!({
            "attributes": { "kind": { "string": kind } },
            "consumesCounters": [{ "counterSet": "gpu-0", "counters": counters }],
        })
    };
    let devices = SliceTemplate::on_node(PARTS, "node-1")
        .one_of(2)
        .device("whole", part("whole", "4"))
        .device("half-0", part("half", "2"))
        .device("half-1", part("half", "2"))
        .device("half-2", part("half", "2"));
    devices.create(site.admin(), "node-1-devices").await?;
    for kind in ["whole", "half"] {
        let expression = format!("device.attributes['{PARTS}'].kind == '{kind}'");
        create_device_class(site.admin(), kind, &expression).await?;
        site.create_template(kind, &DeviceClaim::of(kind, 1)).await?;
    }
    let _scheduler = site.cluster.start_scheduler().await?;

    site.create_pod("a", &[Uses::Template("half")]).await?;
    site.until_bound_with("a", &["node-1/half-0"]).await?;
    site.create_pod("whole", &[Uses::Template("whole")]).await?;
    site.until_held("whole", &[CANNOT_ALLOCATE]).await?;
    site.create_pod("b", &[Uses::Template("half")]).await?;
    site.until_bound_with("b", &["node-1/half-1"]).await?;
    // There is a third device, and nothing left to make it of.
    site.create_pod("c", &[Uses::Template("half")]).await?;
    site.until_held("c", &[CANNOT_ALLOCATE]).await?;
    delete_pod(site.admin(), TEAM, "c").await?;
    site.end_pod("a").await?;
    site.end_pod("b").await?;
    site.until_bound_with("whole", &["node-1/whole"]).await
}

//! Volumes that are made when a Pod needs them.

use std::path::Path;

use kube::ResourceExt as _;
use serde_json::json;

use super::{FAST, NO_VOLUME, TEAM, VolumeSite};
use crate::error::{Result, ensure};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::PodTemplate;
use crate::objects::volumes::{
    ClaimState as _, ClaimTemplate, ClassTemplate, HOST_PATH_PROVISIONER, VolumeState as _, ZONE,
};
use crate::provisioner::{self, Provisioner};

/// The provisioner of kube-controller-manager makes a folder for the node that the scheduler chose.
pub async fn host_paths_are_provisioned_where_the_pod_goes(site: &VolumeSite) -> Result<()> {
    site.cluster.create_nodes(2, &NodeTemplate::new("4", "16Gi")).await?;
    ClassTemplate::of(HOST_PATH_PROVISIONER).create(site.admin(), "folders").await?;
    ClaimTemplate::new("folders", "1Gi").create(site.admin(), TEAM, "data").await?;
    let _scheduler = site.cluster.start_scheduler().await?;

    site.create_pod("writer", &PodTemplate::small().claims(&["data"])).await?;
    let bound = site.until_bound_with_claim("writer").await?;
    ensure(bound.claim.selected_node() == Some(bound.node.as_str()), || {
        format!("on {}, and the claim is for {:?}", bound.node, bound.claim.selected_node())
    })?;
    let source = bound.volume.spec.as_ref().and_then(|spec| spec.host_path.as_ref());
    let is_made = source.is_some_and(|source| Path::new(&source.path).is_dir());
    ensure(is_made, || format!("there is no folder behind {source:?}"))?;
    site.ensure_prompt("writer", site.claim_bound_at("data")?).await?;

    // Bound by now: the second Pod needs nothing but a node.
    site.create_pod("reader", &PodTemplate::small().claims(&["data"])).await?;
    site.until_bound_with_claim("reader").await.map(drop)
}

/// A class that is served in one zone only sends its Pods there, and says so to those that cannot go.
pub async fn zones_of_a_class_are_kept(site: &VolumeSite) -> Result<()> {
    let admin = site.admin();
    for (zone, numbers) in [("zone-a", [1, 2]), ("zone-b", [3, 4])] {
        let node = NodeTemplate::new("4", "16Gi").label(ZONE, zone);
        site.cluster.create_nodes_numbered(numbers, &node).await?;
    }
    provisioner::class().allowed_zones(&["zone-b"]).create(admin, FAST).await?;
    let _provisioner = Provisioner::start(admin);
    let _scheduler = site.cluster.start_scheduler().await?;

    for name in ["first", "second", "elsewhere"] {
        ClaimTemplate::new(FAST, "1Gi").create(admin, TEAM, name).await?;
    }
    for name in ["first", "second"] {
        site.create_pod(name, &PodTemplate::small().claims(&[name])).await?;
        let bound = site.until_bound_with_claim(name).await?;
        ensure(["node-3", "node-4"].contains(&bound.node.as_str()), || {
            format!("{name} is on {}, outside of the zone", bound.node)
        })?;
        ensure(bound.claim.selected_node() == Some(bound.node.as_str()), || {
            format!("on {}, and the claim is for {:?}", bound.node, bound.claim.selected_node())
        })?;
        let expected = format!("pvc-{}", bound.claim.uid_str());
        let found = bound.volume.name_any();
        ensure(found == expected, || format!("{name} has {found}, not {expected}"))?;
        let in_b = [(ZONE.to_owned(), "zone-b".to_owned())].into();
        ensure(bound.volume.fits(&in_b), || format!("{found} is not in zone-b"))?;
        site.ensure_prompt(name, site.claim_bound_at(name)?).await?;
    }

    let elsewhere = PodTemplate::small().claims(&["elsewhere"]);
    let elsewhere = elsewhere.spec("nodeSelector", json!({ ZONE: "zone-a" }));
    site.create_pod("elsewhere", &elsewhere).await?;
    let parts = [
        &format!("0/4 nodes are available: 2 {NO_VOLUME}, ")[..],
        "2 node(s) didn't match Pod's node affinity/selector",
    ];
    site.until_held("elsewhere", &parts).await?;
    let chosen = site.claim_versions("elsewhere").iter().any(|it| it.selected_node().is_some());
    ensure(!chosen, || "a node was chosen for the claim of a Pod that fits nowhere".to_owned())
}

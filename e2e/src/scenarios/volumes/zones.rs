//! Volumes that name their zones by labels alone, as some old ones do.

use super::{LOCAL, TEAM, VolumeSite};
use crate::error::{Result, ensure};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::PodTemplate;
use crate::objects::volumes::{ClaimState, ClaimTemplate, ClassTemplate, VolumeTemplate, ZONE};

const WRONG_ZONE: &str = "node(s) had no available volume zone";

/// A Pod goes to a zone of its volume, of which there may be several; one that cannot says so.
pub async fn zone_labels_of_volumes_are_kept(site: &VolumeSite) -> Result<()> {
    let admin = site.admin();
    for (number, zone) in [(1, "zone-a"), (2, "zone-b"), (3, "zone-c")] {
        let node = NodeTemplate::new("4", "16Gi").label(ZONE, zone);
        site.cluster.create_nodes_numbered([number], &node).await?;
    }
    ClassTemplate::made_by_hand().immediate().create(admin, LOCAL).await?;
    for (name, zones) in [("one", "zone-b"), ("several", "zone-a__zone-c")] {
        let volume = VolumeTemplate::host_path(LOCAL, "5Gi").label(ZONE, zones);
        volume.reserved_for(TEAM, name).create(admin, name).await?;
        ClaimTemplate::new(LOCAL, "5Gi").create(admin, TEAM, name).await?;
        site.until_claim(name, "bound", ClaimState::is_bound).await?;
    }
    let _scheduler = site.cluster.start_scheduler().await?;

    let using = |claim: &str| PodTemplate::small().claims(&[claim]);
    site.create_pod("one", &using("one")).await?;
    let bound = site.until_bound_with_claim("one").await?;
    ensure(bound.node == "node-2", || format!("it is on {}", bound.node))?;
    site.create_pod("pinned", &using("one").only_on("node-1")).await?;
    let parts = [
        "0/3 nodes are available: 1 node(s) had no available volume zone, 2 node(s) didn't match Pod's",
    ];
    site.until_held("pinned", &parts).await?;

    site.create_pod("third", &using("several").only_on("node-3")).await?;
    let bound = site.until_bound_with_claim("third").await?;
    ensure(bound.node == "node-3", || format!("it is on {}", bound.node))?;
    site.create_pod("between", &using("several").only_on("node-2")).await?;
    site.until_held("between", &[WRONG_ZONE]).await.map(drop)
}

//! Reserve: what a placed Pod takes of its claims.

use std::sync::Arc;

use model::{Allocation, ClusterNode, ClusterPod, ObjectKey, ResourceClaim};

use super::filter::reason;
use super::pre_filter::device_claims;
use crate::cluster::Cluster;
use crate::devices::allocate;
use crate::plugins::Plugin;
use crate::reason::Reason;
use crate::rules::Rules;

/// A claim of a placed Pod, which becomes reserved for the Pod, and allocated if it is not yet.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ClaimToReserve {
    pub key: ObjectKey,
    pub uid: Arc<str>,
    /// What it gets. `None`: it has its devices already.
    pub allocation: Option<Arc<Allocation>>,
}

/// What the Pod takes of its claims on the Node, or why it cannot be there. Shares of devices have no IDs yet.
pub fn find_pod_devices(
    rules: &Rules,
    cluster: &Cluster,
    pod: &ClusterPod,
    node: &ClusterNode,
) -> Result<Vec<ClaimToReserve>, Vec<Reason>> {
    if !rules.filters_by(Plugin::DynamicResources) {
        return Ok(Vec::new());
    }
    let claims = device_claims(cluster, pod).map_err(|it| vec![Reason::Devices(it)])?;
    let to_allocate: Vec<&ResourceClaim> = claims.to_allocate.iter().map(|it| &**it).collect();
    let found = allocate(&cluster.allocator_input(), &node.node, &to_allocate)
        .map_err(|failure| vec![reason(failure)])?;
    let reserve = |claim: &ResourceClaim, allocation| ClaimToReserve {
        key: claim.key.clone(),
        uid: claim.uid.clone(),
        allocation,
    };
    let new = to_allocate.iter().zip(found);
    let new = new.map(|(claim, allocation)| reserve(claim, Some(Arc::new(allocation))));
    let known = claims.allocated.iter().map(|claim| reserve(claim, None));
    Ok(new.chain(known).collect())
}

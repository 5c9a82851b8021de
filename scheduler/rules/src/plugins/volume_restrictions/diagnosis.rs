//! Who holds the claims of the Pod that are for one Pod only.

use model::{AccessMode, ClusterPod, PodVolume};

use super::pre_filter::uses;
use crate::cluster::Cluster;
use crate::volume_diagnosis::{ClaimProblem, Found, claims_of};

pub(crate) fn claims_in_use(cluster: &Cluster, pod: &ClusterPod) -> Found {
    let names_itself =
        |name: &str| pod.volumes.iter().any(|it| matches!(it, PodVolume::Claim(n) if &**n == name));
    let exclusive = claims_of(cluster, pod).filter(|claim| {
        claim.access_modes.contains(AccessMode::ReadWriteOncePod) && names_itself(&claim.key.name)
    });
    let found = exclusive.filter_map(|claim| {
        let mut others = cluster.users(&claim.key).filter(|other| other.uid != pod.uid);
        let other = others.find(|other| uses(other, &claim.key))?;
        let problem = ClaimProblem::InUse { pod: other.key.clone(), node: other.node.clone() };
        Some((claim.key.clone(), problem))
    });
    found.collect()
}

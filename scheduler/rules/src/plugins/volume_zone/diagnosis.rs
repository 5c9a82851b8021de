//! Which claims are bound to volumes of other zones.

use model::{ClusterNode, ClusterPod, PodVolume};

use super::filter::has_one_of;
use super::pre_filter::conditions;
use crate::cluster::Cluster;
use crate::volume_diagnosis::{ClaimProblem, Found, claims_of};

pub(crate) fn other_zones(cluster: &Cluster, pod: &ClusterPod, node: &ClusterNode) -> Found {
    let is_looked_at =
        |name: &str| pod.volumes.iter().any(|it| matches!(it, PodVolume::Claim(n) if &**n == name));
    let claims = claims_of(cluster, pod).filter(|claim| is_looked_at(&claim.key.name));
    let found = claims.filter_map(|claim| {
        let volume = cluster.objects.volumes.get(claim.volume_name.as_ref()?)?;
        let unmet = conditions(volume)
            .find(|(key, values)| !has_one_of(&node.node.labels, key, values))
            .and_then(|(key, _)| volume.labels.get_key_value(key));
        let (label, value) = unmet?;
        let (label, value) = (label.clone(), value.clone());
        Some((claim.key.clone(), ClaimProblem::Zone { volume: volume.name.clone(), label, value }))
    });
    found.collect()
}

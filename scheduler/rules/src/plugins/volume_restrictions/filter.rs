//! Disks first, then claims.

use model::{ClusterPod, InlineDisk, PodVolume};

use super::disk_conflict::conflict;
use crate::reason::{Reason, unless};
use crate::trial::Trial;

pub(super) fn filter(trial: &Trial<'_>) -> Vec<Reason> {
    let Some(exclusive) = &trial.state.exclusive_claims else { return Vec::new() };
    if has_disk_conflict(trial) {
        return vec![Reason::DISK_CONFLICT];
    }
    let mut holders = exclusive.holders.clone();
    for (other, sign) in trial.changes.iter().map(|change| change.signed()) {
        for (claim, count) in &mut holders {
            if super::pre_filter::uses(other, claim) {
                *count += sign;
            }
        }
    }
    unless(holders.values().all(|count| *count <= 0), Reason::READ_WRITE_ONCE_POD)
}

fn has_disk_conflict(trial: &Trial<'_>) -> bool {
    let own: Vec<_> = disks(trial.pod).collect();
    if own.is_empty() {
        return false;
    }
    let pods = trial.pods();
    let mut taken = pods.iter().flat_map(|pod| disks(pod));
    taken.any(|taken| own.iter().any(|own| conflict(own, taken)))
}

fn disks(pod: &ClusterPod) -> impl Iterator<Item = &InlineDisk> {
    pod.volumes.iter().filter_map(|volume| match volume {
        PodVolume::Disk(disk) => Some(disk),
        PodVolume::Claim(_) | PodVolume::Ephemeral(_) => None,
    })
}

//! VolumeRestrictions: a disk that the Pod names itself, and a claim for one Pod only, must not be in use.

mod diagnosis;
mod disk_conflict;
mod filter;
mod pre_filter;

pub(crate) use diagnosis::claims_in_use;
pub(crate) use pre_filter::ExclusiveClaims;

use super::{Point, Registration, reasons};

pub(super) const PLUGIN: Registration = Registration {
    pre_filter: Some(pre_filter::pre_filter),
    filter: Some(filter::filter),
    reasons: REASONS,
    ..Registration::optional(&[Point::PreFilter, Point::Filter])
};

reasons! {
    VolumeRestrictions:
    DISK_CONFLICT = resolvable(
        "node(s) had no available disk",
        wakes_on: "the Pod that uses its disk leaves",
    ),
    /// On every Node, wherever the other Pod is.
    READ_WRITE_ONCE_POD = resolvable(
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
        wakes_on: "the Pod that uses its ReadWriteOncePod claim leaves",
    ),
}

//! VolumeZone: the Node is in the zones and regions that the labels of the Pod's volumes name.

mod diagnosis;
mod filter;
mod pre_filter;

pub(crate) use diagnosis::other_zones;
pub(crate) use filter::are_zones_met;
pub(crate) use pre_filter::ZoneConditions;

use super::{Point, Registration, reasons};

pub(super) const PLUGIN: Registration = Registration {
    pre_filter: Some(pre_filter::pre_filter),
    filter: Some(filter::filter),
    reasons: REASONS,
    ..Registration::optional(&[Point::PreFilter, Point::Filter])
};

reasons! {
    VolumeZone:
    VOLUME_ZONE = unresolvable(
        "node(s) had no available volume zone",
        wakes_on: "a node in the zone of its volumes",
    ),
    /// Only where VolumeBinding is switched off, as the next one.
    CLAIM_WITHOUT_CLASS = unresolvable(
        "PersistentVolumeClaim had no pv name and storageClass name",
        wakes_on: "its claim is bound",
    ),
    CLAIM_NOT_BOUND = unresolvable(
        "PersistentVolume had no name",
        wakes_on: "its claim is bound",
    ),
}

//! NodeVolumeLimits: a CSI driver attaches only so many volumes to a Node.

mod attachable;
mod attached;
mod diagnosis;
mod filter;

pub use attachable::Attachable;
pub(crate) use attachable::Attaching;
pub use attached::{attach_limits, attached_by, attached_to};
pub(crate) use diagnosis::claims_over_limit;

use super::{Point, Registration, reasons};

pub(super) const PLUGIN: Registration = Registration {
    filter: Some(filter::filter),
    reasons: REASONS,
    ..Registration::optional(&[Point::PreFilter, Point::Filter])
};

reasons! {
    NodeVolumeLimits:
    MAX_VOLUME_COUNT = resolvable(
        "node(s) exceed max volume count",
        wakes_on: "a volume is detached from a node",
    ),
}

//! NodeName: `spec.nodeName`, where it is already set.

mod filter;

use super::{Point, Registration, reasons};

pub(super) const PLUGIN: Registration = Registration {
    filter: Some(filter::filter),
    reasons: REASONS,
    ..Registration::optional(&[Point::Filter])
};

reasons! {
    NodeName:
    NODE_NAME = unresolvable(
        "node(s) didn't match the requested node name",
        wakes_on: "a node that the Pod's node selector and affinity match",
    ),
}

//! NodeUnschedulable: a cordoned Node takes only Pods that tolerate it.

mod filter;

use super::{Point, Registration, reasons};

pub(super) const PLUGIN: Registration = Registration {
    filter: Some(filter::filter),
    reasons: REASONS,
    ..Registration::optional(&[Point::Filter])
};

reasons! {
    NodeUnschedulable:
    NODE_UNSCHEDULABLE = unresolvable(
        "node(s) were unschedulable",
        wakes_on: "a cordoned node is opened",
    ),
}

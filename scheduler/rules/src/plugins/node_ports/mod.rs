//! NodePorts: ports of the Node that the Pod wants must be free.

mod filter;

use super::{Point, Registration, reasons};

pub(super) const PLUGIN: Registration = Registration {
    filter: Some(filter::filter),
    reasons: REASONS,
    ..Registration::optional(&[Point::PreFilter, Point::Filter])
};

reasons! {
    NodePorts:
    HOST_PORTS = resolvable(
        "node(s) didn't have free ports for the requested pod ports",
        wakes_on: "the Pod that holds its host port leaves",
    ),
}

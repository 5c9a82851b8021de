//! NodeDeclaredFeatures: the kubelet must know every feature that the Pod depends on.

mod filter;

use super::{Point, Registration, reasons};

pub(super) const PLUGIN: Registration = Registration {
    filter: Some(filter::filter),
    reasons: REASONS,
    ..Registration::optional(&[Point::PreFilter, Point::Filter])
};

reasons! {
    NodeDeclaredFeatures:
    DECLARED_FEATURES = unresolvable(
        "node(s) didn't match Pod's required features",
        wakes_on: "a node that declares the features it needs",
    ),
}

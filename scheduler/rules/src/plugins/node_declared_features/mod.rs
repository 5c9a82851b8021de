//! NodeDeclaredFeatures: the kubelet must know every feature that the Pod depends on.

mod filter;

use super::{Point, Registration};

pub(super) const PLUGIN: Registration = Registration {
    filter: Some(filter::filter),
    ..Registration::optional(&[Point::PreFilter, Point::Filter])
};

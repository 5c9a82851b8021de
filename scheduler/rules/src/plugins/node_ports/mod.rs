//! NodePorts: ports of the Node that the Pod wants must be free.

mod filter;

use super::{Point, Registration};

pub(super) const PLUGIN: Registration = Registration {
    filter: Some(filter::filter),
    ..Registration::optional(&[Point::PreFilter, Point::Filter])
};

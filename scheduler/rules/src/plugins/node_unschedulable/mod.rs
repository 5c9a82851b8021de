//! NodeUnschedulable: a cordoned Node takes only Pods that tolerate it.

mod filter;

use super::{Point, Registration};

pub(super) const PLUGIN: Registration =
    Registration { filter: Some(filter::filter), ..Registration::optional(&[Point::Filter]) };

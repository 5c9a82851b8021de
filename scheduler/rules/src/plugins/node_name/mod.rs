//! NodeName: `spec.nodeName`, where it is already set.

mod filter;

use super::{Point, Registration};

pub(super) const PLUGIN: Registration =
    Registration { filter: Some(filter::filter), ..Registration::optional(&[Point::Filter]) };

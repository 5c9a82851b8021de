//! ImageLocality: prefers Nodes that have the Pod's images.

mod score;

use super::{Point, Registration};

pub(super) const PLUGIN: Registration =
    Registration { score: Some(score::score), ..Registration::optional(&[Point::Score]) };

//! NodeResourcesBalancedAllocation: prefers the Node on which the Pod evens out the use of the resources.

mod score;

pub use score::balanced_score;

use super::{Point, Registration};

pub(super) const PLUGIN: Registration = Registration {
    score: Some(score::score),
    ..Registration::optional(&[Point::PreScore, Point::Score])
};

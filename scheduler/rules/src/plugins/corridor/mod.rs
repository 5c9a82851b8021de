//! Corridor: reserved bandwidth. PreFilter (is the floor met, is it the Pod's turn?) and Reserve look at reservations
//! and queues, so they are the engine's: `engine/src/corridor/`. Filter looks at Nodes, like any other.

mod filter;

use super::Point::{Filter, PreFilter, Reserve};
use super::Registration;

pub(super) const PLUGIN: Registration = Registration {
    filter: Some(filter::filter),
    ..Registration::required(&[PreFilter, Filter, Reserve])
};

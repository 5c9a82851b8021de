//! Nodes. Their wire type is in `wire/node.rs`, their translation in `translate/node.rs`.

use engine::{Event, WatchedKind};
use model::NodeName;

use super::{Gone, WatchState, WatchedResource, WireNode};
use crate::translate;

impl WatchedResource for WireNode {
    const KIND: WatchedKind = WatchedKind::Nodes;

    fn seen(self, watched: &mut WatchState) -> Option<Event> {
        Some(Event::seen(watched.shared.node(translate::node(&self))))
    }

    fn gone((key, _): Gone, _: &mut WatchState) -> Option<Event> {
        Some(Event::gone(NodeName::new(&key.name)))
    }
}

//! The room on a Node: what a kind of Pod lacks there, and who would have to go to give it.

use std::sync::{Arc, LazyLock};

use model::ClusterPod;
use rules::{Reason, Rehearsal, Victims, victims_by};

use super::asks::{Asks, Missing};
use super::kinds::Kind;
use super::rows::{Extras, Row, Slot, hold, is_extreme};
use super::standing::Basis;

impl Kind {
    /// Why the Node cannot take it; nothing when it can.
    pub fn reasons(&self, slot: Slot, basis: Basis<'_>, reasons: &mut Vec<Reason>) {
        let Basis { view, ground, of } = basis;
        if let Some(rejection) = of.rejection(slot) {
            reasons.extend_from_slice(rejection);
            return;
        }
        let Some(room) = self.room_on(slot, basis) else {
            let node = ground.rows.name(slot).and_then(|name| view.cluster.nodes.get(name));
            if let Some(node) = node {
                reasons.extend(rules::filter(view.rules, view.cluster, &self.pod, node));
            }
            return;
        };
        if self.asks.has_conflict(ground.rows.extras(slot)) {
            reasons.push(Reason::HostPorts);
            return;
        }
        match &room {
            Room::AsItIs(row, extras) => missing(&self.asks, row, extras, reasons),
            Room::BesidePromised(room) => missing(&self.asks, &room.row, &room.extras, reasons),
        }
        if reasons.is_empty() {
            reasons.extend(self.constraints.reason(slot, ground));
        }
        let lacks_features = of.group(slot).is_some_and(|it| of.groups()[it].lacks_features);
        if reasons.is_empty() && lacks_features {
            reasons.push(Reason::DeclaredFeatures);
        }
    }

    /// Whether it has room beside those who were promised the Node.
    pub fn fits_beside_promised(&self, slot: Slot, basis: Basis<'_>) -> bool {
        match self.room_on(slot, basis) {
            Some(Room::AsItIs(row, extras)) => self.asks.fits(row, extras),
            Some(Room::BesidePromised(room)) => room.fits(),
            None => {
                let Basis { view, ground, .. } = basis;
                let node = ground.rows.name(slot).and_then(|name| view.cluster.nodes.get(name));
                node.is_some_and(|node| {
                    rules::filter(view.rules, view.cluster, &self.pod, node).is_empty()
                })
            }
        }
    }

    /// What there is on the Node, with those who were promised it and whom the Pod must not push aside: they count
    /// as if they were there. `None`: they take more than room, and only the plain rules can tell.
    fn room_on<'a>(&'a self, slot: Slot, basis: Basis<'a>) -> Option<Room<'a>> {
        let Basis { view, ground, .. } = basis;
        let (row, extras) = (ground.rows.row(slot), ground.rows.extras(slot));
        if row.nominated == 0 {
            return Some(Room::AsItIs(row, extras));
        }
        let promised = view.cluster.promised(ground.rows.name(slot)?);
        let mut promised = promised.filter(|it| it.priority >= self.pod.priority).peekable();
        if promised.peek().is_none() {
            return Some(Room::AsItIs(row, extras));
        }
        if !self.constraints.are_soft()
            || !self.asks.ports.is_empty()
            || ground.rows.is_extreme(slot)
        {
            return None;
        }
        let mut room = RoomOn { asks: &self.asks, row: row.clone(), extras: extras.clone() };
        for pod in promised {
            if is_extreme(pod) || !pod.pod_affinity.anti_required.is_empty() {
                return None;
            }
            hold(&mut room.row, &mut room.extras, pod, 1);
        }
        Some(Room::BesidePromised(room))
    }

    /// Who would have to go, when room is all that the Node lacks. `None`: other rules have a say.
    pub fn victims_by_room<'a>(
        &self,
        slot: Slot,
        basis: Basis<'a>,
    ) -> Option<Result<Victims<'a>, rules::Refusal>> {
        let Basis { view, ground, of } = basis;
        let lacks_features = of.group(slot).is_none_or(|it| of.groups()[it].lacks_features);
        if !self.constraints.are_soft()
            || !self.asks.ports.is_empty()
            || lacks_features
            || ground.rows.is_extreme(slot)
        {
            return None;
        }
        let node = match self.room_on(slot, basis)? {
            Room::AsItIs(row, extras) => {
                RoomOn { asks: &self.asks, row: row.clone(), extras: extras.clone() }
            }
            Room::BesidePromised(room) => room,
        };
        let pods = view.cluster.pods_on(ground.rows.name(slot)?);
        let lesser = pods.filter(|other| other.priority < self.pod.priority);
        Some(victims_by(node, lesser, &view.cluster.budgets))
    }
}

/// What there is on a Node, as far as room goes.
enum Room<'a> {
    AsItIs(&'a Row, &'a Extras),
    BesidePromised(RoomOn<'a>),
}

/// The names of what a [`Row`] holds: every Node that lacks something names it.
static STANDARD: LazyLock<[Arc<str>; 3]> =
    LazyLock::new(|| ["cpu", "memory", "ephemeral-storage"].map(Arc::from));

fn missing(asks: &Asks, row: &Row, extras: &Extras, reasons: &mut Vec<Reason>) {
    asks.missing(row, extras, |missing| {
        reasons.push(match missing {
            Missing::Places => Reason::TooManyPods,
            Missing::Standard { index, exceeds_node } => {
                Reason::Insufficient { resource: STANDARD[index].clone(), exceeds_node }
            }
            Missing::Scalar { name, exceeds_node } => {
                Reason::Insufficient { resource: name.clone(), exceeds_node }
            }
        });
    });
}

/// A Node on which only room matters.
struct RoomOn<'a> {
    asks: &'a Asks,
    row: Row,
    extras: Extras,
}

impl<'a> Rehearsal<'a> for RoomOn<'_> {
    fn take_away(&mut self, pod: &'a ClusterPod) {
        hold(&mut self.row, &mut self.extras, pod, -1);
    }

    fn put_back(&mut self, pod: &'a ClusterPod) {
        hold(&mut self.row, &mut self.extras, pod, 1);
    }

    fn rejections(&self) -> Vec<Reason> {
        let mut reasons = Vec::new();
        missing(self.asks, &self.row, &self.extras, &mut reasons);
        reasons
    }

    fn fits(&self) -> bool {
        let mut fits = true;
        self.asks.missing(&self.row, &self.extras, |_| fits = false);
        fits
    }
}

//! What Corridors and MemoryBundles have in common: Pods reserve bandwidth of both.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use crds::Phase as WirePhase;
use crds::annotations::ATTESTATION_TICKET;
use engine::{Event, WatchedKind};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use model::{Amount, Instant, NotReady, ObjectKind, ObjectRef, ObjectUid, Phase, Reservable};
use own_writes::{OwnWrites, PlacementStatus};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{Gone, WatchState, WatchedResource, Wire, key, labels};
use crate::clock::wall_clock;
use crate::tampering::SeenUse;

/// Of a reason or a message: an Event on the Pod has room for it, and for another object's.
const NOT_READY_BYTES_MAX: usize = 320;

/// The two kinds differ only in how they are read.
pub(super) trait WireReservable: Wire {
    const OBJECT: ObjectKind;

    fn read(self, seen: Moment) -> ReservableFields;
}

/// What is read of both, in the words of the engine or as it is written.
pub(super) struct ReservableFields {
    pub metadata: ObjectMeta,
    pub floor_asked: Amount,
    pub floor_asked_max: Amount,
    pub floor_asked_next: Option<(Instant, Amount)>,
    pub node_selector: BTreeMap<String, String>,
    pub exclusive: bool,
    pub security_domain: String,
    pub phase: Option<WirePhase>,
    pub in_use: Option<i64>,
    pub conditions: Vec<WireObjectCondition>,
    pub handle: Option<String>,
    pub measured: Option<f64>,
    pub floor_confirmed: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireObjectCondition {
    #[serde(rename = "type")]
    pub condition_type: String,
    pub status: String,
    #[serde(default)]
    pub last_transition_time: Option<Timestamp>,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub message: String,
}

/// When an object is seen, on both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub wall_clock: Timestamp,
    pub engine: Instant,
}

impl<K: WireReservable> WatchedResource for K {
    const KIND: WatchedKind = WatchedKind::Objects(K::OBJECT);
    const MAY_BE_ABSENT: bool = true;

    fn seen(self, watched: &mut WatchState) -> Option<Event> {
        let read = self.read(Moment { wall_clock: wall_clock(), engine: watched.now });
        let metadata = &read.metadata;
        let uid = ObjectUid::new(metadata.uid.as_deref().unwrap_or_default());
        watched.conditions(&uid, &read.conditions);
        let object = ObjectRef { kind: K::OBJECT, key: key(metadata) };
        let created = metadata.creation_timestamp.as_ref().map(|time| time.0);
        let phase = read.phase.unwrap_or_default();
        watched.phases.sees(&object, &uid, phase);
        watched.note_readiness(K::OBJECT, &uid, created, phase == WirePhase::Ready);
        let is_overwritten = watched.guard.uses.sees(&SeenUse {
            object: &object,
            uid: &uid,
            version: metadata.resource_version.as_deref(),
            in_use: read.in_use,
            conditions: &read.conditions,
        });
        if is_overwritten {
            watched.overwritten.push(object.clone());
        }
        Some(Event::seen(reservable(object, uid, read, &watched.own_writes)))
    }

    fn gone(gone: Gone, watched: &mut WatchState) -> Option<Event> {
        watched.forget(&gone);
        Some(Event::gone(ObjectRef { kind: K::OBJECT, key: gone.0 }))
    }

    fn replaced(gone: Gone, watched: &mut WatchState) -> Option<Event> {
        watched.forget(&gone);
        None
    }
}

/// What the API server shows is believed as far as the controllers of this process have said it.
fn reservable(
    object: ObjectRef,
    uid: ObjectUid,
    read: ReservableFields,
    own_writes: &OwnWrites,
) -> Reservable {
    let shown = PlacementStatus {
        phase: read.phase,
        handle: read.handle,
        floor: read.floor_confirmed,
        measured: read.measured,
        ticket: ticket(&read.metadata),
    };
    let promised = own_writes.authentic_placement(uid.as_str(), shown);
    Reservable {
        object,
        uid,
        generation: read.metadata.generation.unwrap_or_default(),
        deleting: read.metadata.deletion_timestamp.is_some(),
        floor_asked: read.floor_asked,
        floor_asked_max: read.floor_asked_max,
        floor_asked_next: read.floor_asked_next,
        floor_confirmed: promised.floor.map(Amount::from_measured),
        measured: promised.measured.map(Amount::from_measured).unwrap_or_default(),
        phase: phase(promised.phase),
        not_ready: not_ready(&read.conditions),
        handle: promised.handle.map(Into::into),
        node_selector: labels(&read.node_selector),
        exclusive: read.exclusive,
        security_domain: read.security_domain.into(),
        ticket_hash: promised.ticket.as_deref().map(ticket_hash),
        use_told: read.in_use.is_some(),
    }
}

/// Pods carry the hash of the ticket that was good when they were bound, not the ticket itself.
fn ticket_hash(ticket: &str) -> Arc<str> {
    let digest = Sha256::digest(ticket.as_bytes());
    let hex = digest.iter().fold(String::with_capacity(2 * digest.len()), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    hex.into()
}

fn ticket(metadata: &ObjectMeta) -> Option<String> {
    metadata.annotations.as_ref()?.get(ATTESTATION_TICKET).cloned()
}

/// Quoted in the conditions of Pods that wait for it, so its length is bounded, whatever its writer.
fn not_ready(conditions: &[WireObjectCondition]) -> Option<NotReady> {
    let ready = conditions.iter().find(|it| it.condition_type == crds::condition::READY)?;
    let cut = |text: &str| Arc::from(&text[..text.floor_char_boundary(NOT_READY_BYTES_MAX)]);
    let not_ready = || NotReady { reason: cut(&ready.reason), message: cut(&ready.message) };
    (ready.status == "False" && !ready.reason.is_empty()).then(not_ready)
}

fn phase(phase: Option<WirePhase>) -> Phase {
    match phase {
        None | Some(WirePhase::Pending) => Phase::Pending,
        Some(WirePhase::Allocating) => Phase::Allocating,
        Some(WirePhase::Ready) => Phase::Ready,
        Some(WirePhase::Degraded) => Phase::Degraded,
        Some(WirePhase::Failed) => Phase::Failed,
        Some(WirePhase::Releasing) => Phase::Releasing,
        Some(WirePhase::Unknown) => Phase::Unknown,
    }
}

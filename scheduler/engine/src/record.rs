//! What the engine knows of one Pod.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use model::{ClusterPod, Instant, NodeName, ObjectRef, Pod, PodVolumeBindings};

use rules::ClaimToReserve;

use crate::ledger::Reservation;
use crate::nomination::Nomination;
use crate::queue::{Order, ParkKey};
use crate::queue_metrics::AttemptHistory;
use crate::rejection::Rejection;
use crate::reports::ReportState;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub pod: Arc<Pod>,
    pub order: Order,
    pub stage: Stage,
    /// What the ledger counts for it, while bound or being bound.
    pub reservation: Option<Reservation>,
    /// Failed attempts in a row, on node rules or errors.
    pub failures: u32,
    pub not_before: Instant,
    pub first_seen: Instant,
    /// Its nominated Node, with everything that it takes there.
    pub nominated: Option<Box<Nomination>>,
    /// The class under which it is parked. Derived: `Parked` has it as well.
    #[serde(skip)]
    pub parked_as: Option<Box<ParkKey>>,
    /// The class as which it was woken, until it has been tried.
    pub woken_as: Option<Box<ParkKey>>,
    pub rejection: Option<Box<Rejection>>,
    pub report: ReportState,
    pub attempts: AttemptHistory,
    /// An allocated ClusterPod, reused when the Pod is placed, so that placing allocates nothing.
    #[serde(skip)]
    pub prepared: Option<Arc<ClusterPod>>,
}

impl Record {
    /// Makes ready for [`Self::show`].
    pub fn prepare(&mut self) {
        self.prepared = Some(Arc::new(self.as_placed(None, None)));
    }

    /// The Pod as [`Self::in_cluster`] says it is: its entry in the cluster.
    pub fn show(&mut self) -> Option<Arc<ClusterPod>> {
        let now = self.in_cluster()?;
        Some(self.prepared_as(now))
    }

    /// The Pod as it will be once it is on this Node.
    pub fn show_on(&mut self, node: &NodeName) -> Arc<ClusterPod> {
        let now = self.as_placed(Some(node.clone()), None);
        self.prepared_as(now)
    }

    fn prepared_as(&mut self, now: ClusterPod) -> Arc<ClusterPod> {
        let Some(mut shown) = self.prepared.take() else { return Arc::new(now) };
        match Arc::get_mut(&mut shown) {
            Some(place) => *place = now,
            None => shown = Arc::new(now),
        }
        shown
    }

    /// The claims that are bound for the sake of this Pod, while it is placed.
    pub fn volumes(&self) -> Option<&PodVolumeBindings> {
        self.reservation.as_ref()?.volumes.as_deref()
    }

    /// The ResourceClaims that are reserved for the Pod, while it is placed and not bound yet.
    pub fn resource_claims(&self) -> &[ClaimToReserve] {
        self.reservation.as_ref().map_or(&[], |reservation| &reservation.claims)
    }

    /// The class under which the Pod is parked.
    pub fn park_key(&self) -> ParkKey {
        let nominated = self.nominated_node().map(|node| (node.clone(), self.pod.uid.clone()));
        ParkKey { nominated, ..ParkKey::of_pod(&self.pod) }
    }

    /// Its nominated Node.
    pub fn nominated_node(&self) -> Option<&NodeName> {
        self.nominated.as_ref().map(|nomination| &nomination.place.node)
    }

    /// The Pod as others have to reckon with it: on a Node, or nominated for one.
    pub fn in_cluster(&self) -> Option<ClusterPod> {
        let (node, nominated) = self.place()?;
        Some(self.as_placed(node.cloned(), nominated.cloned()))
    }

    fn as_placed(&self, node: Option<NodeName>, nominated_node: Option<NodeName>) -> ClusterPod {
        let Pod { key, uid, started_at_unix_s, deletion, spec, .. } = &*self.pod;
        ClusterPod {
            key: key.clone(),
            uid: uid.clone(),
            node,
            nominated_node,
            started_at_unix_s: *started_at_unix_s,
            deletion: *deletion,
            scheduling: spec.scheduling.clone(),
            reach: Vec::new(),
            volumes: spec.volumes.clone(),
            resource_claims: spec.resource_claims.clone(),
        }
    }

    /// The Node that it is on; nothing if there is none.
    pub fn node_name(&self) -> &str {
        self.reservation.as_ref().map_or("", |reservation| reservation.node.as_str())
    }

    /// The Node that it is on, or else the one that it waits for.
    fn place(&self) -> Option<(Option<&NodeName>, Option<&NodeName>)> {
        let node = self.reservation.as_ref().map(|reservation| &reservation.node);
        let nominated = self.nominated_node().filter(|_| node.is_none() && self.stage.is_waiting());
        (node.is_some() || nominated.is_some()).then_some((node, nominated))
    }

    /// Whether this is what [`Self::in_cluster`] would say, without making it.
    pub fn is_shown_as(&self, shown: Option<&ClusterPod>) -> bool {
        let (Some((node, nominated)), Some(shown)) = (self.place(), shown) else {
            return self.place().is_none() && shown.is_none();
        };
        let ClusterPod {
            key,
            uid,
            node: on,
            nominated_node,
            started_at_unix_s,
            deletion,
            scheduling,
            reach,
            volumes,
            resource_claims,
        } = shown;
        *key == self.pod.key
            && *uid == self.pod.uid
            && on.as_ref() == node
            && nominated_node.as_ref() == nominated
            && *started_at_unix_s == self.pod.started_at_unix_s
            && *deletion == self.pod.deletion
            && *scheduling == self.pod.spec.scheduling
            && reach.is_empty()
            && *volumes == self.pod.spec.volumes
            && *resource_claims == self.pod.spec.resource_claims
    }
}

/// Where the Pod is. It is in exactly one place, and only `Engine::move_to` changes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stage {
    /// Kept out of the queues, as kube-scheduler's PreEnqueue does: it has scheduling gates, or is being deleted.
    Gated,
    /// It has run to its end and uses nothing.
    Finished,
    /// In the active queue.
    Active,
    Backoff,
    /// Fits on no Node.
    Parked,
    /// In the queue of this object.
    InQueue(Box<ObjectRef>),
    /// Blocked on this object for a reason that more bandwidth does not help.
    Blocked(Box<ObjectRef>),
    /// On hold: only a change of the Pod itself helps.
    OnHold,
    /// Its turn has come, but a report on it is being written: the version on which it would be
    /// bound is about to change.
    Reporting,
    /// Its turn has come, but its namespace has as many Bindings without an outcome as it may have.
    Throttled,
    /// Placed: in its binding cycle, as kube-scheduler calls it.
    Binding(BindingStep),
    Bound,
}

/// How far the binding cycle of a placed Pod is. Everything that the Pod needs is reserved throughout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum BindingStep {
    /// What must come before the Binding is being written.
    Writing,
    /// The same, and the Pod has changed or is being deleted since: it is given up when the writes have ended.
    Abandoned,
    /// Everything is written. What others make of it is awaited, until then at the latest.
    Awaiting { until: Instant },
    /// The Binding is sent as soon as there is a slot for it.
    Ready,
    /// The Binding is on its way.
    Sent { is_unclear: bool },
}

impl BindingStep {
    pub const SENT: Self = Self::Sent { is_unclear: false };
    pub const UNCLEAR: Self = Self::Sent { is_unclear: true };

    /// Whether a call about it is under way.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Writing | Self::Abandoned | Self::Sent { .. })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Writing | Self::Abandoned => "preparing",
            Self::Awaiting { .. } => "waiting for claims",
            Self::Ready | Self::Sent { is_unclear: false } => "binding",
            Self::Sent { is_unclear: true } => "binding, outcome unclear",
        }
    }
}

impl Stage {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Gated => "gated",
            Self::Finished => "finished",
            Self::Active | Self::Reporting | Self::Throttled => "active",
            Self::Backoff => "backoff",
            Self::Parked | Self::InQueue(_) | Self::Blocked(_) | Self::OnHold => "unschedulable",
            Self::Binding(step) => step.name(),
            Self::Bound => "bound",
        }
    }

    /// Whether the Pod waits to be placed.
    pub fn is_waiting(&self) -> bool {
        !matches!(self, Self::Gated | Self::Finished | Self::Binding(_) | Self::Bound)
    }
}

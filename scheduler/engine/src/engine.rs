//! The engine's state and its calls: `handle`, `poll`, `poll_action`, `poll_report`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use model::{Amount, Instant, ObjectKind, ObjectRef, PodUid};
use rules::Cluster;

use crate::decision::{Action, Poll, Report, Unschedulable, Work};
use crate::devices::ClaimsInFlight;
use crate::event::Event;
use crate::excluded_nodes::ExcludedNodes;
use crate::foreign_nominations::ForeignNominations;
use crate::ledger::Ledger;
use crate::nomination::Nominations;
use crate::objects::Objects;
use crate::observe::WatchedKind;
use crate::placing::{CacheLimit, Placing};
use crate::preempt::Evictions;
use crate::profile::Profiles;
use crate::queue::{ActiveQueue, BackoffQueue, Bypass, NamespaceThrottle, Order, ParkKey, Parked};
use crate::queue_metrics::{QueueMetrics, QueuedBy};
use crate::records::Records;
use crate::reports::{EventQueue, Reports};
use crate::rng::Rng;
use crate::stats::Stats;
use crate::uses::Uses;
use crate::volumes::AwaitedClaims;
use crate::wake::WakeIndex;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineConfig {
    /// Breaks ties between equally good Nodes.
    pub seed: u64,
    /// Queues are shared by the Pods of all profiles, and so are their rules.
    pub bypass: Bypass,
    pub quotas: Vec<Quota>,
    pub profiles: Profiles,
    pub events: EventQueue,
    #[serde(default)]
    pub cache: CacheLimit,
}

/// A soft limit of one namespace on each object: beyond it, its Pods queue behind the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    pub namespace: Arc<str>,
    pub corridor: Option<Amount>,
    pub bundle: Option<Amount>,
    pub pods: Option<usize>,
}

/// The state of the scheduler.
#[derive(Debug)]
pub struct Engine {
    pub(crate) config: EngineConfig,
    pub(crate) now: Instant,
    pub(crate) observed: Observed,
    /// The cluster as observed, indexed so that the best Node for a Pod is found quickly.
    pub(crate) placing: Placing,
    pub(crate) ledger: Ledger,
    pub(crate) nominations: Nominations,
    pub(crate) queues: Queues,
    pub(crate) outbox: Outbox,
    pub(crate) rng: Rng,
    /// The Pod whose attempt is under way; left behind only by a panic.
    pub(crate) trying: Option<PodUid>,
    pub(crate) stats: Stats,
    pub(crate) queue_metrics: QueueMetrics,
}

/// What events have shown, and what was decided about each Pod.
#[derive(Debug)]
pub(crate) struct Observed {
    /// Nodes, and the Pods that are on them or are nominated for them.
    pub cluster: Cluster,
    pub pods: Records,
    pub objects: Objects,
    pub fresh: BTreeSet<ObjectKind>,
    pub excluded: ExcludedNodes,
    pub foreign: ForeignNominations,
    pub unsynced: BTreeSet<WatchedKind>,
    pub claims_in_flight: ClaimsInFlight,
    /// How many Pods were ever seen: the next one's place among equals.
    pub pods_seen: u64,
}

/// Where Pods wait. Those that wait for bandwidth are in the queue of their object, in [`Objects`].
#[derive(Debug)]
pub(crate) struct Queues {
    pub active: ActiveQueue,
    pub backoff: BackoffQueue,
    pub parked: Parked,
    /// The parked Pods, indexed so that those that a change may help are found quickly.
    pub wake_index: WakeIndex,
    pub throttle: NamespaceThrottle,
    /// Claims that placed Pods wait for.
    pub awaited: AwaitedClaims,
    /// Placed Pods whose Bindings can be sent.
    pub ready: BTreeMap<Order, PodUid>,
    /// Objects whose free bandwidth was kept for the head of their queue, and the count of changes
    /// at which that was true.
    pub kept: BTreeMap<ObjectRef, u64>,
    /// How often Nodes or what is used of them have changed.
    pub room_changes: u64,
    pub sweep_at: Instant,
    /// The last class that the sweep has judged, while it is not complete.
    pub sweep_after: Option<ParkKey>,
}

/// What is to be done and reported behind the Bindings.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outbox {
    pub evictions: Evictions,
    pub reports: Reports,
    pub uses: Uses,
}

impl Default for Observed {
    fn default() -> Self {
        Self {
            cluster: Cluster::default(),
            pods: Records::default(),
            objects: Objects::default(),
            fresh: BTreeSet::new(),
            excluded: ExcludedNodes::default(),
            foreign: ForeignNominations::default(),
            unsynced: WatchedKind::ALL.into_iter().collect(),
            claims_in_flight: ClaimsInFlight::new(),
            pods_seen: 0,
        }
    }
}

impl Default for Queues {
    fn default() -> Self {
        Self {
            active: ActiveQueue::default(),
            backoff: BackoffQueue::default(),
            parked: Parked::default(),
            wake_index: WakeIndex::default(),
            throttle: NamespaceThrottle::default(),
            awaited: AwaitedClaims::default(),
            ready: BTreeMap::new(),
            kept: BTreeMap::new(),
            room_changes: 0,
            sweep_at: Instant::START,
            sweep_after: None,
        }
    }
}

/// Unschedulable Pods looked at in one `poll_report`: most often there is nothing new to report, and a
/// look may cost an evaluation of all Nodes.
const UNSCHEDULABLE_LOOKS_MAX: usize = 32;

/// How often parked Pods are judged anew, in case an event was lost.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_mins(1);
/// Classes of Pods that are judged in one go, and how long nothing else has to wait for the next.
pub(crate) const SWEEP_CLASSES_MAX: usize = 64;
pub(crate) const SWEEP_PAUSE: Duration = Duration::from_millis(50);

impl Engine {
    pub fn new(config: EngineConfig) -> Self {
        Self {
            now: Instant::START,
            observed: Observed::default(),
            placing: Placing::new(config.cache),
            ledger: Ledger::default(),
            nominations: Nominations::default(),
            queues: Queues::default(),
            outbox: Outbox::default(),
            rng: Rng::new(config.seed),
            trying: None,
            stats: Stats::default(),
            queue_metrics: QueueMetrics::default(),
            config,
        }
    }

    /// Takes in one event. Call `poll` afterwards: what it changed may be decided now.
    pub fn handle(&mut self, now: Instant, event: Event) {
        self.advance(now);
        self.queue_metrics.because_of(self.queued_by(&event));
        self.observe(event);
        self.reconsider_nominations();
    }

    /// Decides the next Pod. Poll only while a bind slot is free: a decision is never kept,
    /// so none is stale, and a more important Pod never waits behind decided ones.
    pub fn poll(&mut self, now: Instant, budget: Work) -> Poll {
        self.advance(now);
        if !self.observed.unsynced.is_empty() {
            return Poll::Idle;
        }
        if budget.attempts_max > 0
            && let Some(bind) = self.next_ready()
        {
            return Poll::Bind(bind);
        }
        self.queue_metrics.because_of(QueuedBy::AttemptFailure);
        for _ in 0..budget.attempts_max {
            if self.queues.active.is_empty() {
                self.reconsider_kept();
                self.release_all_throttled();
            }
            let Some(pod) = self.queues.active.pop() else { return Poll::Idle };
            match self.schedule_one(&pod) {
                Some(Action::Bind(bind)) => return Poll::Bind(bind),
                Some(Action::Prepare(prepare)) => return Poll::Prepare(prepare),
                Some(Action::Evict(_)) | None => {}
            }
            // One whose claims an earlier attempt has written.
            if let Some(bind) = self.next_ready() {
                return Poll::Bind(bind);
            }
        }
        if self.queues.active.is_empty() { Poll::Idle } else { Poll::Yield }
    }

    /// The next action that earlier decisions ask for, beside their Bindings. Poll only while a write can be sent:
    /// whether an eviction is still wanted is asked now.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.next_eviction().map(Action::Evict)
    }

    /// Whether `poll_action` has more to look at, though it may have returned none.
    pub fn has_actions(&self) -> bool {
        !self.outbox.evictions.is_empty()
    }

    /// The next report to write, or none for now: see [`Self::has_reports`].
    pub fn poll_report(&mut self) -> Option<Report> {
        // Few, and others wait for them: a controller that releases an object, for instance. Before all Pods were listed,
        // an object cannot be reported as unused.
        if self.observed.unsynced.is_empty()
            && let Some(report) = self.use_report()
        {
            return Some(report);
        }
        // In turn, so that neither a flood of unschedulable Pods nor one of bound Pods delays the reports on the other.
        if self.outbox.reports.is_turn_of_scheduled()
            && let Some(report) = self.outbox.reports.pop_scheduled()
        {
            return Some(report);
        }
        self.walk_queues();
        for _ in 0..UNSCHEDULABLE_LOOKS_MAX {
            let Some(pod) = self.outbox.reports.pop_unschedulable() else { break };
            self.refresh_rejection(&pod);
            let is_diagnosed = self.diagnose_rejection(&pod);
            let report = self.unschedulable_report(&pod);
            if report.is_some() {
                return report;
            }
            // It may have looked at many volumes: one is enough for a turn.
            if is_diagnosed {
                break;
            }
        }
        self.outbox.reports.pop_scheduled()
    }

    /// Queues a few more Pods of queues that have changed.
    fn walk_queues(&mut self) {
        if self.outbox.reports.has_unschedulable() {
            return;
        }
        let Some((object, after)) = self.outbox.reports.queue_to_walk() else { return };
        let queue = self.observed.objects.queue(&object);
        let next = queue.map(|queue| queue.waiting_after(after.as_ref(), UNSCHEDULABLE_LOOKS_MAX));
        let next = next.unwrap_or_default();
        for (_, uid) in &next {
            if let Some(record) = self.observed.pods.get(uid) {
                self.outbox.reports.unschedulable(self.now, uid, &record.report);
            }
        }
        let to =
            next.last().filter(|_| next.len() == UNSCHEDULABLE_LOOKS_MAX).map(|(place, _)| place);
        self.outbox.reports.walked(&object, to.cloned());
    }

    /// Whether `poll_report` has more to look at, though it may have returned none.
    pub fn has_reports(&self) -> bool {
        !self.outbox.reports.is_empty()
            || (self.observed.unsynced.is_empty() && !self.outbox.uses.is_empty())
    }

    /// Whether everything has been listed once, so that Pods are placed.
    pub fn is_synced(&self) -> bool {
        self.observed.unsynced.is_empty()
    }

    pub fn stats(&self) -> Stats {
        let nodes = self.observed.cluster.nodes.len();
        Stats { nodes, reports_dropped: self.outbox.reports.dropped, ..self.stats.clone() }
    }

    /// What Pods reserve of the object now.
    pub fn reserved(&self, object: &ObjectRef) -> Option<Amount> {
        self.observed.objects.get(object).map(|object| self.ledger.reserved(&object.uid))
    }

    /// The report on an unschedulable Pod in its present state; none if there is nothing new.
    fn unschedulable_report(&mut self, uid: &PodUid) -> Option<Report> {
        let (nodes_total, excluded) =
            (self.observed.cluster.nodes.len(), self.observed.excluded.message());
        let record = self.observed.pods.get_mut(uid)?;
        if !record.stage.is_waiting() {
            return None;
        }
        let rejection = record.rejection.as_deref()?;
        let fingerprint = (rejection.fingerprint(), record.nominated_node().cloned());
        if record.report.written.as_deref() == Some(&fingerprint) {
            return None;
        }
        if record.report.in_flight {
            record.report.again = true;
            return None;
        }
        let reason = rejection.condition_reason();
        let message: Arc<str> = rejection.message_with(nodes_total, excluded.as_deref()).into();
        if record.pod.condition_message.as_ref() == Some(&message)
            && record.pod.nominated_node.as_ref() == record.nominated_node()
        {
            record.report.written = Some(Box::new(fingerprint));
            return None;
        }
        record.report.wrote(self.now, fingerprint);
        Some(Report::Unschedulable(Unschedulable {
            pod: record.pod.key.clone(),
            uid: uid.clone(),
            resource_version: record.pod.resource_version.clone(),
            reason,
            message,
            first: record.pod.condition_message.is_none(),
            nominated_node: record.nominated_node().cloned(),
        }))
    }
}

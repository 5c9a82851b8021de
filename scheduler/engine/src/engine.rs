use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Gbps, Instant, Node, NodeName, ObjectKey, PodUid};

use crate::corridors::Corridors;
use crate::decision::{Poll, Report, Work};
use crate::event::{Event, Kind};
use crate::ledger::Ledger;
use crate::line::{Bypass, WakeAside};
use crate::queue::{ActiveQueue, BackoffQueue, ParkKey, Parked};
use crate::record::{Record, Stage};
use crate::rejection::WakeOn;
use crate::reports::Reports;
use crate::rng::Rng;

#[derive(Clone, Debug, Default)]
pub struct EngineConfig {
    /// Breaks ties between equally good Nodes.
    pub seed: u64,
    pub bypass: Bypass,
}

/// The scheduler's mind: what it knows of the cluster, who waits for what, who holds what.
#[derive(Debug)]
pub struct Engine {
    pub(crate) config: EngineConfig,
    pub(crate) now: Instant,
    pub(crate) nodes: BTreeMap<NodeName, Node>,
    pub(crate) pods: BTreeMap<PodUid, Record>,
    pub(crate) uids: BTreeMap<ObjectKey, PodUid>,
    pub(crate) corridors: Corridors,
    pub(crate) backend_was_fresh: bool,
    pub(crate) ledger: Ledger,
    pub(crate) active: ActiveQueue,
    pub(crate) backoff: BackoffQueue,
    pub(crate) parked: Parked,
    pub(crate) reports: Reports,
    pub(crate) unsynced: BTreeSet<Kind>,
    pub(crate) rng: Rng,
    /// How many Pods were ever seen: the next one's place among equals.
    pub(crate) pods_seen: u64,
    /// The Pod whose attempt is under way; left behind only by a panic.
    pub(crate) trying: Option<PodUid>,
    pub(crate) stats: Stats,
}

/// Plain counters for the driver to export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub attempts_scheduled: u64,
    pub attempts_unschedulable: u64,
    pub attempts_error: u64,
    pub quarantined: u64,
    pub reports_dropped: u64,
    pub nodes: usize,
    pub active: usize,
    pub backoff: usize,
    pub parked: usize,
    pub in_line: usize,
    /// Beside a line or waiting for a change of the Pod itself.
    pub held: usize,
    pub gated: usize,
    pub binding: usize,
    pub bound: usize,
    pub finished: usize,
}

impl Engine {
    pub fn new(config: EngineConfig) -> Self {
        Self {
            now: Instant::START,
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            uids: BTreeMap::new(),
            corridors: Corridors::default(),
            backend_was_fresh: false,
            ledger: Ledger::default(),
            active: ActiveQueue::default(),
            backoff: BackoffQueue::default(),
            parked: Parked::default(),
            reports: Reports::default(),
            unsynced: Kind::ALL.into_iter().collect(),
            rng: Rng::new(config.seed),
            pods_seen: 0,
            trying: None,
            stats: Stats::default(),
            config,
        }
    }

    /// Takes in one event. Call `poll` afterwards: what it changed may be decided now.
    pub fn handle(&mut self, now: Instant, event: Event) {
        self.advance(now);
        self.observe(event);
    }

    /// Decides the next Pod. Poll only while a bind slot is free: a decision is never kept,
    /// so none is stale, and a more important Pod never waits behind decided ones.
    pub fn poll(&mut self, now: Instant, budget: Work) -> Poll {
        self.advance(now);
        if !self.unsynced.is_empty() {
            return Poll::Idle;
        }
        for _ in 0..budget.attempts_max {
            let Some(pod) = self.active.pop() else { return Poll::Idle };
            if let Some(bind) = self.attempt(&pod) {
                return Poll::Bind(bind);
            }
        }
        if self.active.len() == 0 { Poll::Idle } else { Poll::Yield }
    }

    /// The next thing to tell people, or none for now.
    pub fn poll_report(&mut self) -> Option<Report> {
        // In turn, so that neither a flood of held Pods nor one of bound Pods keeps the other
        // from being told.
        if self.reports.is_turn_of_scheduled()
            && let Some(report) = self.reports.pop_scheduled()
        {
            return Some(report);
        }
        while let Some(pod) = self.reports.pop_held() {
            let report = self.held_report(&pod);
            if report.is_some() {
                return report;
            }
        }
        self.reports.pop_scheduled()
    }

    /// When to poll again though no event has come.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let stale_at = self.corridors.fresh_until().filter(|_| self.backend_was_fresh);
        [self.backoff.next_due(), self.reports.next_due(), stale_at].into_iter().flatten().min()
    }

    pub fn stats(&self) -> Stats {
        let nodes = self.nodes.len();
        Stats { nodes, reports_dropped: self.reports.dropped, ..self.stats.clone() }
    }

    /// What Pods reserve of the Corridor now.
    pub fn reserved(&self, corridor: &ObjectKey) -> Option<Gbps> {
        self.corridors.get(corridor).map(|corridor| self.ledger.reserved(&corridor.uid))
    }

    /// Everything that happens by time alone.
    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        while let Some(pod) = self.backoff.pop_due(self.now) {
            self.move_to(&pod, Stage::Active);
        }
        self.reports.advance(self.now);
        self.note_freshness();
    }

    /// Moves a Pod from where it is to another place: the only way a Pod moves.
    pub(crate) fn move_to(&mut self, uid: &PodUid, to: Stage) {
        let Some(record) = self.pods.get_mut(uid) else { return };
        let from = std::mem::replace(&mut record.stage, to.clone());
        *self.stats.of_stage(&from) -= 1;
        *self.stats.of_stage(&to) += 1;
        let (order, spec) = (record.order, record.pod.spec.clone());
        let amount = spec.corridor.as_ref().map(model::CorridorNeed::reserves).unwrap_or_default();
        match from {
            Stage::Active => self.active.remove(uid),
            Stage::Backoff => self.backoff.remove(uid),
            Stage::Parked => self.parked.remove(&ParkKey::of(&spec), order),
            Stage::InLine(corridor) | Stage::Aside(corridor) => {
                self.corridors.with_line(&corridor, |line| line.leave(order, amount));
            }
            Stage::Resting
            | Stage::Finished
            | Stage::Held
            | Stage::Binding { .. }
            | Stage::Bound(_) => {}
        }
        match to {
            Stage::Active => self.active.push(uid.clone(), order),
            Stage::Backoff => self.backoff.push(uid.clone(), record.not_before, order),
            Stage::Parked => self.parked.insert(ParkKey::of(&spec), order, uid.clone()),
            Stage::InLine(corridor) => {
                self.corridors.with_line(&corridor, |line| line.join(order, amount, uid.clone()));
            }
            Stage::Aside(corridor) => {
                let wake = match record.rejection.as_ref().map(crate::Rejection::wake_on) {
                    Some(WakeOn::CorridorSpecChange { .. }) => WakeAside::SpecChange,
                    _ => WakeAside::SpecChangeOrReady,
                };
                self.corridors
                    .with_line(&corridor, |line| line.stand_aside(order, uid.clone(), wake));
            }
            Stage::Resting
            | Stage::Finished
            | Stage::Held
            | Stage::Binding { .. }
            | Stage::Bound(_) => {}
        }
    }

    /// The report on a held Pod as it stands now; none if there is nothing new to say.
    fn held_report(&mut self, uid: &PodUid) -> Option<Report> {
        self.refresh_rejection(uid);
        let nodes_total = self.nodes.len();
        let record = self.pods.get_mut(uid)?;
        if !record.stage.is_waiting() {
            return None;
        }
        let rejection = record.rejection.as_ref()?;
        let class = rejection.class();
        if record.report.written.as_ref() == Some(&class) {
            return None;
        }
        let message: Arc<str> = rejection.message(nodes_total).into();
        record.report.wrote(self.now, class);
        if record.pod.condition_message.as_ref() == Some(&message) {
            return None;
        }
        let first = record.pod.condition_message.is_none();
        Some(Report::Held { pod: record.pod.key.clone(), uid: uid.clone(), message, first })
    }
}

impl Stats {
    pub(crate) fn of_stage(&mut self, stage: &Stage) -> &mut usize {
        match stage {
            Stage::Resting => &mut self.gated,
            Stage::Finished => &mut self.finished,
            Stage::Active => &mut self.active,
            Stage::Backoff => &mut self.backoff,
            Stage::Parked => &mut self.parked,
            Stage::InLine(_) => &mut self.in_line,
            Stage::Aside(_) | Stage::Held => &mut self.held,
            Stage::Binding { .. } => &mut self.binding,
            Stage::Bound(_) => &mut self.bound,
        }
    }
}

//! The engine with a workload, and nothing else: events in, decisions out.

mod devices;
mod fragment;
mod translate;
mod volumes;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use e2e::{Error, Result, SCHEDULER_NAME};
use engine::{
    Action, Bind, ClusterObject, Engine, EngineConfig, Event, EvictionStep, Poll, Report, Watched,
    WatchedKind, Work,
};
use model::{
    Amount, Assignment, Instant, Labels, ObjectKind, Phase, Pod, PodSpec, PodUid, Reservable,
    SchedulingSpec,
};

use crate::workload::{NAMESPACE, Workload};
use devices::Devices;
use volumes::StorageObjects;

/// As the driver asks (`driver/run.rs`).
const WORK: Work = Work { attempts_max: 64, nodes_max: 5_000 };
/// A step of the clock when nothing can be done before it has passed: back-offs end.
const TICK: Duration = Duration::from_millis(100);
/// Back-offs last 10 s at most; a Pod that is not placed in ten of them never is.
const IDLE_TICKS_MAX: usize = 1_000;

/// The workload for [`Arena::return_floor`].
pub const FLOOR_RETURN: &str = "floor-return";

/// An engine that knows a workload's cluster, and its Pods that have not come yet.
#[derive(Debug)]
pub struct Arena {
    engine: Engine,
    now: Instant,
    /// Those that the engine knows to wait, as they were shown to it.
    pods: HashMap<PodUid, Pod>,
    to_come: Vec<Pod>,
    corridors: Vec<Reservable>,
    volumes: StorageObjects,
    /// The Pod that was bound last.
    holder: Option<PodUid>,
    measured: usize,
    longest_event: Duration,
}

/// What became of the measured Pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Placed {
    pub bound: usize,
    pub attempts: u64,
    /// Counted while the engine decided, without the events that go in and out.
    pub allocations_in_poll: u64,
    /// The longest turn in which the engine decided, and the longest in which it took in an event.
    pub longest_poll: Duration,
    pub longest_event: Duration,
    /// The 99th percentile of turns in which a Pod was decided upon, and of all time spent in the engine for each bound Pod.
    pub poll_p99: Duration,
    pub for_each: Duration,
}

impl Arena {
    pub fn new(workload: &Workload) -> Result<Self> {
        let mut numbers = 1..;
        let mut specs = Specs::default();
        let mut pod = |object| {
            let pod = translate::pod(object, numbers.next().unwrap_or(u64::MAX))?;
            Ok(specs.share(pod))
        };
        let objects = workload.all_objects();
        let corridors = objects.iter().filter(|object| object["kind"] == "Corridor");
        let to_come = workload.all_measured(SCHEDULER_NAME);
        let measured = to_come.clone();
        let mut arena = Self {
            engine: Engine::new(EngineConfig::default()),
            now: Instant::START,
            pods: HashMap::new(),
            holder: None,
            longest_event: Duration::ZERO,
            measured: to_come.len(),
            to_come: to_come.into_iter().map(&mut pod).collect::<Result<_>>()?,
            corridors: corridors.filter_map(translate::corridor).collect(),
            volumes: StorageObjects::default(),
        };
        let mut devices = Devices::default();
        let namespace = Event::seen(ClusterObject::Namespace(NAMESPACE.into(), Labels::new()));
        arena.tell(namespace);
        for object in objects {
            if let Some(events) = devices.events(&object)? {
                for event in events {
                    arena.tell(event);
                }
            } else if let Some(object) = volumes::object(object) {
                let object = object?;
                arena.volumes.note(&object);
                arena.tell(Event::seen(object));
            }
        }
        for node in workload.all_nodes() {
            let node = translate::node(node)?;
            arena.volumes.note_node(&node.node.name, &node.node.labels);
            arena.tell(Event::seen(node));
        }
        for pod in &measured {
            arena.show_claims(devices.make_claims(pod)?);
        }
        let waiting = workload.all_waiting(SCHEDULER_NAME);
        for object in workload.all_existing().into_iter().chain(waiting) {
            arena.show(pod(object)?);
        }
        arena.refresh_corridors();
        for kind in WatchedKind::ALL {
            arena.tell(Event::Synced(kind));
        }
        arena.tell(Event::TermBegan);
        Ok(arena)
    }

    /// Shows the measured Pods to the engine: they wait from now on.
    pub fn fill_line(&mut self) {
        for pod in std::mem::take(&mut self.to_come) {
            self.show(pod);
        }
    }

    /// How many Pods are measured.
    pub fn measured(&self) -> usize {
        self.measured
    }

    /// Lets the engine place so many Pods; an error if that does not happen.
    pub fn place(&mut self, wanted: usize) -> Result<Placed> {
        self.place_counting(wanted, || 0)
    }

    /// The same. `allocations` tells how many there were so far.
    pub fn place_counting(&mut self, wanted: usize, allocations: fn() -> u64) -> Result<Placed> {
        let before = self.attempts();
        self.longest_event = Duration::ZERO;
        let mut longest_poll = Duration::ZERO;
        let mut polls: Vec<Duration> = Vec::new();
        let all_began = std::time::Instant::now();
        let (mut bound, mut idle, mut allocations_in_poll) = (0, 0, 0);
        while bound < wanted {
            let allocated = allocations();
            let began = std::time::Instant::now();
            let poll = self.engine.poll(self.now, WORK);
            polls.push(began.elapsed());
            longest_poll = longest_poll.max(began.elapsed());
            allocations_in_poll += allocations() - allocated;
            match poll {
                Poll::Bind(bind) => {
                    self.confirm(&bind);
                    (bound, idle) = (bound + 1, 0);
                }
                Poll::Prepare(prepare) => {
                    for event in self.volumes.carry_out(&prepare)? {
                        self.tell(event);
                    }
                    idle = 0;
                }
                Poll::Yield => {}
                Poll::Idle if self.act_on_reports() => {}
                Poll::Idle if idle < IDLE_TICKS_MAX => {
                    self.now = self.now + TICK;
                    idle += 1;
                }
                Poll::Idle => {
                    let seen = format!("{bound} of {wanted} Pods placed and then no more");
                    return Err(Error::Violated(seen));
                }
            }
            self.act_on_reports();
        }
        // Before the figures are sorted: that is not the engine's time.
        let for_each = all_began.elapsed() / u32::try_from(wanted.max(1)).unwrap_or(u32::MAX);
        polls.sort_unstable();
        let poll_p99 = polls.get(polls.len() * 99 / 100).copied().unwrap_or_default();
        Ok(Placed {
            bound,
            attempts: self.attempts() - before,
            allocations_in_poll,
            longest_poll,
            longest_event: self.longest_event,
            poll_p99,
            for_each,
        })
    }

    /// Lets the engine try all that cannot be placed, so that they wait beside the measured Pods; returns how long each
    /// took.
    pub fn let_others_wait(&mut self) -> Duration {
        let (before, began) = (self.attempts(), std::time::Instant::now());
        while self.engine.poll(self.now, WORK) == Poll::Yield {
            self.act_on_reports();
        }
        self.act_on_reports();
        let attempts = u32::try_from(self.attempts() - before).unwrap_or(u32::MAX);
        began.elapsed() / attempts.max(1)
    }

    /// The Pod that holds the whole floor of the first Corridor ends while the Corridor is below it; then the
    /// floor returns, and one Pod of the line is to be decided. Returns how long that took: from the event to
    /// the decision.
    pub fn return_floor(&mut self) -> Result<Duration> {
        let corridor = self.corridors.first().cloned();
        let corridor = corridor.ok_or_else(|| Error::Violated("there is no Corridor".into()))?;
        let mut fallen = corridor.clone();
        (fallen.phase, fallen.measured) = (Phase::Degraded, Amount::ZERO);
        self.tell(Event::seen(fallen));
        if let Some(holder) = self.holder.take() {
            self.tell(Event::gone(holder));
        }
        while self.engine.poll(self.now, WORK) == Poll::Yield {}
        self.act_on_reports();
        self.now = self.now + TICK;
        self.tell(Event::Seen(Watched::Backend {
            kind: ObjectKind::Corridor,
            age: Duration::ZERO,
        }));
        let began = std::time::Instant::now();
        self.tell(Event::seen(corridor));
        for _ in 0..IDLE_TICKS_MAX {
            if let Poll::Bind(bind) = self.engine.poll(self.now, WORK) {
                let took = began.elapsed();
                self.confirm(&bind);
                return Ok(took);
            }
        }
        Err(Error::Violated("the floor returned and nobody was placed".into()))
    }

    fn attempts(&self) -> u64 {
        let stats = self.engine.stats();
        stats.attempts_scheduled + stats.attempts_unschedulable + stats.attempts_error
    }

    /// As the driver does: the answer to the Binding, then the watch.
    fn confirm(&mut self, bind: &Bind) {
        self.tell(Event::BindDone(bind.uid.clone()));
        self.holder = Some(bind.uid.clone());
        if let Some(mut pod) = self.pods.remove(&bind.uid) {
            let (node, grant) = (bind.node.clone(), bind.grant.clone());
            pod.assignment = Assignment::Bound { node, grant: grant.map(Box::new) };
            self.tell(Event::seen(pod));
        }
    }

    /// Every report is written at once. Returns whether there was any.
    fn act_on_reports(&mut self) -> bool {
        let mut any = false;
        while let Some(Action::Evict(eviction)) = self.engine.poll_action() {
            any = true;
            let (victim, step) = (eviction.uid, eviction.step);
            self.tell(Event::EvictionStepDone { victim: victim.clone(), step });
            if step == EvictionStep::Delete {
                self.tell(Event::gone(victim));
            }
        }
        while let Some(report) = self.engine.poll_report() {
            any = true;
            match report {
                Report::Unschedulable(it) => self.tell(Event::ReportWritten(it.uid)),
                Report::Used(_) | Report::Scheduled { .. } => {}
            }
        }
        any
    }

    /// The daemons' Leases are renewed, and every Corridor is Ready.
    fn refresh_corridors(&mut self) {
        for kind in ObjectKind::ALL {
            self.tell(Event::Seen(Watched::Backend { kind, age: Duration::ZERO }));
        }
        for corridor in self.corridors.clone() {
            self.tell(Event::seen(corridor));
        }
    }

    fn show_claims(&mut self, claims: Vec<Event>) {
        for event in claims {
            if let Event::Seen(Watched::ClusterObject(object)) = &event {
                self.volumes.note(object);
            }
            self.tell(event);
        }
    }

    fn show(&mut self, pod: Pod) {
        if pod.assignment == Assignment::Waiting {
            self.pods.insert(pod.uid.clone(), pod.clone());
        }
        self.tell(Event::seen(pod));
    }

    fn tell(&mut self, event: Event) {
        let began = std::time::Instant::now();
        self.engine.handle(self.now, event);
        self.longest_event = self.longest_event.max(began.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::workload::{Size, names};

    #[test]
    fn the_floor_returns_for_one_pod_after_the_other() {
        let size = Size { nodes: 5, pods: 10 };
        let workload = Workload::load(FLOOR_RETURN).unwrap().scaled(size);
        let mut arena = Arena::new(&workload).unwrap();
        arena.fill_line();
        arena.place(1).unwrap();
        for _ in 0..9 {
            arena.return_floor().unwrap();
        }
        assert!(arena.return_floor().is_err(), "nobody is left");
    }

    #[test]
    fn every_claim_of_a_placed_pod_has_a_volume_of_its_own() {
        for name in ["local-pv", "dynamic-wffc"] {
            let small = Workload::load(name).unwrap().scaled(Size { nodes: 10, pods: 20 });
            let mut arena = Arena::new(&small).unwrap();
            assert_eq!(arena.volumes.in_use().count(), 0, "{name}");
            arena.fill_line();
            arena.place(20).unwrap();
            let taken: HashSet<_> = arena.volumes.in_use().collect();
            assert_eq!(taken.len(), 20, "{name}");
        }
    }

    #[test]
    fn every_workload_is_placed_in_memory() {
        for name in names().unwrap() {
            let small = Workload::load(&name).unwrap().scaled(Size { nodes: 10, pods: 20 });
            let mut arena = Arena::new(&small).unwrap();
            arena.fill_line();
            // Only one Pod holds the whole floor at a time.
            let wanted = if name == FLOOR_RETURN { 1 } else { 20 };
            let placed = arena.place(wanted).map_err(|problem| format!("{name}: {problem}"));
            assert_eq!(placed.unwrap().bound, wanted, "{name}");
        }
    }
}

/// Specs that are alike are one, as the driver has it.
#[derive(Default)]
struct Specs {
    known: HashSet<Arc<PodSpec>>,
    scheduling: HashSet<Arc<SchedulingSpec>>,
}

impl Specs {
    fn share(&mut self, mut pod: Pod) -> Pod {
        if let Some(known) = self.known.get(&pod.spec) {
            pod.spec = known.clone();
            return pod;
        }
        let scheduling = self.scheduling.get(&pod.spec.scheduling).cloned();
        let scheduling = scheduling.unwrap_or_else(|| pod.spec.scheduling.clone());
        self.scheduling.insert(scheduling.clone());
        Arc::make_mut(&mut pod.spec).scheduling = scheduling;
        self.known.insert(pod.spec.clone());
        pod
    }
}

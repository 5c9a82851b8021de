//! The one loop: watch event | timer | outcome → engine → calls.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{Action, Engine, EngineConfig, Event, Poll, Report, Work};
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::Client;
use model::{ObjectRef, ObjectUid, PodUid};
use own_writes::OwnWrites;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch as watch_channel;
use tokio::time::{Instant as Deadline, sleep_until};
use tracing::{error, info};

use crate::act::{self, BindReport, EvictReport, PrepareReport};
use crate::clock::{Clock, wall_clock};
use crate::duty::Duty;
use crate::election::Tenure;
use crate::error::DriverError;
use crate::health::Health;
use crate::journal::{self, Journal, Recorded};
use crate::kinds::{AnyWatchEvent, WatchState};
use crate::metrics::{Metrics, Took};
use crate::profile_names::ProfileNames;
use crate::publish::{self, Publishing};
use crate::questions::{Asked, Questions};
use crate::reply_coalescing::{ReplyCoalescing, ReplyRate};
use crate::shadow::Shadow;
use crate::slots::{Slots, WriteId};
use crate::tracker::Trackers;
use crate::watch::{self, Reading};
use crate::wire::WirePod;

/// Watch events and outcomes on their way to the loop. A full channel slows the watches down; the API
/// server buffers for them.
const INPUTS_MAX: usize = 1024;
/// Inputs taken before decisions are made from them.
const BATCH_MAX: usize = 512;
/// Attempts before new inputs are looked at.
const ATTEMPTS_PER_POLL: u32 = 64;
/// At most this long after SIGTERM: longer than one call, shorter than the kubelet's patience.
const STOP_PATIENCE: Duration = Duration::from_secs(20);

/// An input of the loop: a watch event, or the outcome of a call.
#[derive(Debug)]
pub(crate) enum Input {
    Watch(AnyWatchEvent),
    BindUnclear(PodUid),
    PrepareEnded(Box<PrepareReport>),
    BindEnded {
        report: Box<BindReport>,
        took: Took,
    },
    /// The Pod as the write left it, if it succeeded.
    ConditionWritten {
        uid: PodUid,
        pod: Option<Box<WirePod>>,
    },
    /// The object's version as the write left it, if it succeeded.
    UseEnded {
        object: ObjectRef,
        uid: ObjectUid,
        version: Option<u64>,
    },
    EvictionEnded(EvictReport),
    WriteEnded(WriteId),
    /// Some of our Pods, listed by a new leader in this term.
    Resynced {
        term: Option<Arc<str>>,
        pods: Vec<WirePod>,
    },
    /// Some ResourceClaims, listed in the same way.
    ResyncedClaims {
        term: Option<Arc<str>>,
        claims: Vec<ResourceClaim>,
    },
    /// That was all of them, so many Pods; none if that failed.
    ResyncEnded {
        term: Option<Arc<str>>,
        pods: Option<usize>,
    },
}

impl From<AnyWatchEvent> for Input {
    fn from(event: AnyWatchEvent) -> Self {
        Self::Watch(event)
    }
}

/// Runs the engine against one API server.
pub struct Driver {
    /// For what it writes, and asks for itself.
    pub(crate) client: Client,
    reading: Reading,
    pub(crate) tenure: Tenure,
    pub(crate) duty: Duty,
    pub(crate) engine: Recorded,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) health: Arc<Health>,
    pub(crate) clock: Clock,
    pub(crate) slots: Slots,
    reply_rate: ReplyRate,
    coalescing: ReplyCoalescing,
    pub(crate) trackers: Trackers,
    pub(crate) watched: WatchState,
    pub(crate) sender: Sender<Input>,
    receiver: Receiver<Input>,
    questions: Questions,
    asked: Receiver<Asked>,
    settings: Arc<watch_channel::Sender<EngineConfig>>,
    journal: Journal,
    dumps: Receiver<journal::Dump>,
    pub(crate) stopping: bool,
    /// Another scheduler's decisions are compared, and none is made.
    pub(crate) shadow: Option<Shadow>,
    pub(crate) publishing: Publishing,
}

impl Driver {
    /// The client must not retry by itself: a Binding that is repeated unseen has no clear outcome.
    /// It must be behind a [`crate::Fence`] of the same tenure.
    pub fn new(
        client: Client,
        tenure: Tenure,
        config: EngineConfig,
        metrics: Arc<Metrics>,
        health: Arc<Health>,
    ) -> Self {
        let (sender, receiver) = channel(INPUTS_MAX);
        let profiles = ProfileNames::of(&config);
        metrics.serve(profiles.names().map(|name| &**name));
        let (questions, asked) = Questions::new(profiles.clone());
        let (journal, dumps) = Journal::new();
        Self {
            reading: Reading { client: client.clone(), on: None },
            client,
            clock: tenure.clock().clone(),
            tenure,
            duty: Duty::default(),
            settings: Arc::new(watch_channel::Sender::new(config.clone())),
            engine: Recorded::new(Engine::new(config), journal::Settings::default()),
            metrics,
            health,
            slots: Slots::default(),
            reply_rate: ReplyRate::default(),
            coalescing: ReplyCoalescing::default(),
            trackers: Trackers::default(),
            watched: WatchState::of(profiles),
            sender,
            receiver,
            questions,
            asked,
            journal,
            dumps,
            stopping: false,
            shadow: None,
            publishing: Publishing::default(),
        }
    }

    /// These backends are configured, so that their Leases are missed: `corrd`, `memqosd`, `attestd`.
    #[must_use]
    pub fn expecting(self, backends: impl IntoIterator<Item = &'static str>) -> Self {
        for backend in backends {
            self.metrics.objects.expect_backend(backend);
        }
        self
    }

    /// Writes with this client, whose connections live where the driver runs. What is listed and watched is read
    /// there, with the other one.
    #[must_use]
    pub fn writing_with(mut self, client: Client, reading_on: Option<Handle>) -> Self {
        self.client = client;
        self.reading.on = reading_on;
        self
    }

    /// Publishes there how long the threads on which it reads and writes may sleep.
    #[must_use]
    pub fn allowing(mut self, coalescing: ReplyCoalescing) -> Self {
        self.coalescing = coalescing;
        self
    }

    /// Looks at what another scheduler does instead of doing anything. Wants a [`Tenure::onlooker`].
    #[must_use]
    pub fn with_shadow(mut self, shadow: Shadow) -> Self {
        self.watched.profiles = ProfileNames::none();
        self.shadow = Some(shadow);
        self
    }

    /// The controllers run in this process too: what they recorded overrides what a status shows.
    #[must_use]
    pub fn with_own_writes(mut self, own_writes: Arc<OwnWrites>) -> Self {
        own_writes.attach_driver();
        self.watched.own_writes = own_writes;
        self
    }

    /// Questions to the engine while it runs.
    pub fn questions(&self) -> Questions {
        self.questions.clone()
    }

    /// Other settings, for the engine that runs: the last that is sent holds.
    pub fn settings(&self) -> Arc<watch_channel::Sender<EngineConfig>> {
        self.settings.clone()
    }

    /// Where the journal is written when something goes wrong.
    #[must_use]
    pub fn with_journal_folder(mut self, folder: PathBuf) -> Self {
        self.engine.keep_files_in(folder);
        self
    }

    /// The journal of calls to the engine and of what came out.
    pub fn journal(&self) -> Journal {
        self.journal.clone()
    }

    /// Runs until `stop` is ready, then lets the calls in flight end.
    pub async fn run(mut self, stop: impl Future<Output = ()> + Send) -> Result<(), DriverError> {
        let mut watches = watch::start(&self.reading, &self.sender, &self.health);
        let mut failure = None;
        let mut leadership = self.tenure.changes();
        let mut settings = self.settings.subscribe();
        let mut stop = std::pin::pin!(stop);
        let mut give_up: Option<Deadline> = None;
        let mut inputs = Vec::with_capacity(BATCH_MAX);
        let mut more_to_do = false;
        loop {
            let wake_at = self.wake_at(give_up, more_to_do);
            self.health.pulse.beat_deciding();
            tokio::select! {
                biased;
                () = &mut stop, if !self.stopping => {
                    info!(binds = self.slots.binds_in_flight(), "stopping; calls in flight end first");
                    self.stopping = true;
                    give_up = Some(Deadline::now() + STOP_PATIENCE);
                }
                ended = watches.ended(), if !self.stopping => {
                    // Without a watch it must not decide; what it has decided ends in order.
                    error!(%ended, "stopping; calls in flight end first");
                    self.health.fail(ended.to_string());
                    (self.stopping, failure) = (true, Some(ended));
                    give_up = Some(Deadline::now() + STOP_PATIENCE);
                }
                _ = leadership.changed() => {}
                Ok(()) = settings.changed() => {
                    let config = settings.borrow_and_update().clone();
                    self.handle(Event::Reconfigured(Box::new(config)));
                }
                _ = self.receiver.recv_many(&mut inputs, BATCH_MAX) => {}
                Some(asked) = self.asked.recv() => {
                    self.engine.ask(asked, Instant::now(), wall_clock());
                }
                Some(dump) = self.dumps.recv() => self.engine.dump(dump),
                () = sleep_until(wake_at) => {}
            }
            self.notice_term();
            for input in inputs.drain(..) {
                self.health.pulse.beat_deciding();
                self.take(input);
            }
            self.attend();
            if self.stopping && self.slots.is_idle() {
                return failure.map_or(Ok(()), |ended| Err(ended.into()));
            }
            if give_up.is_some_and(|at| Deadline::now() >= at) {
                let binds = self.slots.binds_in_flight();
                return Err(DriverError::StoppedWithOpenBindings {
                    binds,
                    patience: STOP_PATIENCE,
                });
            }
            more_to_do = self.decide();
            self.act_and_report();
            let has_pending = self.engine.has_actions()
                || self.engine.has_reports()
                || self.watched.guard.has_pending();
            more_to_do |= self.may_act() && self.slots.can_write() && has_pending;
            let (ended, are_many) = (self.slots.ended(), self.slots.are_saturated());
            self.coalescing.allow(self.reply_rate.seen(ended, are_many, Instant::now()));
            self.publish();
        }
    }

    fn wake_at(&self, give_up: Option<Deadline>, more_to_do: bool) -> Deadline {
        /// Without any timer, a look around now and then costs nothing.
        const IDLE: Duration = publish::SUMMARY_INTERVAL;
        if more_to_do {
            return Deadline::now();
        }
        let due = [self.engine.poll_timeout(), self.duty.due(), self.slots.due()];
        let due = due.into_iter().flatten().min();
        let due = due.map(|at| self.clock.deadline(at));
        let idle = Deadline::now() + IDLE;
        [due, give_up, self.publishing.due(), Some(idle)]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(idle)
    }

    /// Decides while Bindings can be sent. Whether there is more to decide at once.
    fn decide(&mut self) -> bool {
        self.slots.expire(self.clock.now());
        if !self.may_act() || !self.slots.can_bind() {
            // Time goes on all the same: what is due now must not wake us again and again.
            self.poll_within(0);
        }
        while self.may_act() && self.slots.can_bind() {
            let (poll, deciding) = self.poll();
            match poll {
                Poll::Bind(bind) => self.act(Action::Bind(bind), deciding),
                Poll::Prepare(prepare) => self.act(Action::Prepare(prepare), deciding),
                Poll::Yield => return true,
                Poll::Idle => break,
            }
        }
        let in_flight = i64::try_from(self.slots.binds_in_flight()).unwrap_or(i64::MAX);
        self.metrics.binds_in_flight.set(in_flight);
        false
    }

    /// With how long one decision took.
    fn poll(&mut self) -> (Poll, Duration) {
        if self.engine.is_synced() {
            self.watched.guard.pods.decides(Instant::now());
        }
        let began = Instant::now();
        let poll = self.poll_within(ATTEMPTS_PER_POLL);
        let (took, has_decided) =
            (began.elapsed(), matches!(poll, Poll::Bind(_) | Poll::Prepare(_)));
        let each = self.metrics.attempts.polled(self.engine.queue_metrics(), has_decided, took);
        (poll, each)
    }

    fn poll_within(&mut self, attempts_max: u32) -> Poll {
        self.health.pulse.beat_deciding();
        let now = self.clock.now();
        self.engine.poll(now, Work { attempts_max, nodes_max: usize::MAX })
    }

    pub(crate) fn handle(&mut self, event: Event) {
        self.engine.handle(self.clock.now(), event);
    }

    /// Begins evictions, then writes alarms, notices and reports. Bindings come before all of them.
    fn act_and_report(&mut self) {
        while self.may_act() && self.slots.can_write() {
            if let Some(action) = self.engine.poll_action() {
                self.act(action, Duration::ZERO);
                continue;
            }
            if let Some(alarm) = self.watched.guard.next_alarm() {
                self.write_alarm(&alarm.key.namespace, act::tampered(&alarm));
                continue;
            }
            if let Some(notice) = self.watched.guard.next_notice() {
                self.write_event(&notice.pod.namespace, act::without_effect(&notice));
                continue;
            }
            let Some(report) = self.engine.poll_report() else { return };
            if self.is_put_off(&report) {
                self.handle(Event::ReportPutOff(Box::new(report)));
                continue;
            }
            match report {
                Report::Scheduled { pod, uid, node } => {
                    self.write_event(&pod.namespace, act::scheduled(&pod, &uid, &node));
                }
                Report::Used(used) => self.write_object_use(used),
                Report::Unschedulable(it) => self.write_unschedulable(it),
            }
        }
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("slots", &self.slots).finish_non_exhaustive()
    }
}

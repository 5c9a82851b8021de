//! Actions: what changes the cluster. All of them begin here; each call runs by itself, and its outcome comes back as an
//! input.

use std::time::{Duration, Instant};

use engine::{Action, Bind, Event, Eviction, Prepare};
use tracing::info;

use crate::act::{self, EvictOutcome, EvictReport};
use crate::metrics::Took;
use crate::run::{Driver, Input};
use crate::settling::Outcome;
use crate::write::count_write;

impl Driver {
    /// Whether this replica may decide and write right now, by the clock.
    pub(crate) fn may_act(&self) -> bool {
        let holds = self.duty.term().is_some_and(|term| self.tenure.holds(term));
        !self.stopping && self.duty.decides() && holds
    }

    /// Begins what the engine has decided. Every action begins here, and its outcome comes back as an input.
    pub(crate) fn act(&mut self, action: Action, deciding: Duration) {
        match action {
            Action::Prepare(prepare) => self.prepare(prepare),
            Action::Bind(bind) => self.send_bind(bind, deciding),
            Action::Evict(eviction) if self.is_eviction_put_off(&eviction) => {
                self.handle(Event::EvictionPutOff { victim: eviction.uid });
            }
            Action::Evict(eviction) => self.evict(eviction),
        }
    }

    /// Its writes take a slot together, as a Binding does. What they lead to is awaited without one.
    fn prepare(&mut self, prepare: Prepare) {
        self.slots.begin_bind(&prepare.uid, &prepare.pod.namespace, self.clock.now());
        let (client, sender) = (self.client.clone(), self.sender.clone());
        let metrics = self.metrics.clone();
        let leader = self.term_name();
        tokio::spawn(async move {
            let report = act::prepare(&client, prepare, leader.as_deref()).await;
            count_write(&metrics, "volume", report.outcome == Outcome::Done);
            let _ = sender.send(Input::PrepareEnded(Box::new(report))).await;
        });
    }

    fn send_bind(&mut self, bind: Bind, deciding: Duration) {
        self.slots.begin_bind(&bind.uid, &bind.pod.namespace, self.clock.now());
        self.watched.guard.pods.binds(&bind);
        let (client, sender) = (self.client.clone(), self.sender.clone());
        let metrics = self.metrics.clone();
        let leader = self.term_name();
        tokio::spawn(async move {
            let began = Instant::now();
            let report = act::bind(client, bind, leader, &sender).await;
            let took = Took { deciding, binding: began.elapsed() };
            metrics.bind_seconds.observe(took.binding.as_secs_f64());
            metrics.binds.with_label_values(&[report.label()]).inc();
            let _ = sender.send(Input::BindEnded { report: Box::new(report), took }).await;
        });
    }

    /// Whether evictions in the victim's namespace are overdue, so that one more would only wait, too.
    fn is_eviction_put_off(&self, eviction: &Eviction) -> bool {
        let is_put_off = self.slots.are_evictions_overdue(&eviction.victim.namespace);
        if is_put_off {
            self.metrics.writes.with_label_values(&["eviction", "put_off"]).inc();
        }
        is_put_off
    }

    /// The outcome first, the Event about it behind.
    fn evict(&mut self, eviction: Eviction) {
        let id = self.slots.begin_eviction(&eviction.victim.namespace, self.clock.now());
        info!(
            victim = %eviction.victim, node = %eviction.node, preemptor = %eviction.preemptor,
            step = ?eviction.step, "preempting"
        );
        let (client, sender) = (self.client.clone(), self.sender.clone());
        let metrics = self.metrics.clone();
        tokio::spawn(async move {
            let outcome = act::evict(&client, &eviction).await;
            count_write(&metrics, "eviction", outcome != EvictOutcome::Failed);
            let report = EvictReport::new(&eviction, outcome);
            let _ = sender.send(Input::EvictionEnded(report)).await;
            if outcome == EvictOutcome::Deleted {
                let event = act::preempted(&eviction);
                let written = act::write_event(&client, &event).await;
                count_write(&metrics, "event", written.is_ok());
            }
            let _ = sender.send(Input::WriteEnded(id)).await;
        });
    }
}

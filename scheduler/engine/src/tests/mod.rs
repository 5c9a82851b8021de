//! The engine as its driver sees it: events in, decisions out.

mod bandwidth_queue;
mod binds;
mod blocked;
mod bundles;
mod classes;
mod counts;
mod device_classes;
mod devices;
mod evictions;
mod kubelet_rejections;
mod nodes;
mod nominations;
mod placing;
mod preemption;
mod profiles;
mod properties;
mod reasons;
mod reports;
mod snapshots;
mod state;
mod transaction;
mod uses;
mod volumes;
mod wakeups;
mod when;

use std::time::Duration;

use model::{Instant, ObjectKey, ObjectKind, Pod, PodUid};

use crate::testkit::{CorridorBuilder, NodeBuilder, key};
use crate::{
    Action, Bind, BindRefusal, BindRefusalCause, Engine, EngineConfig, Event, Poll, Prepare,
    Report, Watched, WatchedKind, Work,
};

/// As a journal has it.
pub(super) fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap()
}

/// The API server refuses the Pod's Binding.
pub(super) fn refused(pod: PodUid) -> Event {
    let refusal = BindRefusal { cause: BindRefusalCause::ApiServer, message: "no".into() };
    Event::BindRefused { pod, refusal }
}

/// An engine with a clock that tests turn by hand.
pub(super) struct World {
    pub engine: Engine,
    pub now: Instant,
    /// Brought back from a snapshot: it is called as the engine is, and must answer the same.
    pub twin: Option<Engine>,
    /// What was to be written before Bindings, in order.
    pub prepares: Vec<Prepare>,
}

impl World {
    /// Synced, corrd fresh, `nodes` Nodes of 4 CPUs.
    pub fn with_nodes(nodes: usize) -> Self {
        let engine = Engine::new(EngineConfig::default());
        let now = Instant::START + Duration::from_secs(1000);
        let mut world = Self { engine, now, twin: None, prepares: Vec::new() };
        for number in 0..nodes {
            world.handle(Event::seen(NodeBuilder::new(&format!("n{number}")).build()));
        }
        for kind in ObjectKind::ALL {
            world.handle(Event::Seen(Watched::Backend { kind, age: Duration::ZERO }));
        }
        for kind in WatchedKind::ALL {
            world.handle(Event::Synced(kind));
        }
        world
    }

    pub fn handle(&mut self, event: Event) {
        if let Some(twin) = &mut self.twin {
            twin.handle(self.now, event.clone());
        }
        self.engine.handle(self.now, event);
    }

    pub fn poll(&mut self, work: Work) -> Poll {
        let poll = self.engine.poll(self.now, work);
        if let Some(twin) = &mut self.twin {
            assert_eq!(json(&twin.poll(self.now, work)), json(&poll));
        }
        poll
    }

    pub fn poll_action(&mut self) -> Option<Action> {
        let action = self.engine.poll_action();
        if let Some(twin) = &mut self.twin {
            assert_eq!(json(&twin.poll_action()), json(&action));
        }
        action
    }

    pub fn poll_report(&mut self) -> Option<Report> {
        let report = self.engine.poll_report();
        if let Some(twin) = &mut self.twin {
            assert_eq!(json(&twin.poll_report()), json(&report));
        }
        report
    }

    pub fn see(&mut self, pod: Pod) {
        self.handle(Event::seen(pod));
    }

    pub fn corridor(&mut self, corridor: CorridorBuilder) {
        self.handle(Event::seen(corridor.build()));
    }

    pub fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    /// Everything that can be decided now, without any outcome coming back.
    pub fn decide(&mut self) -> Vec<Bind> {
        let mut binds = Vec::new();
        loop {
            match self.poll(Work { attempts_max: 3, nodes_max: usize::MAX }) {
                Poll::Bind(bind) => binds.push(bind),
                Poll::Prepare(prepare) => self.prepares.push(prepare),
                Poll::Yield => {}
                Poll::Idle => return binds,
            }
        }
    }

    /// Decides, and lets every Binding succeed. The names of the bound Pods, in order.
    pub fn bind_all(&mut self) -> Vec<String> {
        let mut bound = Vec::new();
        loop {
            let binds = self.decide();
            if binds.is_empty() {
                return bound;
            }
            for bind in binds {
                bound.push(bind.pod.name.to_string());
                self.handle(Event::BindDone(bind.uid));
            }
        }
    }

    pub fn end(&mut self, pod: &str) {
        self.handle(Event::gone(PodUid::from(format!("uid-{pod}").as_str())));
    }

    pub fn message(&self, pod: &str) -> String {
        self.engine.explain(&key(pod)).map(|explanation| explanation.message).unwrap_or_default()
    }

    pub fn held_reports(&mut self) -> Vec<(ObjectKey, String)> {
        let mut held = Vec::new();
        while let Some(report) = self.poll_report() {
            if let Report::Unschedulable(report) = report {
                self.handle(Event::ReportWritten(report.uid));
                held.push((report.pod, report.message.to_string()));
            }
        }
        held
    }
}

//! A small cluster in which nothing stays as it is.

use std::time::Duration;

use engine::{
    Action, Bind, BindRefusal, BindRefusalCause, Engine, EngineConfig, Event, EvictionStep, Poll,
    Report, Watched, WatchedKind, Work,
};
use model::{Instant, NodeName, ObjectKind, Pod, PodUid};
use serde_json::json;
use tokio::sync::oneshot;

use crate::journal::Recorded;
use crate::journal::keeper::Settings;
use crate::kinds::corridor::WireCorridor;
use crate::kinds::{WatchState, seen};
use crate::profile_names::ProfileNames;
use crate::translate;

/// What a tenant may have put into a Pod, and others should not read.
pub const SECRET: &str = "hunter2";

pub const WORK: Work = Work { attempts_max: 4, nodes_max: usize::MAX };

pub struct Chaos {
    pub engine: Recorded,
    pub now: Instant,
    random: u64,
    open: Vec<Bind>,
    pub bound: u64,
}

impl Chaos {
    pub fn new(settings: Settings) -> Self {
        Self::seeded(settings, 7)
    }

    pub fn seeded(settings: Settings, random: u64) -> Self {
        let engine = Recorded::new(Engine::new(EngineConfig::default()), settings);
        let now = Instant::START + Duration::from_secs(100);
        let mut chaos = Self { engine, now, random, open: Vec::new(), bound: 0 };
        for number in 0..4 {
            chaos.node(number);
        }
        for kind in WatchedKind::ALL {
            chaos.handle(Event::Synced(kind));
        }
        chaos.backends_speak();
        chaos
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % bound
    }

    pub fn handle(&mut self, event: Event) {
        self.engine.handle(self.now, event);
    }

    pub fn backends_speak(&mut self) {
        for kind in ObjectKind::ALL {
            self.handle(Event::Seen(Watched::Backend { kind, age: Duration::ZERO }));
        }
    }

    pub fn node(&mut self, number: u64) {
        let cpu = 4 + self.below(30);
        let object = json!({
            "metadata": { "name": format!("n{number}"), "labels": { "zone": format!("z{}", number % 2) } },
            "status": { "allocatable": { "cpu": cpu.to_string(), "memory": "16Gi", "pods": "40" } },
        });
        self.handle(Event::seen(translate::node(&serde_json::from_value(object).unwrap())));
    }

    fn corridor(&mut self) {
        let achievable = [0, 40, 100, 140][usize::try_from(self.below(4)).unwrap()];
        let phase = if achievable < 100 { "Degraded" } else { "Ready" };
        let object = json!({
            "metadata": { "namespace": "a", "name": "c1", "uid": "corridor-uid", "generation": 1 },
            "spec": { "lanes": 4, "lambdaNm": [1550], "minGbps": 100 },
            "status": { "phase": phase, "achievableGbps": achievable, "corridorId": "cor-1" },
        });
        let event = seen::<WireCorridor>(&mut WatchState::default(), object);
        self.handle(event.unwrap());
    }

    pub fn pod(&mut self, number: u64) -> Pod {
        let mut annotations = json!({ "example.com/token": SECRET });
        if self.below(3) == 0 {
            annotations["corridoros.io/corridorRef"] = json!("a/c1");
            annotations["corridoros.io/corridorGbps"] = json!((1 + self.below(60)).to_string());
        }
        let cpu = format!("{}m", 100 * (1 + self.below(15)));
        let object = json!({
            "metadata": {
                "namespace": "a", "name": format!("p{number}"), "uid": format!("uid-{number}"),
                "resourceVersion": self.below(1_000_000).to_string(), "annotations": annotations,
                "labels": { "app": format!("app-{}", number % 3) },
            },
            "spec": {
                "schedulerName": crds::SCHEDULER_NAME, "priority": self.below(3) * 10,
                "containers": [{
                    "image": "i", "resources": { "requests": { "cpu": cpu } },
                    "env": [{ "name": "PASSWORD", "value": SECRET }], "args": [SECRET],
                }],
            },
        });
        translate::pod(&serde_json::from_value(object).unwrap(), &ProfileNames::default()).unwrap()
    }

    pub fn step(&mut self, number: u64) {
        let older = PodUid::new(&format!("uid-{}", self.below(number + 1)));
        match self.below(10) {
            0..5 => {
                let pod = self.pod(number);
                self.handle(Event::seen(pod));
            }
            5 => self.handle(Event::gone(older)),
            6 => self.corridor(),
            7 => {
                let number = self.below(5);
                if self.below(3) == 0 {
                    self.handle(Event::gone(NodeName::from(format!("n{number}").as_str())));
                } else {
                    self.node(number);
                }
            }
            8 => self.backends_speak(),
            _ => self.now = self.now + Duration::from_millis(self.below(9_000)),
        }
        self.now = self.now + Duration::from_millis(self.below(20));
        self.decide();
        self.tell();
    }

    pub fn decide(&mut self) {
        if let Poll::Bind(bind) = self.engine.poll(self.now, WORK) {
            self.bound += 1;
            self.open.push(bind);
        }
        while self.open.len() > 3 {
            let bind = self.open.remove(0);
            let refusal =
                BindRefusal { cause: BindRefusalCause::Conflict, message: "conflict".to_owned() };
            match self.below(5) {
                0 => self.handle(Event::BindRefused { pod: bind.uid, refusal }),
                1 => {
                    self.handle(Event::BindUnclear(bind.uid.clone()));
                    self.handle(Event::BindDone(bind.uid));
                }
                _ => self.handle(Event::BindDone(bind.uid)),
            }
        }
    }

    fn tell(&mut self) {
        while let Some(Action::Evict(eviction)) = self.engine.poll_action() {
            let (victim, step) = (eviction.uid, eviction.step);
            self.handle(Event::EvictionStepDone { victim: victim.clone(), step });
            if step == EvictionStep::Delete {
                self.handle(Event::gone(victim));
            }
        }
        while let Some(report) = self.engine.poll_report() {
            match report {
                Report::Unschedulable(it) if self.below(4) == 0 => {
                    self.handle(Event::ReportLost(it.uid));
                }
                Report::Unschedulable(it) => self.handle(Event::ReportWritten(it.uid)),
                Report::Used(_) | Report::Scheduled { .. } => {}
            }
        }
        while self.engine.poll_reserved().is_some() {}
    }

    pub fn journal(&mut self) -> Vec<u8> {
        let (to, dump) = oneshot::channel();
        self.engine.dump(to);
        dump.blocking_recv().unwrap().concat()
    }
}

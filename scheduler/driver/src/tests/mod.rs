//! The driver's pure half with the engine behind it: API objects in, answers out.

mod bad_input;
mod explain;

use std::time::Duration;

use engine::{Engine, EngineConfig, Event, Poll, Report, Watched, WatchedKind, Work};
use model::{Instant, ObjectKind};
use serde_json::Value;

use crate::kinds::corridor::WireCorridor;
use crate::kinds::memory_bundle::WireBundle;
use crate::kinds::{WatchState, WatchedResource};
use crate::profile_names::ProfileNames;
use crate::translate;

const WORK: Work = Work { attempts_max: 64, nodes_max: usize::MAX };

/// An engine that knows what it is given as JSON.
struct World {
    engine: Engine,
    now: Instant,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            engine: Engine::new(EngineConfig::default()),
            now: Instant::START + Duration::from_secs(1000),
        };
        for kind in WatchedKind::ALL {
            world.handle(Event::Synced(kind));
        }
        world
    }

    fn handle(&mut self, event: Event) {
        self.engine.handle(self.now, event);
    }

    fn backends_speak(&mut self) {
        for kind in ObjectKind::ALL {
            self.handle(Event::Seen(Watched::Backend { kind, age: Duration::ZERO }));
        }
    }

    fn node(&mut self, object: &Value) -> serde_json::Result<()> {
        self.handle(Event::seen(translate::node(&serde_json::from_value(object.clone())?)));
        Ok(())
    }

    fn pod(&mut self, object: &Value) -> serde_json::Result<()> {
        if let Some(pod) =
            translate::pod(&serde_json::from_value(object.clone())?, &ProfileNames::default())
        {
            self.handle(Event::seen(pod));
        }
        Ok(())
    }

    fn corridor(&mut self, object: &Value) -> serde_json::Result<()> {
        self.see::<WireCorridor>(object)
    }

    fn bundle(&mut self, object: &Value) -> serde_json::Result<()> {
        self.see::<WireBundle>(object)
    }

    fn see<K: WatchedResource>(&mut self, object: &Value) -> serde_json::Result<()> {
        let wire: K = serde_json::from_value(object.clone())?;
        if let Some(event) = wire.seen(&mut WatchState::default()) {
            self.handle(event);
        }
        Ok(())
    }

    /// Decides all there is to decide; every Binding succeeds. The names of those bound.
    fn bind_all(&mut self) -> Vec<String> {
        let mut bound = Vec::new();
        loop {
            match self.engine.poll(self.now, WORK) {
                Poll::Bind(bind) => {
                    bound.push(bind.pod.to_string());
                    self.handle(Event::BindDone(bind.uid));
                }
                Poll::Prepare(prepare) => self.handle(Event::PrepareDone(prepare.uid)),
                Poll::Yield => {}
                Poll::Idle => return bound,
            }
            while let Some(report) = self.engine.poll_report() {
                if let Report::Unschedulable(it) = report {
                    self.handle(Event::ReportWritten(it.uid));
                }
            }
        }
    }
}

//! What comes in, made into the engine's events.

use engine::{Event, Kind};
use model::{NodeName, PodUid};
use tracing::info;

use crate::act::BindReport;
use crate::binding::Outcome;
use crate::clock::age;
use crate::health::KindState;
use crate::run::{Driver, Input};
use crate::translate;
use crate::watch::{News, WatchNews};
use crate::wire::{WireCorridor, WireLease, WireNode, WirePod};

impl Driver {
    pub(crate) fn take(&mut self, input: Input) {
        match input {
            Input::Watch(news) => self.take_news(news),
            Input::BindUnclear(uid) => self.handle(Event::BindUnknown(uid)),
            Input::BindEnded(report) => self.take_bind(*report),
            Input::ConditionWritten { uid, pod } => self.take_condition(&uid, pod),
            Input::WriteEnded => self.slots.end_write(),
        }
    }

    fn take_bind(&mut self, report: BindReport) {
        let BindReport { bind, outcome, read } = report;
        self.slots.end_bind(&bind.uid);
        if let Some(pod) = read {
            self.take_reply(*pod);
        }
        match outcome {
            Outcome::Bound => self.handle(Event::BindDone(bind.uid)),
            Outcome::Gone => self.handle(Event::PodGone(bind.uid)),
            Outcome::Refused { message } => {
                info!(pod = %bind.pod, node = %bind.node, %message, "Binding refused; trying again");
                let refusal = engine::Refusal { message };
                self.handle(Event::BindRefused { pod: bind.uid, refusal });
            }
        }
    }

    fn take_condition(&mut self, uid: &PodUid, pod: Option<Box<WirePod>>) {
        let written = pod.and_then(|pod| self.take_reply(*pod));
        if written.is_none() {
            self.handle(Event::ReportLost(uid.clone()));
        }
        if let Some(bind) = self.slots.condition_written(uid, written.as_ref()) {
            self.send_bind(bind);
        }
    }

    /// A Pod from the reply to a call of ours.
    fn take_reply(&mut self, wire: WirePod) -> Option<model::Pod> {
        let news = self.pods.replied(&wire.metadata);
        let pod = translate::pod(wire)?;
        if news {
            self.handle(Event::PodSeen(pod.clone()));
        }
        Some(pod)
    }

    fn take_news(&mut self, news: WatchNews) {
        match news {
            WatchNews::Pod(news) => self.take_pod(news),
            WatchNews::Node(news) => self.take_node(news),
            WatchNews::Corridor(news) => self.take_corridor(news),
            WatchNews::Lease(news) => self.take_lease(news),
        }
    }

    fn take_pod(&mut self, news: News<WirePod>) {
        match news {
            News::ListBegins => self.pods.begin_list(),
            News::Seen(wire) => {
                self.count(Kind::Pods);
                let (is_news, replaced) = self.pods.seen(&wire.metadata);
                if let Some((_, version)) = replaced {
                    self.handle(Event::PodGone(version.uid.as_str().into()));
                }
                if let Some(pod) = translate::pod(*wire).filter(|_| is_news) {
                    self.handle(Event::PodSeen(pod));
                }
            }
            News::Gone(wire) => {
                if let Some((_, version)) = self.pods.gone(&wire.metadata) {
                    self.handle(Event::PodGone(version.uid.as_str().into()));
                }
            }
            News::ListEnds => {
                for (_, version) in self.pods.end_list() {
                    self.handle(Event::PodGone(version.uid.as_str().into()));
                }
                self.synced(Kind::Pods);
            }
            News::Absent | News::Failed => self.count_failure(Kind::Pods),
        }
    }

    fn take_node(&mut self, news: News<WireNode>) {
        match news {
            News::ListBegins => self.nodes.begin_list(),
            News::Seen(wire) => {
                self.count(Kind::Nodes);
                if self.nodes.seen(&wire.metadata).0 {
                    self.handle(Event::NodeSeen(translate::node(*wire)));
                }
            }
            News::Gone(wire) => {
                if let Some((key, _)) = self.nodes.gone(&wire.metadata) {
                    self.handle(Event::NodeGone(NodeName::new(&key.name)));
                }
            }
            News::ListEnds => {
                for (key, _) in self.nodes.end_list() {
                    self.handle(Event::NodeGone(NodeName::new(&key.name)));
                }
                self.synced(Kind::Nodes);
            }
            News::Absent | News::Failed => self.count_failure(Kind::Nodes),
        }
    }

    fn take_corridor(&mut self, news: News<WireCorridor>) {
        match news {
            News::ListBegins => self.corridors.begin_list(),
            News::Seen(wire) => {
                self.count(Kind::Corridors);
                if self.corridors.seen(&wire.metadata).0 {
                    self.handle(Event::CorridorSeen(translate::corridor(*wire)));
                }
            }
            News::Gone(wire) => {
                if let Some((key, _)) = self.corridors.gone(&wire.metadata) {
                    self.handle(Event::CorridorGone(key));
                }
            }
            News::ListEnds => {
                for (key, _) in self.corridors.end_list() {
                    self.handle(Event::CorridorGone(key));
                }
                self.synced(Kind::Corridors);
            }
            News::Absent => {
                self.health.set(Kind::Corridors, KindState::Absent);
                self.handle(Event::Absent(Kind::Corridors));
            }
            News::Failed => self.count_failure(Kind::Corridors),
        }
    }

    fn take_lease(&mut self, news: News<WireLease>) {
        match news {
            News::ListBegins => self.leases.begin_list(),
            News::Seen(wire) => {
                self.count(Kind::Backends);
                if self.leases.seen(&wire.metadata).0 {
                    self.handle(match wire.spec.renew_time {
                        Some(renewed) => Event::BackendSeen { age: age(renewed.0) },
                        None => Event::BackendGone,
                    });
                }
            }
            News::Gone(wire) => {
                if self.leases.gone(&wire.metadata).is_some() {
                    self.handle(Event::BackendGone);
                }
            }
            News::ListEnds => {
                if !self.leases.end_list().is_empty() {
                    self.handle(Event::BackendGone);
                }
                self.synced(Kind::Backends);
            }
            News::Absent | News::Failed => self.count_failure(Kind::Backends),
        }
    }

    fn synced(&mut self, kind: Kind) {
        self.health.set(kind, KindState::Synced);
        self.handle(Event::Synced(kind));
    }

    fn count(&self, kind: Kind) {
        self.metrics.watch_events.with_label_values(&[crate::health::name(kind)]).inc();
    }

    fn count_failure(&self, kind: Kind) {
        self.metrics.watch_errors.with_label_values(&[crate::health::name(kind)]).inc();
    }
}

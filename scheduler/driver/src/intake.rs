//! What comes in, made into the engine's events.

use engine::{Bind, Event, Kind};
use kube::Resource;
use model::{NodeName, ObjectKind, ObjectRef, ObjectUid, PodUid, Reservable};
use tracing::info;

use crate::act::{BindReport, Condition};
use crate::binding::Outcome;
use crate::clock::age;
use crate::health::KindState;
use crate::run::{Driver, Input};
use crate::tracker::{self, Tracker};
use crate::translate;
use crate::watch::{News, WatchNews};
use crate::wire::{WireLease, WireNamespace, WireNode, WireObjectCondition, WirePod, WirePolicy};

impl Driver {
    pub(crate) fn take(&mut self, input: Input) {
        match input {
            Input::Watch(news) => self.take_news(news),
            Input::BindUnclear(uid) => self.handle(Event::BindUnknown(uid)),
            Input::BindEnded(report) => self.take_bind(*report),
            Input::ConditionWritten { uid, pod } => self.take_condition(uid, pod),
            Input::UseLost(object) => self.handle(Event::UseLost(object)),
            Input::WriteEnded => self.slots.end_write(),
        }
    }

    /// Kinds that are not followed yet: nothing waits for them.
    pub(crate) fn skip_unwatched(&mut self) {
        let owners = model::OwnerKind::ALL.map(Kind::Owners);
        for kind in [Kind::Budgets, Kind::Services].into_iter().chain(owners) {
            self.absent(kind);
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
            // That it is gone, the watch tells.
            Outcome::Gone => self.refused(bind, "the Pod is gone".to_owned()),
            Outcome::Refused { message } => self.refused(bind, message),
        }
    }

    fn refused(&mut self, bind: Bind, message: String) {
        info!(pod = %bind.pod, node = %bind.node, %message, "Binding refused; trying again");
        let refusal = engine::Refusal { message };
        self.handle(Event::BindRefused { pod: bind.uid, refusal });
    }

    /// The Pod as the write left it comes first, so that it is bound on that version.
    fn take_condition(&mut self, uid: PodUid, pod: Option<Box<WirePod>>) {
        let written = pod.and_then(|pod| self.take_reply(*pod));
        self.handle(match written {
            Some(_) => Event::ReportWritten(uid),
            None => Event::ReportLost(uid),
        });
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
            WatchNews::Corridor(news) => {
                self.note_conditions(&news, |it| &it.status.conditions);
                self.take_object(ObjectKind::Corridor, news, translate::corridor);
            }
            WatchNews::Bundle(news) => {
                self.note_conditions(&news, |it| &it.status.conditions);
                self.take_object(ObjectKind::MemoryBundle, news, translate::bundle);
            }
            WatchNews::Policy(news) => self.take_policy(news),
            WatchNews::Namespace(news) => self.take_namespace(news),
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
                    self.handle(Event::NodeSeen(model::ClusterNode::new(translate::node(*wire))));
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

    fn take_object<K: Resource>(
        &mut self,
        kind: ObjectKind,
        news: News<K>,
        translate: fn(K) -> Reservable,
    ) {
        let gone = |(key, _)| Event::ObjectGone(ObjectRef { kind, key });
        match news {
            News::ListBegins => self.objects(kind).begin_list(),
            News::Seen(wire) => {
                self.count(Kind::Objects(kind));
                if self.objects(kind).seen(wire.meta()).0 {
                    self.handle(Event::ObjectSeen(translate(*wire)));
                }
            }
            News::Gone(wire) => {
                if let Some(event) = self.objects(kind).gone(wire.meta()).map(gone) {
                    self.handle(event);
                }
            }
            News::ListEnds => {
                for event in self.objects(kind).end_list().into_iter().map(gone) {
                    self.handle(event);
                }
                self.synced(Kind::Objects(kind));
            }
            News::Absent => self.absent(Kind::Objects(kind)),
            News::Failed => self.count_failure(Kind::Objects(kind)),
        }
    }

    /// Since when an object's conditions of ours say what they say: a restarted scheduler goes on
    /// from there. They go with the object.
    fn note_conditions<K: Resource>(
        &mut self,
        news: &News<K>,
        conditions: fn(&K) -> &Vec<WireObjectCondition>,
    ) {
        let uid = |wire: &K| wire.meta().uid.as_deref().map(ObjectUid::new);
        match news {
            News::Seen(wire) => {
                let Some(uid) = uid(wire) else { return };
                let known = conditions(wire).iter().filter_map(condition).collect();
                self.use_conditions.entry(uid).or_insert(known);
            }
            News::Gone(wire) => {
                if let Some(uid) = uid(wire) {
                    self.use_conditions.remove(&uid);
                }
            }
            _ => {}
        }
    }

    fn objects(&mut self, kind: ObjectKind) -> &mut Tracker {
        match kind {
            ObjectKind::Corridor => &mut self.corridors,
            ObjectKind::MemoryBundle => &mut self.bundles,
        }
    }

    fn take_policy(&mut self, news: News<WirePolicy>) {
        match news {
            News::ListBegins => self.policies.begin_list(),
            News::Seen(wire) => {
                self.count(Kind::Policies);
                if self.policies.seen(&wire.metadata).0 {
                    let allowed_tenants = translate::allowed_tenants(&wire);
                    let policy = tracker::key(&wire.metadata);
                    self.handle(Event::PolicySeen { policy, allowed_tenants });
                }
            }
            News::Gone(wire) => {
                if let Some((key, _)) = self.policies.gone(&wire.metadata) {
                    self.handle(Event::PolicyGone(key));
                }
            }
            News::ListEnds => {
                for (key, _) in self.policies.end_list() {
                    self.handle(Event::PolicyGone(key));
                }
                self.synced(Kind::Policies);
            }
            News::Absent => self.absent(Kind::Policies),
            News::Failed => self.count_failure(Kind::Policies),
        }
    }

    fn take_namespace(&mut self, news: News<WireNamespace>) {
        match news {
            News::ListBegins => self.namespaces.begin_list(),
            News::Seen(wire) => {
                self.count(Kind::Namespaces);
                if self.namespaces.seen(&wire.metadata).0 {
                    let name = tracker::key(&wire.metadata).name;
                    let labels = translate::labels(wire.metadata.labels.unwrap_or_default());
                    self.handle(Event::NamespaceSeen { name, labels });
                }
            }
            News::Gone(wire) => {
                if let Some((key, _)) = self.namespaces.gone(&wire.metadata) {
                    self.handle(Event::NamespaceGone(key.name));
                }
            }
            News::ListEnds => {
                for (key, _) in self.namespaces.end_list() {
                    self.handle(Event::NamespaceGone(key.name));
                }
                self.synced(Kind::Namespaces);
            }
            News::Absent | News::Failed => self.count_failure(Kind::Namespaces),
        }
    }

    fn take_lease(&mut self, news: News<WireLease>) {
        match news {
            News::ListBegins => self.leases.begin_list(),
            News::Seen(wire) => {
                let Some(kind) = backend(wire.metadata.name.as_deref()) else { return };
                self.count(Kind::Backends);
                let is_news = self.leases.seen(&wire.metadata).0;
                match wire.spec.renew_time.map(|renewed| renewed.0).filter(|_| is_news) {
                    // Seen again, it is not fresher than it was: only a renewal is.
                    Some(renewed) if self.renewals.insert(kind, renewed) != Some(renewed) => {
                        self.handle(Event::BackendSeen { kind, age: age(renewed) });
                    }
                    None if is_news => self.handle(Event::BackendGone(kind)),
                    _ => {}
                }
            }
            News::Gone(wire) => {
                let gone = self.leases.gone(&wire.metadata);
                if let Some(kind) = gone.and_then(|(key, _)| backend(Some(&key.name))) {
                    self.handle(Event::BackendGone(kind));
                }
            }
            News::ListEnds => {
                for (key, _) in self.leases.end_list() {
                    if let Some(kind) = backend(Some(&key.name)) {
                        self.handle(Event::BackendGone(kind));
                    }
                }
                self.synced(Kind::Backends);
            }
            News::Absent | News::Failed => self.count_failure(Kind::Backends),
        }
    }

    fn absent(&mut self, kind: Kind) {
        self.health.set(kind, KindState::Absent);
        self.handle(Event::Absent(kind));
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

/// Which objects a Lease speaks for.
fn backend(lease: Option<&str>) -> Option<ObjectKind> {
    match lease? {
        crds::backend_lease::CORRD => Some(ObjectKind::Corridor),
        crds::backend_lease::MEMQOSD => Some(ObjectKind::MemoryBundle),
        _ => None,
    }
}

/// A condition that is ours to write.
fn condition(wire: &WireObjectCondition) -> Option<Condition> {
    let ours = [crds::condition::IN_USE, crds::condition::DRAINED, crds::condition::OVERSUBSCRIBED];
    let name = ours.into_iter().find(|it| *it == wire.condition_type)?;
    Some(Condition { name, status: wire.status == "True", since: wire.last_transition_time? })
}

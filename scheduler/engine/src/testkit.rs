//! Makers of test objects.

use std::sync::Arc;
use std::time::Duration;

use model::{
    Amount, Assignment, ClusterNode, DeclaredBy, DeclaredEnd, Deletion, FailurePolicy, Labels,
    Need, Node, NodeName, ObjectKey, ObjectKind, ObjectRef, Phase, Pod, PodClaim, PodRequests,
    PodSpec, PodVolume, Reservable, Resources, SchedulingSpec, Taint,
};

/// The profile of Pods that say nothing else.
pub(crate) const PROFILE: &str = "corridor-scheduler";

pub(crate) fn corridor(text: &str) -> ObjectRef {
    ObjectRef { kind: ObjectKind::Corridor, key: key(text) }
}

pub(crate) fn bundle(text: &str) -> ObjectRef {
    ObjectRef { kind: ObjectKind::MemoryBundle, key: key(text) }
}

pub(crate) fn key(text: &str) -> ObjectKey {
    let (namespace, name) = text.split_once('/').unwrap_or(("team-a", text));
    ObjectKey::new(namespace, name)
}

pub(crate) fn scheduling(cpu_milli: i64, memory_bytes: i64) -> SchedulingSpec {
    let asked = Resources { cpu_milli, memory_bytes, ..Resources::default() };
    let requests = PodRequests {
        effective: asked.clone(),
        effective_in_scores: asked.clone(),
        asked_in_scores: asked.clone(),
        asked,
    };
    SchedulingSpec { requests, containers: 1, ..SchedulingSpec::default() }
}

pub(crate) struct NodeBuilder(ClusterNode);

impl NodeBuilder {
    pub fn new(name: &str) -> Self {
        let allocatable =
            Resources { cpu_milli: 4000, memory_bytes: 16 << 30, ..Resources::default() };
        Self(ClusterNode::new(Node {
            name: name.into(),
            labels: Labels::new(),
            taints: Vec::new(),
            unschedulable: false,
            allocatable,
            pods_max: 110,
        }))
    }

    pub fn cpu_milli(mut self, cpu_milli: i64) -> Self {
        self.0.node.allocatable.cpu_milli = cpu_milli;
        self
    }

    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.0.node.labels.insert(key.into(), value.into());
        self
    }

    pub fn taint(mut self, taint: Taint) -> Self {
        self.0.node.taints.push(taint);
        self
    }

    pub fn build(self) -> ClusterNode {
        self.0
    }
}

pub(crate) struct PodBuilder {
    key: ObjectKey,
    uid: String,
    created_at_unix_s: i64,
    spec: PodSpec,
    assignment: Assignment,
    declared_end: Option<DeclaredEnd>,
    deletion: Deletion,
    is_announced: bool,
    nominated_node: Option<NodeName>,
}

impl PodBuilder {
    pub fn new(name: &str) -> Self {
        let key = key(name);
        Self {
            uid: format!("uid-{}", key.name),
            created_at_unix_s: 0,
            spec: PodSpec {
                profile: PROFILE.into(),
                namespace: key.namespace.clone(),
                scheduling: Arc::new(scheduling(100, 1 << 20)),
                needs: Vec::new(),
                failure_policy: None,
                hold: None,
                volumes: Arc::default(),
                resource_claims: Arc::default(),
            },
            assignment: Assignment::Waiting,
            declared_end: None,
            deletion: Deletion::None,
            is_announced: false,
            nominated_node: None,
            key,
        }
    }

    pub fn uid(mut self, uid: &str) -> Self {
        self.uid = uid.to_owned();
        self
    }

    pub fn cpu_milli(self, cpu_milli: i64) -> Self {
        self.scheduling(|it| it.requests = scheduling(cpu_milli, 1 << 20).requests)
    }

    pub fn priority(self, priority: i32) -> Self {
        self.scheduling(|scheduling| scheduling.priority = priority)
    }

    pub fn label(self, key: &str, value: &str) -> Self {
        self.scheduling(|scheduling| drop(scheduling.labels.insert(key.into(), value.into())))
    }

    pub fn scheduling(mut self, change: impl FnOnce(&mut SchedulingSpec)) -> Self {
        change(Arc::make_mut(&mut self.spec.scheduling));
        self
    }

    pub fn deletion(mut self, deletion: Deletion) -> Self {
        self.deletion = deletion;
        self
    }

    pub fn announced(mut self) -> Self {
        self.is_announced = true;
        self
    }

    pub fn nominated(mut self, node: &str) -> Self {
        self.nominated_node = Some(node.into());
        self
    }

    /// Mounts these claims.
    pub fn claims(mut self, names: &[&str]) -> Self {
        self.spec.volumes = names.iter().map(|name| PodVolume::Claim((*name).into())).collect();
        self
    }

    pub fn resource_claims(mut self, claims: Vec<PodClaim>) -> Self {
        self.spec.resource_claims = claims.into();
        self
    }

    pub fn needs(self, name: &str, amount: Option<u32>) -> Self {
        self.needs_object(corridor(name), amount)
    }

    pub fn needs_bundle(self, name: &str, amount: Option<u32>) -> Self {
        self.needs_object(bundle(name), amount)
    }

    fn needs_object(mut self, object: ObjectRef, amount: Option<u32>) -> Self {
        self.spec.needs.push(Need { object, amount: amount.map(Amount::from_whole) });
        self
    }

    pub fn profile(mut self, name: &str) -> Self {
        self.spec.profile = name.into();
        self
    }

    pub fn fail_fast(mut self) -> Self {
        self.spec.failure_policy = Some(FailurePolicy::FailFast);
        self
    }

    pub fn ends_at(mut self, at_unix_s: i64) -> Self {
        self.declared_end = Some(DeclaredEnd { at_unix_s, by: DeclaredBy::ExpectedEnd });
        self
    }

    pub fn assigned(mut self, assignment: Assignment) -> Self {
        self.assignment = assignment;
        self
    }

    pub fn build(self) -> Pod {
        Pod {
            key: self.key,
            uid: self.uid.as_str().into(),
            resource_version: "1".into(),
            created_at_unix_s: self.created_at_unix_s,
            spec: Arc::new(self.spec),
            assignment: self.assignment,
            condition_message: None,
            declared_end: self.declared_end.map(Box::new),
            nominated_node: self.nominated_node,
            started_at_unix_s: None,
            deletion: self.deletion,
            grace_period: Duration::from_secs(30),
            is_announced: self.is_announced,
        }
    }
}

pub(crate) struct CorridorBuilder(Reservable);

impl CorridorBuilder {
    /// Ready, with its floor met.
    pub fn new(name: &str, floor: u32) -> Self {
        Self::of(corridor(name), floor)
    }

    /// A MemoryBundle instead, shareable.
    pub fn bundle(name: &str, floor: u32) -> Self {
        Self::of(bundle(name), floor)
    }

    fn of(object: ObjectRef, floor: u32) -> Self {
        Self(Reservable {
            uid: format!("uid-{}", object.key.name).as_str().into(),
            object,
            generation: 1,
            deleting: false,
            floor_asked: Amount::from_whole(floor),
            floor_asked_max: Amount::from_whole(floor),
            floor_asked_next: None,
            floor_confirmed: None,
            measured: Amount::from_whole(floor),
            phase: Phase::Ready,
            handle: Some("cor-1".into()),
            node_selector: Labels::new(),
            exclusive: false,
            security_domain: "".into(),
            ticket_hash: None,
            not_ready: None,
            use_told: false,
        })
    }

    pub fn exclusive(mut self) -> Self {
        self.0.exclusive = true;
        self
    }

    pub fn security_domain(mut self, domain: &str) -> Self {
        self.0.security_domain = domain.into();
        self
    }

    pub fn ticket_hash(mut self, hash: &str) -> Self {
        self.0.ticket_hash = Some(hash.into());
        self
    }

    pub fn uid(mut self, uid: &str) -> Self {
        self.0.uid = uid.into();
        self
    }

    pub fn generation(mut self, generation: i64) -> Self {
        self.0.generation = generation;
        self
    }

    pub fn phase(mut self, phase: Phase) -> Self {
        self.0.phase = phase;
        self
    }

    /// A window asks for so much from then on.
    pub fn asks_later(mut self, at: model::Instant, floor: u32) -> Self {
        let floor = Amount::from_whole(floor);
        self.0.floor_asked_next = Some((at, floor));
        self.0.floor_asked_max = self.0.floor_asked_max.max(floor);
        self
    }

    /// What its condition `Ready` says.
    pub fn not_ready(mut self, reason: &str, message: &str) -> Self {
        let (reason, message) = (reason.into(), message.into());
        self.0.not_ready = Some(model::NotReady { reason, message });
        self
    }

    pub fn achievable(mut self, gbps: f64) -> Self {
        self.0.measured = Amount::from_measured(gbps);
        self
    }

    pub fn confirmed(mut self, gbps: f64) -> Self {
        self.0.floor_confirmed = Some(Amount::from_measured(gbps));
        self
    }

    pub fn deleting(mut self) -> Self {
        self.0.deleting = true;
        self
    }

    pub fn on_nodes(mut self, key: &str, value: &str) -> Self {
        self.0.node_selector.insert(key.into(), value.into());
        self
    }

    pub fn build(self) -> Reservable {
        self.0
    }
}

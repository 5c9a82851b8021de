//! Makers of test objects.

use std::sync::Arc;

use model::{
    Assignment, Corridor, CorridorNeed, CorridorPhase, FailurePolicy, Gbps, Labels, Node,
    ObjectKey, Pod, PodSpec, Resources, Shape, Taint,
};

pub(crate) fn key(text: &str) -> ObjectKey {
    let (namespace, name) = text.split_once('/').unwrap_or(("team-a", text));
    ObjectKey::new(namespace, name)
}

pub(crate) fn shape(cpu_milli: i64, memory_bytes: i64) -> Shape {
    let requests = Resources { cpu_milli, memory_bytes, ..Resources::default() };
    Shape { scored_requests: requests.clone(), requests, ..Shape::default() }
}

pub(crate) struct NodeBuilder(Node);

impl NodeBuilder {
    pub fn new(name: &str) -> Self {
        let allocatable =
            Resources { cpu_milli: 4000, memory_bytes: 16 << 30, ..Resources::default() };
        Self(Node {
            name: name.into(),
            labels: Labels::new(),
            taints: Vec::new(),
            unschedulable: false,
            allocatable,
            pods_max: 110,
        })
    }

    pub fn cpu_milli(mut self, cpu_milli: i64) -> Self {
        self.0.allocatable.cpu_milli = cpu_milli;
        self
    }

    pub fn memory_bytes(mut self, memory_bytes: i64) -> Self {
        self.0.allocatable.memory_bytes = memory_bytes;
        self
    }

    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.0.labels.insert(key.into(), value.into());
        self
    }

    pub fn taint(mut self, taint: Taint) -> Self {
        self.0.taints.push(taint);
        self
    }

    pub fn build(self) -> Node {
        self.0
    }
}

pub(crate) struct PodBuilder {
    key: ObjectKey,
    uid: String,
    created_at_unix_s: i64,
    spec: PodSpec,
    assignment: Assignment,
}

impl PodBuilder {
    pub fn new(name: &str) -> Self {
        let key = key(name);
        Self {
            uid: format!("uid-{}", key.name),
            created_at_unix_s: 0,
            spec: PodSpec {
                namespace: key.namespace.clone(),
                priority: 0,
                shape: Arc::new(shape(100, 1 << 20)),
                corridor: None,
                hold: None,
            },
            assignment: Assignment::Waiting,
            key,
        }
    }

    pub fn uid(mut self, uid: &str) -> Self {
        self.uid = uid.to_owned();
        self
    }

    pub fn cpu_milli(mut self, cpu_milli: i64) -> Self {
        self.spec.shape = Arc::new(shape(cpu_milli, 1 << 20));
        self
    }

    pub fn priority(mut self, priority: i32) -> Self {
        self.spec.priority = priority;
        self
    }

    pub fn needs(mut self, corridor: &str, amount: Option<u32>) -> Self {
        self.spec.corridor = Some(CorridorNeed {
            corridor: key(corridor),
            amount: amount.map(Gbps::from_whole),
            failure_policy: FailurePolicy::Queue,
        });
        self
    }

    pub fn fail_fast(mut self) -> Self {
        if let Some(need) = &mut self.spec.corridor {
            need.failure_policy = FailurePolicy::FailFast;
        }
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
        }
    }
}

pub(crate) struct CorridorBuilder(Corridor);

impl CorridorBuilder {
    /// Ready, with its floor met.
    pub fn new(name: &str, floor_gbps: u32) -> Self {
        let key = key(name);
        Self(Corridor {
            uid: format!("uid-{}", key.name).as_str().into(),
            key,
            generation: 1,
            deleting: false,
            floor_asked: Gbps::from_whole(floor_gbps),
            floor_confirmed: None,
            achievable: Gbps::from_whole(floor_gbps),
            phase: CorridorPhase::Ready,
            corridor_id: Some("cor-1".into()),
            node_selector: Labels::new(),
        })
    }

    pub fn uid(mut self, uid: &str) -> Self {
        self.0.uid = uid.into();
        self
    }

    pub fn generation(mut self, generation: i64) -> Self {
        self.0.generation = generation;
        self
    }

    pub fn phase(mut self, phase: CorridorPhase) -> Self {
        self.0.phase = phase;
        self
    }

    pub fn achievable(mut self, gbps: f64) -> Self {
        self.0.achievable = Gbps::from_measured(gbps);
        self
    }

    pub fn confirmed(mut self, gbps: f64) -> Self {
        self.0.floor_confirmed = Some(Gbps::from_measured(gbps));
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

    pub fn build(self) -> Corridor {
        self.0
    }
}

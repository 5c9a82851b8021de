//! A cluster and its Pods, made up from a seed.

use std::sync::Arc;

use model::{
    Assignment, ClusterNode, Deletion, Labels, Node, NodeName, ObjectKey, Pod, PodRequests,
    PodSpec, Resources, SchedulingSpec,
};

/// Zones that Nodes are spread over.
const ZONES: usize = 10;
/// Sizes of Nodes: CPUs, with 4 GiB for each.
const NODE_CPUS: [i64; 4] = [16, 32, 64, 96];
const MEMORY_PER_CPU_BYTES: i64 = 4 << 30;
const PODS_MAX: i64 = 110;

/// The same numbers on every machine.
#[derive(Debug)]
pub struct Dice {
    state: u64,
}

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound.max(1) as u64).unwrap_or(0)
    }
}

pub fn node(number: usize, dice: &mut Dice) -> ClusterNode {
    let name = format!("node-{number}");
    let cpus = NODE_CPUS[dice.below(NODE_CPUS.len())];
    let labels = [
        ("kubernetes.io/hostname", name.clone()),
        ("topology.kubernetes.io/zone", format!("zone-{}", number % ZONES)),
        ("node.kubernetes.io/instance-type", format!("cpu-{cpus}")),
    ];
    ClusterNode::new(Node {
        name: NodeName::new(&name),
        labels: labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
        taints: Vec::new(),
        unschedulable: false,
        allocatable: Resources {
            cpu_milli: cpus * 1000,
            memory_bytes: cpus * MEMORY_PER_CPU_BYTES,
            ephemeral_storage_bytes: 100 << 30,
            ..Resources::default()
        },
        pods_max: PODS_MAX,
    })
}

/// What Pods ask for: each shape another amount of CPU and memory.
pub fn specs(shapes: usize, profile: &str, dice: &mut Dice) -> Vec<Arc<PodSpec>> {
    let one = |number: usize| {
        let asked = Resources {
            cpu_milli: 50
                + i64::try_from(dice.below(80)).unwrap_or(0) * 25
                + i64::try_from(number).unwrap_or(0) % 25,
            memory_bytes: (64 << 20) + (i64::try_from(dice.below(64)).unwrap_or(0) << 26),
            ..Resources::default()
        };
        let app: Labels = [("app".into(), format!("app-{number}").into())].into();
        Arc::new(PodSpec {
            profile: profile.into(),
            namespace: "default".into(),
            scheduling: Arc::new(SchedulingSpec {
                labels: app,
                requests: PodRequests {
                    effective: asked.clone(),
                    effective_in_scores: asked.clone(),
                    asked_in_scores: asked.clone(),
                    asked,
                },
                containers: 1,
                images: vec![format!("app-{number}:1").into()],
                ..SchedulingSpec::default()
            }),
            needs: Vec::new(),
            failure_policy: None,
            hold: None,
            volumes: Arc::default(),
            resource_claims: Arc::default(),
        })
    };
    (0..shapes).map(one).collect()
}

pub fn pod(number: usize, spec: &Arc<PodSpec>, assignment: Assignment) -> Pod {
    Pod {
        key: ObjectKey::new("default", &format!("pod-{number}")),
        uid: format!("{number:08x}-0000-4000-8000-000000000000").as_str().into(),
        resource_version: "1".into(),
        created_at_unix_s: 0,
        spec: spec.clone(),
        assignment,
        nominated_node: None,
        started_at_unix_s: None,
        deletion: Deletion::None,
        condition_message: None,
        declared_end: None,
        grace_period: std::time::Duration::from_secs(30),
        is_announced: false,
    }
}

//! Random clusters, and random changes to them.

use std::sync::Arc;

use model::{
    ClusterNode, ClusterPod, Deletion, Effect, HostPort, LabelSelector, Labels, Node, NodeImage,
    NodeName, NodeSelector, NodeSelectorTerm, ObjectKey, ObjectRef, Owner, OwnerKind,
    PreferredNodeTerm, RawRequirement, Reach, Resources, SchedulingSpec, Taint, Toleration,
    TolerationOperator, TopologySpreadConstraint, WeightedPodAffinityTerm, WhenUnsatisfiable,
};
use rules::{Cluster, DefaultSpread, Plugin, Rules, ScoringStrategy};

use crate::placing::{CacheLimit, Placing, PodClassKey};
use crate::rng::Rng;
use crate::testkit::{corridor, scheduling};
use crate::wake::ClusterChange;

pub(super) const NODES: usize = 12;
/// Values of a label that few selectors read.
pub(super) const INDEXES: usize = 6;
pub(super) const NAMESPACES: [&str; 2] = ["team-a", "team-b"];

/// A cluster that changes at random, and the same arranged for quick answers.
pub(super) struct Story {
    pub random: Rng,
    pub cluster: Cluster,
    pub placing: Placing,
    pub rules: Rules,
    pub classes: Vec<PodClassKey>,
    pub pods: usize,
    /// How many questions were answered how.
    pub placed: usize,
    pub nowhere: usize,
    pub unknown: usize,
    pub remedies: usize,
    pub violations: usize,
    pub nominated: usize,
    /// One in so many Pods waits, nominated for a Node.
    nominates_one_in: usize,
    /// More Pods come than go.
    is_crowded: bool,
}

pub(super) fn labels(pairs: &[(&str, String)]) -> Labels {
    pairs.iter().map(|(key, value)| (Arc::from(*key), Arc::from(value.as_str()))).collect()
}

impl Story {
    pub fn new(seed: u64) -> Self {
        let mut story = Self {
            random: Rng::new(seed),
            cluster: Cluster::default(),
            placing: Placing::default(),
            rules: Rules::default(),
            classes: Vec::new(),
            pods: 0,
            placed: 0,
            nowhere: 0,
            unknown: 0,
            remedies: 0,
            violations: 0,
            nominated: 0,
            nominates_one_in: 200,
            is_crowded: false,
        };
        story.rules = story.some_rules();
        story.nominates_one_in = [10, 200, 200][story.below(3)];
        story.is_crowded = story.one_in(2);
        for number in 0..NODES {
            story.put_node(number);
        }
        for _ in 0..6 {
            let class = story.some_class();
            story.classes.push(class);
        }
        story
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound)
    }

    pub fn has_many_nominated(&self) -> bool {
        self.nominates_one_in < 100
    }

    pub fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn some_rules(&mut self) -> Rules {
        let mut rules = Rules::default();
        if self.one_in(4) {
            rules.weights.insert(Plugin::NodeResourcesFit, 7);
            rules.weights.insert(Plugin::ImageLocality, 3);
            rules.hard_pod_affinity_weight = 20;
        }
        match self.below(8) {
            0 => rules.fit = ScoringStrategy::MostAllocated(rules::cpu_and_memory()),
            1 => {
                let mut resources = rules::cpu_and_memory();
                resources[0].weight = 5;
                resources
                    .push(rules::ResourceWeight { resource: "example.com/gpu".into(), weight: 3 });
                rules.fit = ScoringStrategy::LeastAllocated(resources);
                rules.balanced_resources.push("example.com/gpu".into());
            }
            2 => {
                let hard = WhenUnsatisfiable::DoNotSchedule;
                let constraint =
                    TopologySpreadConstraint::new("zone", 2, hard, LabelSelector::Nothing);
                rules.default_spread = DefaultSpread::List(vec![constraint]);
            }
            3 => rules.ignore_preferred_terms_of_existing_pods = true,
            4 => {
                let off = [Plugin::TaintToleration, Plugin::NodePorts, Plugin::PodTopologySpread];
                rules.switched_off.filters.insert(off[self.below(3)]);
                let off = [Plugin::ImageLocality, Plugin::InterPodAffinity, Plugin::NodeAffinity];
                rules.switched_off.scores.insert(off[self.below(3)]);
            }
            _ => {}
        }
        rules
    }

    fn put_node(&mut self, number: usize) {
        let name = format!("n{number}");
        let mut node_labels = labels(&[("zone", format!("z{}", self.below(3)))]);
        if !self.one_in(6) {
            // Now and then two Nodes claim to be the same host.
            let host = if self.one_in(20) { "n0".to_owned() } else { name.clone() };
            node_labels.extend(labels(&[("kubernetes.io/hostname", host)]));
        }
        if self.one_in(2) {
            node_labels.extend(labels(&[("rack", format!("r{}", self.below(4)))]));
        }
        if self.one_in(5) {
            node_labels.remove("zone");
        }
        let mut taints = Vec::new();
        for effect in [Effect::NoSchedule, Effect::PreferNoSchedule, Effect::PreferNoSchedule] {
            if self.one_in(5) {
                let key = ["a", "b"][self.below(2)].into();
                taints.push(Taint { key, value: "".into(), effect });
            }
        }
        let mut allocatable = Resources {
            cpu_milli: [1000, 2000, 4000][self.below(3)],
            memory_bytes: [1 << 30, 3 << 30, 0][usize::from(self.one_in(12)) * 2],
            ephemeral_storage_bytes: 10 << 30,
            ..Resources::default()
        };
        if self.one_in(3) {
            allocatable.scalar.insert("example.com/gpu".into(), 4);
        }
        let mut node = ClusterNode::new(Node {
            name: name.as_str().into(),
            labels: node_labels,
            taints,
            unschedulable: self.one_in(10),
            allocatable,
            pods_max: [3, 110][usize::from(!self.one_in(8))],
        });
        // The last is another image that bears the first one's name, too.
        for names in [vec!["app:1"], vec!["db:2"], vec!["other:9", "app:1"]] {
            if self.one_in(1 + names.len()) {
                let size_bytes = [40 << 20, 900 << 20][self.below(2)];
                let names = names.into_iter().map(Into::into).collect();
                let image = Arc::new(NodeImage { names, size_bytes });
                node.images = node.images.iter().cloned().chain([image]).collect();
            }
        }
        if self.one_in(2) {
            node.declared_features.insert("Feature".into());
        }
        let name = node.node.name.clone();
        self.cluster.nodes.insert(name.clone(), node);
        self.placing.note(ClusterChange::Node(&name), &self.cluster);
    }

    fn drop_node(&mut self) {
        let number = self.below(NODES);
        let name = NodeName::new(&format!("n{number}"));
        if self.cluster.nodes.remove(&name).is_some() {
            self.placing.note(ClusterChange::Node(&name), &self.cluster);
        }
    }

    fn some_scheduling(&mut self) -> SchedulingSpec {
        let cpu = [0, 100, 300, 700, 900, 900][self.below(if self.is_crowded { 6 } else { 4 })];
        let memory = [0, 64 << 20, 400 << 20][self.below(3)];
        let mut it = scheduling(cpu, memory);
        it.labels = labels(&[("app", format!("a{}", self.below(3)))]);
        if self.one_in(2) {
            it.labels.extend(labels(&[("index", format!("{}", self.below(INDEXES)))]));
        }
        if self.one_in(3) {
            let bytes = i64::try_from(self.below(1000)).unwrap();
            it.requests.asked.memory_bytes += bytes;
            it.requests.effective.memory_bytes += bytes;
        }
        it.priority = i32::try_from(self.below(3)).unwrap();
        if self.one_in(5) {
            for list in [&mut it.requests.asked, &mut it.requests.effective] {
                list.scalar.insert("example.com/gpu".into(), 1);
            }
        }
        if self.one_in(3) {
            let key = ["a", "b", ""][self.below(3)].into();
            let operator = TolerationOperator::Exists;
            let (value, effect) = ("".into(), None);
            it.tolerations.push(Toleration { key, operator, value, effect });
        }
        if self.one_in(5) {
            it.node_selector = labels(&[("zone", format!("z{}", self.below(3)))]);
        }
        if self.one_in(6) {
            let name = format!("n{}", self.below(NODES));
            let raw = RawRequirement::new("metadata.name", "In", &[&name]);
            let term = NodeSelectorTerm::parse(&[], &[raw]);
            it.node_affinity.required = Some(NodeSelector { terms: vec![term] });
        }
        while self.one_in(4) {
            let zone = format!("z{}", self.below(3));
            let raw = RawRequirement::new("zone", "In", &[&zone]);
            let weight = i32::try_from(self.below(50)).unwrap();
            let term = NodeSelectorTerm::parse(&[raw], &[]);
            it.node_affinity.preferred.push(PreferredNodeTerm { weight, term });
        }
        while self.one_in(3) {
            let (term, weight) = (self.term(), i32::try_from(1 + self.below(50)).unwrap());
            match self.below(4) {
                0 => it.pod_affinity.required.push(term),
                1 => it.pod_affinity.anti_required.push(term),
                2 => it.pod_affinity.preferred.push(WeightedPodAffinityTerm { weight, term }),
                _ => it.pod_affinity.anti_preferred.push(WeightedPodAffinityTerm { weight, term }),
            }
        }
        while self.one_in(4) {
            let constraint = self.spread();
            it.topology_spread.push(constraint);
        }
        if self.one_in(5) {
            it.host_ports.extend(HostPort::new("", "", 80));
        }
        if self.one_in(3) {
            it.images = vec![["app:1", "db:2", "none:3"][self.below(3)].into(), "app:1".into()];
        }
        if self.one_in(10) {
            it.required_features.insert("Feature".into());
        }
        if self.one_in(3) {
            it.owner = Some(Owner { kind: OwnerKind::ReplicaSet, name: "web".into() });
        }
        it
    }

    fn some_class(&mut self) -> PodClassKey {
        let scheduling = Arc::new(self.some_scheduling());
        let mut reach = Vec::new();
        if self.one_in(6) {
            let object: ObjectRef = corridor("c1");
            reach.push(Reach { object, node_selector: labels(&[("zone", "z1".to_owned())]) });
        }
        let namespace = NAMESPACES[self.below(2)].into();
        PodClassKey {
            profile: "p".into(),
            namespace,
            scheduling,
            reach,
            volumes: None,
            devices: None,
        }
    }

    /// A Pod on a Node, or nominated for one.
    fn put_pod(&mut self) {
        let uid = if self.one_in(3) { self.below(self.pods.max(1)) } else { self.pods };
        self.pods = self.pods.max(uid + 1);
        let name = format!("p{uid}");
        let key = ObjectKey::new(NAMESPACES[self.below(2)], &name);
        let mut pod = ClusterPod::new(key, name.as_str().into());
        pod.scheduling = if self.one_in(2) {
            let class = self.below(self.classes.len());
            self.classes[class].scheduling.clone()
        } else {
            Arc::new(self.some_scheduling())
        };
        if self.one_in(30) {
            pod.requests.effective.cpu_milli = i64::MAX - 5;
        }
        let node = Some(NodeName::new(&format!("n{}", self.below(NODES + 1))));
        if self.one_in(self.nominates_one_in) {
            pod.nominated_node = node;
        } else {
            pod.node = node;
        }
        if self.one_in(2) {
            pod.started_at_unix_s = Some(i64::try_from(self.below(4)).unwrap());
        }
        if self.one_in(6) {
            let why = [Deletion::Terminating, Deletion::TerminatingByPreemption];
            pod.deletion = why[self.below(2)];
        }
        let before = self.put(&pod);
        if self.one_in(4) {
            // As when a transaction is rolled back, and then decides the same again.
            match before.clone() {
                Some(before) => drop(self.cluster.insert_pod(before)),
                None => drop(self.cluster.remove_pod(&pod.uid)),
            }
            let change = ClusterChange::Pod { before: Some(&pod), after: before.as_deref() };
            self.placing.note(change, &self.cluster);
            if self.one_in(2) {
                self.put(&pod);
            }
        }
    }

    fn put(&mut self, pod: &ClusterPod) -> Option<Arc<ClusterPod>> {
        let before = self.cluster.insert_pod(pod.clone());
        let change = ClusterChange::Pod { before: before.as_deref(), after: Some(pod) };
        self.placing.note(change, &self.cluster);
        before
    }

    fn drop_pod(&mut self) {
        let uid = format!("p{}", self.below(self.pods.max(1)));
        if let Some(before) = self.cluster.remove_pod(&uid.as_str().into()) {
            let change = ClusterChange::Pod { before: Some(&before), after: None };
            self.placing.note(change, &self.cluster);
        }
    }

    fn change_context(&mut self) {
        if self.one_in(2) {
            let namespace = NAMESPACES[self.below(2)].into();
            let team = labels(&[("team", ["a", "b"][self.below(2)].to_owned())]);
            self.cluster.objects.namespaces.insert(namespace, team);
            self.placing.note(ClusterChange::Namespaces, &self.cluster);
            return;
        }
        let app = labels(&[("app", format!("a{}", self.below(3)))]);
        let namespace = NAMESPACES[self.below(2)];
        if self.one_in(4) {
            let before = self.cluster.objects.services.remove(&ObjectKey::new(namespace, "s"));
            let change = ClusterChange::Selectors { before: before.as_ref(), after: None };
            self.placing.note(change, &self.cluster);
            return;
        }
        let after = LabelSelector::of_labels(&app);
        let is_service = self.one_in(2);
        let objects = &mut self.cluster.objects;
        let before = if is_service {
            objects.services.insert(ObjectKey::new(namespace, "s"), after.clone())
        } else {
            objects.replica_sets.insert(ObjectKey::new(namespace, "web"), after.clone())
        };
        let change = ClusterChange::Selectors { before: before.as_ref(), after: Some(&after) };
        self.placing.note(change, &self.cluster);
    }

    pub fn step(&mut self) {
        match self.below(20) {
            0 => {
                let number = self.below(NODES);
                self.put_node(number);
            }
            1 if self.one_in(3) => self.drop_node(),
            2 if self.one_in(2) => self.change_context(),
            3 if self.one_in(4) => {
                self.rules = self.some_rules();
                self.placing.reconfigured(CacheLimit::default());
            }
            4 if self.one_in(2) => {
                let (place, class) = (self.below(self.classes.len()), self.some_class());
                self.classes[place] = class;
            }
            5 if self.one_in(8) => self.placing.forget_unused(),
            5 => self.change_budget(),
            6 if self.one_in(2) => self.change_budget(),
            7..10 if self.is_crowded && self.one_in(2) => self.put_pod(),
            6..10 => self.drop_pod(),
            _ => self.put_pod(),
        }
    }
}

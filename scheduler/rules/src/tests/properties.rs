//! Random clusters: decisions depend on state only, hold together, and never panic.

use model::{
    ClusterNode, ClusterPod, Deletion, Effect, LabelSelector, NodeSelector, NodeSelectorTerm,
    PodDisruptionBudget, PreemptionPolicy,
};
use proptest::prelude::*;

use crate::testkit::{hard, insert_budget, invalid, labels, node, pod, raw, selector, soft, term};
use crate::{
    Cluster, Decision, DefaultSpread, Plugin, Preemption, Rules, ScoringStrategy, ShapePoint,
    cpu_and_memory, decide, filter, fits_somewhere, preempt, rejection_may_have_changed,
};

/// Numbers that usually make sense.
fn amount() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), 0..2000_i64]
}

/// Numbers that usually do not.
fn extreme() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), Just(i64::MAX), Just(i64::MIN), Just(-1), Just(0), 0..2000_i64]
}

fn choice(texts: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(texts)
}

fn any_node(
    name: String,
    amount: impl Strategy<Value = i64> + Clone,
) -> impl Strategy<Value = ClusterNode> {
    let numbers = (amount.clone(), amount.clone(), amount.clone(), amount);
    let labels = choice(&["", "zone=a", "zone=b", "zone=a,rack=1", "zone=b,rack=2"]);
    let taint = prop::option::of(choice(&["NoSchedule", "PreferNoSchedule", "NoExecute"]));
    (numbers, labels, taint, any::<bool>(), any::<bool>()).prop_map(
        move |((cpu, memory, gpus, pods_max), labels, taint, cordoned, image)| {
            let mut built = node(&name).labels(labels).cpu(cpu).memory(memory);
            built = built.scalar("example.com/gpu", gpus).pods_max(pods_max);
            built = match taint {
                Some("NoSchedule") => built.taint("t", Effect::NoSchedule),
                Some("NoExecute") => built.taint("t", Effect::NoExecute),
                Some(_) => built.taint("t", Effect::PreferNoSchedule),
                None => built,
            };
            if image {
                built = built.image("app:latest", memory);
            }
            let mut node = built.build();
            node.node.unschedulable = cordoned && cpu % 4 == 0;
            node
        },
    )
}

fn affinity(pod: &mut ClusterPod, kind: u8, weight: i32) {
    let key = ["zone", "rack", "kubernetes.io/hostname"][usize::from(kind % 3)];
    let app = ["app=web", "app=db"][usize::from(kind / 3 % 2)];
    let mut term = term(key, app);
    match kind / 6 % 4 {
        1 => term.namespace_selector = LabelSelector::EVERYTHING,
        2 => term.namespace_selector = selector("team=b"),
        3 if weight == i32::MIN => term.selector = invalid(),
        _ => {}
    }
    let affinity = &mut pod.pod_affinity;
    let weighted = model::WeightedPodAffinityTerm { weight, term: term.clone() };
    match kind / 24 % 4 {
        0 => affinity.required.push(term),
        1 => affinity.anti_required.push(term),
        2 => affinity.preferred.push(weighted),
        _ => affinity.anti_preferred.push(weighted),
    }
}

fn spread(pod: &mut ClusterPod, kind: u8, max_skew: i32) {
    let key = ["zone", "rack", "kubernetes.io/hostname"][usize::from(kind % 3)];
    let constraint = if (kind / 3).is_multiple_of(2) { hard } else { soft };
    let mut constraint = constraint(key, max_skew, "app=web");
    constraint.min_domains = (kind / 6).is_multiple_of(2).then_some(max_skew);
    if (kind / 12).is_multiple_of(4) {
        constraint.selector = LabelSelector::EVERYTHING;
    }
    pod.topology_spread.push(constraint);
}

fn node_affinity(pod: &mut ClusterPod, kind: u8) {
    let expression = [
        raw("zone", "In", &["a"]),
        raw("rack", "Gt", &["1"]),
        raw("rack", "Lt", &["many"]),
        raw("zone", "DoesNotExist", &[]),
    ];
    let field = raw("metadata.name", "In", &["n1"]);
    let fields = if (kind / 4).is_multiple_of(3) { vec![field] } else { Vec::new() };
    let term = NodeSelectorTerm::parse(&expression[usize::from(kind % 4)..][..1], &fields);
    pod.node_affinity.required = Some(NodeSelector { terms: vec![term] });
}

fn any_pod(
    name: String,
    amount: impl Strategy<Value = i64> + Clone,
    small: impl Strategy<Value = i32> + Clone,
) -> impl Strategy<Value = ClusterPod> {
    let numbers = (amount.clone(), amount.clone(), amount, small.clone(), small);
    let where_to = (0..8_u8, prop::option::weighted(0.2, 0..4_u8), 0..8_u8);
    let rules = (
        prop::option::weighted(0.4, any::<u8>()),
        prop::option::weighted(0.4, any::<u8>()),
        prop::option::weighted(0.2, any::<u8>()),
    );
    let app = choice(&["", "app=web", "app=db", "app=web,rev=1"]);
    (numbers, where_to, rules, app).prop_map(
        move |((cpu, memory, gpus, priority, small), (on, nominated, odd), rules, app)| {
            let mut built =
                pod(&name).labels(app).asks(cpu, memory).priority(priority).image("app");
            if gpus % 5 == 0 {
                built = built.asks_scalar("example.com/gpu", gpus);
            }
            if odd == 0 {
                built = built.port("", 80);
            }
            let mut pod = built.build();
            pod.node = (on < 6).then(|| format!("n{}", on % 5).as_str().into());
            pod.nominated_node = nominated.map(|on| format!("n{on}").as_str().into());
            pod.started_at_unix_s = (odd % 2 == 0).then_some(memory);
            if odd == 1 {
                pod.deletion = Deletion::Terminating;
                pod.preemption_policy = PreemptionPolicy::Never;
            }
            let (with_affinity, with_spread, with_node_affinity) = rules;
            if let Some(kind) = with_affinity {
                affinity(&mut pod, kind, small);
            }
            if let Some(kind) = with_spread {
                spread(&mut pod, kind, small);
            }
            if let Some(kind) = with_node_affinity {
                node_affinity(&mut pod, kind);
            }
            pod
        },
    )
}

#[derive(Clone, Debug)]
struct World {
    nodes: Vec<ClusterNode>,
    pods: Vec<ClusterPod>,
    incoming: ClusterPod,
    budget: i32,
}

impl World {
    fn cluster(&self) -> Cluster {
        let mut cluster = Cluster::new(self.nodes.clone(), self.pods.clone());
        cluster.objects.namespaces.insert("team-a".into(), labels("team=a"));
        insert_budget(
            &mut cluster,
            PodDisruptionBudget {
                key: model::ObjectKey::new("team-a", "budget"),
                selector: selector("app=web"),
                disruptions_allowed: self.budget,
                disrupted_pods: std::collections::BTreeSet::new(),
            },
        );
        let service = model::ObjectKey::new("team-a", "service");
        cluster.objects.services.insert(service, selector("app=web"));
        cluster
    }
}

fn world<A, S>(amount: fn() -> A, small: fn() -> S) -> impl Strategy<Value = World>
where
    A: Strategy<Value = i64> + Clone,
    S: Strategy<Value = i32> + Clone,
{
    let nodes: Vec<_> = (0..4).map(|it| any_node(format!("n{it}"), amount())).collect();
    let pods: Vec<_> = (0..8).map(|it| any_pod(format!("p{it}"), amount(), small())).collect();
    let incoming = any_pod("incoming".to_owned(), amount(), small());
    (nodes, pods, incoming, small(), 0..5_usize, 0..9_usize).prop_map(
        |(mut nodes, mut pods, mut incoming, budget, node_count, pod_count)| {
            nodes.truncate(node_count);
            pods.truncate(pod_count);
            incoming.node = None;
            World { nodes, pods, incoming, budget: budget.saturating_sub(1) }
        },
    )
}

/// What the API server accepts: among others, skews and weights of at least 1.
fn sensible() -> impl Strategy<Value = World> {
    world(|| amount().boxed(), || (1..5_i32).boxed())
}

fn absurd() -> impl Strategy<Value = World> {
    let small = || prop_oneof![any::<i32>(), Just(i32::MIN), Just(i32::MAX), 0..4_i32].boxed();
    world(|| extreme().boxed(), small)
}

fn rules() -> impl Strategy<Value = Rules> {
    let points = prop::collection::vec((any::<i32>(), any::<i32>()), 0..3);
    (0..4_u8, any::<i32>(), any::<u32>(), points).prop_map(|(kind, weight, factor, points)| {
        let mut rules = Rules { hard_pod_affinity_weight: weight, ..Rules::default() };
        rules.weights.insert(Plugin::NodeResourcesFit, factor);
        let mut resources = cpu_and_memory();
        resources[0].weight = i64::from(weight);
        let point = |(utilization, score)| ShapePoint { utilization, score };
        let shape = points.into_iter().map(point).collect();
        rules.fit = match kind {
            0 => ScoringStrategy::LeastAllocated(resources),
            1 => ScoringStrategy::MostAllocated(resources),
            _ => ScoringStrategy::RequestedToCapacityRatio { resources, shape },
        };
        if kind == 3 {
            rules.default_spread = DefaultSpread::List(vec![hard("zone", weight, "")]);
        }
        rules
    })
}

proptest! {
    #[test]
    fn decisions_do_not_depend_on_the_order_of_arrival(world in sensible(), turn in 0..8_usize) {
        let mut turned = world.clone();
        turned.nodes.reverse();
        turned.pods.reverse();
        if !turned.pods.is_empty() {
            let by = turn % turned.pods.len();
            turned.pods.rotate_left(by);
        }
        let (one, other) = (world.cluster(), turned.cluster());
        let rules = Rules::default();
        prop_assert_eq!(decide(&rules, &one, &world.incoming), decide(&rules, &other, &world.incoming));
        prop_assert_eq!(preempt(&rules, &one, &world.incoming), preempt(&rules, &other, &world.incoming));
    }

    #[test]
    fn absurd_input_never_panics(world in absurd(), other in absurd(), rules in rules()) {
        let (before, after) = (world.cluster(), other.cluster());
        if let Decision::Rejected(rejection) = decide(&rules, &before, &world.incoming) {
            let preemption = preempt(&rules, &before, &world.incoming);
            prop_assert!(!rejection.message_with(&preemption).is_empty());
        }
        let _ = rejection_may_have_changed(&rules, &before, &after, &world.incoming);
    }

    #[test]
    fn a_pod_goes_exactly_where_no_filter_objects(mut world in sensible()) {
        world.incoming.nominated_node = None;
        let (rules, cluster) = (Rules::default(), world.cluster());
        let passes = |node: &ClusterNode| filter(&rules, &cluster, &world.incoming, node).is_empty();
        let feasible = cluster.nodes.values().filter(|node| passes(node));
        let feasible: Vec<_> = feasible.map(|node| node.node.name.clone()).collect();
        let decision = decide(&rules, &cluster, &world.incoming);
        let is_placed = matches!(decision, Decision::Placed(_));
        prop_assert_eq!(fits_somewhere(&rules, &cluster, &world.incoming), is_placed);
        match decision {
            Decision::Placed(placement) => {
                prop_assert!(!placement.best.is_empty());
                prop_assert!(placement.best.is_subset(&placement.feasible));
                prop_assert_eq!(placement.feasible.into_iter().collect::<Vec<_>>(), feasible);
                let plugins = placement.scores.values().flat_map(|score| &score.plugins);
                for score in plugins {
                    prop_assert!((0..=100).contains(&score.normalised), "{:?}", score);
                }
            }
            Decision::Rejected(rejection) => {
                prop_assert!(feasible.is_empty());
                prop_assert_eq!(rejection.nodes.len(), cluster.nodes.len());
            }
            Decision::Failed(_) => {}
        }
    }

    #[test]
    fn where_the_victims_are_gone_the_pod_fits(mut world in sensible()) {
        // Where kube-scheduler's own sums are odd (ports held twice, terminating Pods, spreading
        // over all Pods), so is its nomination.
        for pod in world.pods.iter_mut().chain([&mut world.incoming]) {
            pod.host_ports.clear();
            pod.deletion = Deletion::None;
            pod.topology_spread.retain(|constraint| !constraint.selector.is_everything());
        }
        let (rules, cluster) = (Rules::default(), world.cluster());
        let preemption = preempt(&rules, &cluster, &world.incoming);
        let Preemption::Possible { candidates, best } = preemption else { return Ok(()) };
        prop_assert!(!best.is_empty());
        for (name, candidate) in candidates {
            prop_assert!(!candidate.victims.is_empty());
            let mut after = cluster.clone();
            for victim in &candidate.victims {
                let gone = after.remove_pod(victim).expect("victims are Pods of the cluster");
                prop_assert!(gone.priority < world.incoming.priority);
            }
            let found = filter(&rules, &after, &world.incoming, &after.nodes[&name]);
            prop_assert_eq!(found, vec![]);
        }
    }

    #[test]
    fn nothing_wakes_a_pod_when_nothing_changes(world in sensible()) {
        let cluster = world.cluster();
        let rules = Rules::default();
        prop_assert!(!rejection_may_have_changed(&rules, &cluster, &cluster, &world.incoming));
    }
}

//! From the JSON of a workload to the words of the engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use e2e::objects::pods::{CORRIDOR_GBPS, CORRIDOR_REF};
use e2e::{Error, Result};
use model::{
    Amount, Assignment, ClusterNode, ContainerRequests, DeclaredRequests, Deletion, LabelSelector,
    Labels, Need, Node, NodeAffinity, NodeName, NodeSelector, NodeSelectorTerm, ObjectKey,
    ObjectKind, ObjectRef, ObjectUid, Phase, Pod, PodAffinity, PodAffinityTerm, PodSpec, PodUid,
    Quantity, RawRequirement, Reservable, ResourceList, SchedulingSpec, TopologySpreadConstraint,
    WeightedPodAffinityTerm, WhenUnsatisfiable, listed_image_name, resources,
};
use serde_json::Value;

use super::devices::pod_claims;
use super::fragment::{
    NodeFragment, NodeTerm, NodeTerms, PodFragment, PodTerm, PodTerms, RequirementFragment,
    Selector, Spec, Spread,
};
use super::volumes::pod_volumes;

pub fn node(object: Value) -> Result<ClusterNode> {
    let doing = "reading a Node of the workload";
    let fragment: NodeFragment =
        serde_json::from_value(object).map_err(|problem| Error::malformed(doing, problem))?;
    let allocatable = amounts(&fragment.status.allocatable)?;
    Ok(ClusterNode::new(Node {
        name: NodeName::new(&fragment.metadata.name),
        labels: labels(&fragment.metadata.labels),
        taints: Vec::new(),
        unschedulable: false,
        pods_max: allocatable.get("pods").copied().map_or(0, Quantity::value),
        allocatable: resources(&allocatable),
    }))
}

/// Names are unique in a workload, so they serve as UIDs too.
pub fn pod(object: Value, number: u64) -> Result<Pod> {
    let doing = "reading a Pod of the workload";
    let fragment: PodFragment =
        serde_json::from_value(object).map_err(|problem| Error::malformed(doing, problem))?;
    let PodFragment { metadata, spec, .. } = fragment;
    let key = ObjectKey::new(&metadata.namespace, &metadata.name);
    Ok(Pod {
        uid: PodUid::new(&metadata.name),
        resource_version: number.to_string().into(),
        created_at_unix_s: 0,
        spec: Arc::new(PodSpec {
            profile: spec.scheduler_name.as_str().into(),
            namespace: key.namespace.clone(),
            needs: need(&metadata.annotations)?.into_iter().collect(),
            failure_policy: None,
            hold: None,
            volumes: pod_volumes(&spec.volumes),
            resource_claims: pod_claims(&key.name, &spec.resource_claims).into(),
            scheduling: Arc::new(scheduling_spec(&key.namespace, &metadata.labels, &spec)?),
        }),
        key,
        assignment: assignment(&spec),
        nominated_node: None,
        started_at_unix_s: None,
        deletion: Deletion::None,
        condition_message: None,
        declared_end: None,
        grace_period: std::time::Duration::from_secs(30),
        is_announced: false,
    })
}

/// A Corridor of the workload, in full health.
pub fn corridor(object: &Value) -> Option<Reservable> {
    let floor = u32::try_from(object["spec"]["minGbps"].as_u64()?).ok()?;
    let (namespace, name) =
        (object["metadata"]["namespace"].as_str()?, object["metadata"]["name"].as_str()?);
    Some(Reservable {
        object: ObjectRef { kind: ObjectKind::Corridor, key: ObjectKey::new(namespace, name) },
        uid: ObjectUid::new(name),
        generation: 1,
        deleting: false,
        floor_asked: Amount::from_whole(floor),
        floor_confirmed: None,
        measured: Amount::from_whole(floor),
        phase: Phase::Ready,
        handle: Some(name.into()),
        node_selector: Labels::new(),
        exclusive: false,
        security_domain: "".into(),
        ticket_hash: None,
        floor_asked_max: Amount::from_whole(floor),
        floor_asked_next: None,
        not_ready: None,
        use_told: false,
    })
}

fn assignment(spec: &Spec) -> Assignment {
    match &spec.node_name {
        Some(node) => Assignment::Bound { node: NodeName::new(node), grant: None },
        None if spec.scheduling_gates.is_empty() => Assignment::Waiting,
        None => Assignment::Gated {
            gates: spec.scheduling_gates.iter().map(|gate| gate.name.as_str().into()).collect(),
        },
    }
}

fn need(annotations: &BTreeMap<String, String>) -> Result<Option<Need>> {
    let Some(reference) = annotations.get(CORRIDOR_REF) else { return Ok(None) };
    let wrong = || Error::malformed("reading an annotation of the workload", reference);
    let (namespace, name) = reference.split_once('/').ok_or_else(wrong)?;
    let amount = annotations.get(CORRIDOR_GBPS).map(|text| text.parse().map_err(|_| wrong()));
    Ok(Some(Need {
        object: ObjectRef { kind: ObjectKind::Corridor, key: ObjectKey::new(namespace, name) },
        amount: amount.transpose()?.map(Amount::from_whole),
    }))
}

fn scheduling_spec(
    namespace: &Arc<str>,
    own: &BTreeMap<String, String>,
    spec: &Spec,
) -> Result<SchedulingSpec> {
    let containers = spec.containers.iter().map(|container| {
        let requests = amounts(&container.resources.requests)?;
        Ok(ContainerRequests { requests, running: None })
    });
    let requests = DeclaredRequests {
        containers: containers.collect::<Result<_>>()?,
        ..DeclaredRequests::default()
    };
    let affinity = &spec.affinity;
    let (required, preferred) = pod_terms(namespace, &affinity.to_pods);
    let (anti_required, anti_preferred) = pod_terms(namespace, &affinity.away_from_pods);
    let constraints = spec.topology_spread_constraints.iter().map(constraint);
    Ok(SchedulingSpec {
        labels: labels(own),
        priority: spec.priority,
        requests: requests.sum(),
        node_selector: labels(&spec.node_selector),
        node_affinity: node_affinity(spec),
        pod_affinity: PodAffinity { required, preferred, anti_required, anti_preferred },
        topology_spread: constraints.collect::<Result<_>>()?,
        images: spec.containers.iter().map(|it| listed_image_name(&it.image)).collect(),
        containers: u32::try_from(spec.containers.len()).unwrap_or(u32::MAX),
        ..SchedulingSpec::default()
    })
}

fn node_affinity(spec: &Spec) -> NodeAffinity {
    let required = spec.affinity.to_nodes.required.as_ref().map(node_selector);
    NodeAffinity { required, preferred: Vec::new() }
}

pub(super) fn node_selector(fragment: &NodeTerms) -> NodeSelector {
    let term = |term: &NodeTerm| {
        NodeSelectorTerm::parse(&raw(&term.match_expressions), &raw(&term.match_fields))
    };
    NodeSelector { terms: fragment.node_selector_terms.iter().map(term).collect() }
}

fn pod_terms(
    namespace: &Arc<str>,
    terms: &PodTerms,
) -> (Vec<PodAffinityTerm>, Vec<WeightedPodAffinityTerm>) {
    let term = |term: &PodTerm| {
        let selector = selector(term.label_selector.as_ref());
        PodAffinityTerm::new(namespace, &term.topology_key, selector, [].into(), None)
    };
    let weighted = terms.preferred.iter().map(|weighted| WeightedPodAffinityTerm {
        weight: weighted.weight,
        term: term(&weighted.pod_affinity_term),
    });
    (terms.required.iter().map(term).collect(), weighted.collect())
}

fn constraint(spread: &Spread) -> Result<TopologySpreadConstraint> {
    let when = match spread.when_unsatisfiable.as_str() {
        "DoNotSchedule" => WhenUnsatisfiable::DoNotSchedule,
        "ScheduleAnyway" => WhenUnsatisfiable::ScheduleAnyway,
        other => return Err(Error::malformed("reading whenUnsatisfiable", other)),
    };
    let selector = selector(spread.label_selector.as_ref());
    Ok(TopologySpreadConstraint::new(&spread.topology_key, spread.max_skew, when, selector))
}

fn selector(fragment: Option<&Selector>) -> LabelSelector {
    fragment.map_or(LabelSelector::Nothing, |it| {
        LabelSelector::parse(&labels(&it.match_labels), &raw(&it.match_expressions))
    })
}

fn raw(fragments: &[RequirementFragment]) -> Vec<RawRequirement> {
    let one = |it: &RequirementFragment| RawRequirement {
        key: it.key.clone(),
        operator: it.operator.clone(),
        values: it.values.clone(),
    };
    fragments.iter().map(one).collect()
}

pub(super) fn labels(pairs: &BTreeMap<String, String>) -> Labels {
    pairs.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect()
}

fn amounts(written: &BTreeMap<String, String>) -> Result<ResourceList> {
    let amount = |(name, text): (&String, &String)| {
        let parsed: Quantity =
            text.parse().map_err(|problem| Error::malformed("reading a workload", problem))?;
        Ok((name.as_str().into(), parsed))
    };
    written.iter().map(amount).collect()
}

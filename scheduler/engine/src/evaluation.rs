//! Where a Pod can go: `best_node` asks the quick form, `evaluate` the plain rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{ClusterPod, NodeName, PodSpec, Reach, Reservable};
use rules::{
    Cluster, Decision, DeviceNeeds, FailureCause, Placement, PodVolumeNeeds, Preemption, Reason,
    Rules, best_among, decide_among, fits_somewhere, preempt_after,
};

use crate::engine::Engine;
use crate::placing::{Choice, Diagnosis, PodClassKey, View};
use crate::queue::ParkKey;
use crate::rejection::{FailedAttempt, NodesRejection};

/// The result of the plain rules for one Pod on all Nodes.
pub(crate) enum Evaluation {
    Feasible(Placement),
    Rejected {
        nodes: BTreeMap<NodeName, Vec<Reason>>,
        rejected: NodesRejection,
        preemption: Preemption,
    },
    /// The attempt ends with an error.
    Failed(FailedAttempt),
}

impl Evaluation {
    pub fn feasible(&self) -> usize {
        match self {
            Self::Feasible(placement) => placement.feasible.len(),
            Self::Rejected { .. } | Self::Failed(_) => 0,
        }
    }
}

impl Engine {
    /// The Pod of this class as the rules see it, with what it refers to as it is now.
    pub(crate) fn pod_to_place(&self, key: &ParkKey) -> ClusterPod {
        let mut pod = key.as_pod();
        let objects = key.objects.iter().filter_map(|object| self.observed.objects.get(object));
        pod.reach = objects.map(reach).collect();
        pod
    }

    /// One of the best Nodes for a Pod of this class, or why there is none. `None`: only [`Self::evaluate`] can tell.
    pub(crate) fn best_node(&mut self, key: &ParkKey) -> Option<Result<NodeName, Diagnosis>> {
        if key.has_claims() {
            return self.best_node_with_claims(key);
        }
        let class = self.class_key_without_claims(key);
        let rules = &self.config.profiles.of(&key.profile).rules;
        let nominated =
            key.nominated.as_ref().and_then(|(node, _)| self.observed.cluster.nodes.get(node));
        if let Some(node) = nominated {
            let to_place = self.pod_to_place(key);
            if rules::filter(rules, &self.observed.cluster, &to_place, node).is_empty() {
                return Some(Ok(node.node.name.clone()));
            }
        }
        let view = View { rules, cluster: &self.observed.cluster };
        match self.placing.choose(view, &class, &mut self.rng) {
            Choice::On(node) => Some(Ok(node)),
            Choice::Nowhere => {
                let nominated = key.nominated.as_ref().map(|_| self.pod_to_place(key));
                let (placing, rng) = (&mut self.placing, &mut self.rng);
                placing.diagnose(view, &class, nominated.as_ref(), rng).map(Err)
            }
            Choice::Unknown => None,
        }
    }

    /// The same for a Pod with claims. Its nominated Node, or the few that they can be used on, are tried first.
    fn best_node_with_claims(&mut self, key: &ParkKey) -> Option<Result<NodeName, Diagnosis>> {
        let pod = self.pod_to_place(key);
        let rules = &self.config.profiles.of(&key.profile).rules;
        let cluster = &self.observed.cluster;
        if let Some((name, _)) = &key.nominated {
            let node = cluster.nodes.get(name)?;
            let fits = rules::filter(rules, cluster, &pod, node).is_empty();
            return fits.then(|| Ok(name.clone()));
        }
        let devices = device_needs(rules, cluster, &pod)?;
        let named = devices.as_ref().and_then(DeviceNeeds::named_nodes);
        let mut few = named.map(|it| it.into_iter().collect::<Vec<NodeName>>());
        let volumes = if key.volumes.is_empty() {
            None
        } else {
            let volumes = PodVolumeNeeds::of(rules, cluster, &pod)?;
            few = few.or_else(|| self.placing.few_nodes_for(&volumes, cluster));
            Some(volumes)
        };
        if let Some(few) = few {
            let best = best_among(rules, cluster, &pod, few.iter())?;
            return Some(Ok(self.any_of(&best)));
        }
        if volumes.as_ref().is_some_and(|volumes| self.placing.has_room_for_rest(volumes)) {
            return None;
        }
        let volumes = volumes.map(|it| Arc::new(it.needs));
        let devices = devices.map(Arc::new);
        let class = PodClassKey { volumes, devices, ..self.class_key_without_claims(key) };
        let view = View { rules, cluster };
        let (placing, rng) = (&mut self.placing, &mut self.rng);
        match placing.choose(view, &class, rng) {
            Choice::On(node) => Some(Ok(node)),
            Choice::Nowhere => placing.diagnose(view, &class, None, rng).map(Err),
            Choice::Unknown => None,
        }
    }

    /// Why a Pod with claims is rejected before any Node is tried: most often they are not there, or not bound. No Node is looked
    /// at, because thousands may wait so.
    pub(crate) fn rejected_as_whole(&self, key: &ParkKey) -> Option<NodesRejection> {
        let (rules, cluster) = (self.rules_of(&key.profile), &self.observed.cluster);
        if !key.has_claims() || cluster.nodes.is_empty() {
            return None;
        }
        let reason = rules::rejected_as_whole(rules, cluster, &self.pod_to_place(key))?;
        Some(NodesRejection::of_pod(reason, cluster, !rules.switched_off.preemption))
    }

    /// The class of Pod by what bears on where it goes, with what it refers to as it is now. `None`: only the plain rules
    /// know what its claims ask for.
    pub(crate) fn class_key(&mut self, key: &ParkKey) -> Option<PodClassKey> {
        let class = self.class_key_without_claims(key);
        if !key.has_claims() {
            return Some(class);
        }
        let rules = &self.config.profiles.of(&key.profile).rules;
        let cluster = &self.observed.cluster;
        let pod = self.pod_to_place(key);
        let devices = device_needs(rules, cluster, &pod)?;
        if devices.as_ref().is_some_and(|it| it.named_nodes().is_some()) {
            return None;
        }
        let class = PodClassKey { devices: devices.map(Arc::new), ..class };
        if key.volumes.is_empty() {
            return Some(class);
        }
        let volumes = PodVolumeNeeds::of(rules, cluster, &pod)?;
        let is_odd = !volumes.needs.has_known_reasons()
            || self.placing.few_nodes_for(&volumes, cluster).is_some()
            || self.placing.has_room_for_rest(&volumes);
        (!is_odd).then(|| PodClassKey { volumes: Some(Arc::new(volumes.needs)), ..class })
    }

    /// The same, of what is asked for besides claims.
    pub(crate) fn class_key_without_claims(&self, key: &ParkKey) -> PodClassKey {
        let objects = key.objects.iter().filter_map(|object| self.observed.objects.get(object));
        PodClassKey {
            profile: key.profile.clone(),
            namespace: key.namespace.clone(),
            scheduling: key.scheduling.clone(),
            reach: objects.map(reach).collect(),
            volumes: None,
            devices: None,
        }
    }

    pub(crate) fn evaluate(&self, key: &ParkKey) -> Evaluation {
        self.evaluate_among(key, usize::MAX)
    }

    /// Evaluates at most `nodes_max` Nodes.
    pub(crate) fn evaluate_among(&self, key: &ParkKey, nodes_max: usize) -> Evaluation {
        let (rules, pod) = (self.rules_of(&key.profile), &self.pod_to_place(key));
        match decide_among(rules, &self.observed.cluster, pod, nodes_max) {
            Decision::Placed(placement) => Evaluation::Feasible(placement),
            Decision::Failed(failure) => Evaluation::Failed(FailedAttempt {
                why: failure.to_string(),
                is_retried: matches!(failure.why, FailureCause::Volume(_)),
            }),
            Decision::Rejected(rejection) => {
                let preemption = if rejection.nodes.is_empty() {
                    Preemption::NotTried
                } else {
                    preempt_after(rules, &self.observed.cluster, pod, &rejection)
                };
                let rejected = NodesRejection::new(&rejection, &preemption);
                Evaluation::Rejected { nodes: rejection.nodes, rejected, preemption }
            }
        }
    }

    pub(crate) fn fits_some_node(&self, spec: &PodSpec) -> bool {
        let pod = self.pod_to_place(&ParkKey::of(spec));
        fits_somewhere(self.rules_of(&spec.profile), &self.observed.cluster, &pod)
    }
}

/// What the Pod asks of devices, if anything. `None`: only the plain rules can tell.
#[expect(clippy::option_option, reason = "no needs are not needs that are unknown")]
fn device_needs(rules: &Rules, cluster: &Cluster, pod: &ClusterPod) -> Option<Option<DeviceNeeds>> {
    let needs = DeviceNeeds::of(rules, cluster, pod)?;
    Some((!needs.is_empty()).then_some(needs))
}

fn reach(object: &Reservable) -> Reach {
    Reach { object: object.object.clone(), node_selector: object.node_selector.clone() }
}

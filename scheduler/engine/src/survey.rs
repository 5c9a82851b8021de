//! What the Nodes say of a Pod: the rules of kube-scheduler, asked for one Pod at a time.

use std::collections::BTreeMap;

use model::{ClusterPod, NodeName, PodSpec, PodUid, Reach, Reservable};
use rules::{Decision, Placement, Preemption, Reason, decide_among, fits_somewhere, preempt_after};

use crate::engine::Engine;
use crate::placing::{Choice, KindKey, View, WhyNowhere};
use crate::queue::ParkKey;
use crate::record::Record;
use crate::rejection::NodesRejection;
use crate::wake::Change;

/// What all Nodes say of a Pod.
pub(crate) enum Survey {
    Feasible(Placement),
    Rejected {
        nodes: BTreeMap<NodeName, Vec<Reason>>,
        rejected: NodesRejection,
        preemption: Preemption,
    },
    /// The Pod cannot be understood.
    Failed(String),
}

impl Survey {
    pub fn feasible(&self) -> usize {
        match self {
            Self::Feasible(placement) => placement.feasible.len(),
            Self::Rejected { .. } | Self::Failed(_) => 0,
        }
    }
}

impl Engine {
    /// Brings what the cluster shows of a Pod in line with what is known of it: the only way in
    /// which a Pod of ours comes to a Node, leaves it, or is promised one.
    pub(crate) fn reflect(&mut self, uid: &PodUid) {
        let (record, shown) = (self.pods.get(uid), self.cluster.pods().get(uid).map(|pod| &**pod));
        if record.map_or(shown.is_none(), |record| record.is_shown_as(shown)) {
            return;
        }
        let after = self.pods.get_mut(uid).and_then(Record::show);
        let before = match &after {
            Some(pod) => self.cluster.insert_pod(pod.clone()),
            None => self.cluster.remove_pod(uid),
        };
        let (before, after) = (before.as_deref(), after.as_deref());
        self.cluster_changed(Change::Pod { before, after });
    }

    /// The Pod of this kind as the rules see it, with what it refers to as it is now.
    pub(crate) fn asking(&self, key: &ParkKey) -> ClusterPod {
        let mut pod = key.as_pod();
        let objects = key.objects.iter().filter_map(|object| self.objects.get(object));
        pod.reach = objects.map(reach).collect();
        pod
    }

    /// One of the best Nodes for a Pod of this kind, or why there is none. `None`: only a survey can tell.
    pub(crate) fn best_node(&mut self, kind: &ParkKey) -> Option<Result<NodeName, WhyNowhere>> {
        let key = self.placed_as(kind);
        let rules = &self.config.profiles.of(&kind.profile).rules;
        let promised = kind.nominated.as_ref().and_then(|(node, _)| self.cluster.nodes.get(node));
        if let Some(node) = promised {
            let asking = self.asking(kind);
            if rules::filter(rules, &self.cluster, &asking, node).is_empty() {
                return Some(Ok(node.node.name.clone()));
            }
        }
        let view = View { rules, cluster: &self.cluster };
        match self.placing.choose(view, &key, &mut self.rng) {
            Choice::On(node) => Some(Ok(node)),
            Choice::Nowhere => {
                let promised = kind.nominated.as_ref().map(|_| self.asking(kind));
                let (placing, rng) = (&mut self.placing, &mut self.rng);
                placing.why_nowhere(view, &key, promised.as_ref(), rng).map(Err)
            }
            Choice::Unknown => None,
        }
    }

    /// The kind of Pod by what bears on where it goes, with what it refers to as it is now.
    pub(crate) fn placed_as(&self, kind: &ParkKey) -> KindKey {
        let objects = kind.objects.iter().filter_map(|object| self.objects.get(object));
        KindKey {
            profile: kind.profile.clone(),
            namespace: kind.namespace.clone(),
            scheduling: kind.scheduling.clone(),
            reach: objects.map(reach).collect(),
        }
    }

    pub(crate) fn survey(&self, kind: &ParkKey) -> Survey {
        self.survey_some(kind, usize::MAX)
    }

    /// Looks at no more Nodes than this.
    pub(crate) fn survey_some(&self, kind: &ParkKey, nodes_max: usize) -> Survey {
        let (rules, pod) = (self.rules_of(&kind.profile), &self.asking(kind));
        match decide_among(rules, &self.cluster, pod, nodes_max) {
            Decision::Placed(placement) => Survey::Feasible(placement),
            Decision::Failed(failure) => Survey::Failed(failure.to_string()),
            Decision::Rejected(rejection) => {
                let preemption = if rejection.nodes.is_empty() {
                    Preemption::NotTried
                } else {
                    preempt_after(rules, &self.cluster, pod, &rejection)
                };
                let rejected = NodesRejection::new(&rejection, &preemption);
                Survey::Rejected { nodes: rejection.nodes, rejected, preemption }
            }
        }
    }

    pub(crate) fn fits_some_node(&self, spec: &PodSpec) -> bool {
        let pod = self.asking(&ParkKey::of(spec));
        fits_somewhere(self.rules_of(&spec.profile), &self.cluster, &pod)
    }
}

fn reach(object: &Reservable) -> Reach {
    Reach { object: object.object.clone(), node_selector: object.node_selector.clone() }
}

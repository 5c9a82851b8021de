//! The plain rules' answer beside kube-scheduler's.

use std::collections::BTreeSet;
use std::fmt;

use model::{ClusterPod, NodeName, PodVolumeBindings};
use random_clusters::faults::Fault;
use rules::{
    Candidate, Cluster, Decision, Failure, Placement, Plugin, Preemption, Rejection, Rules, decide,
    find_pod_volumes, preempt,
};
use serde_json::Value;

use crate::faults::fault;
use crate::kube_scheduler::Answer;
use crate::translate;

/// What can be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    Answer,
    Outcome,
    ChosenNode,
    ScoredNodes,
    TotalScore,
    PluginScore,
    Message,
    FailedPlugin,
    ErrorText,
    NominatedNode,
    Victims,
    Volumes,
}

#[derive(Debug)]
pub struct Difference {
    pub about: About,
    pub ours: String,
    pub real: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { about, ours, real } = self;
        write!(f, "{about:?}\n  plain rules:    {ours}\n  kube-scheduler: {real}")
    }
}

pub struct Verdict {
    /// How the case ended, for the statistics.
    pub kind: String,
    pub differences: Vec<Difference>,
    /// A fault of kube-scheduler that may show in the case.
    pub fault: Option<&'static Fault>,
}

/// What kube-scheduler says of a Pod that it chose a Node for, when its claims are not bound yet.
const NOT_BOUND_YET: &str = "running PreBind plugin \"VolumeBinding\": binding volumes: ";

/// The plain rules may do without a plugin, to see that it matters.
pub fn judge(case: &Value, answer: &Answer, without: Option<Plugin>) -> Verdict {
    let (mut rules, cluster) = (translate::rules(case), translate::cluster(case));
    rules.switched_off.filters.extend(without);
    let pod = translate::incoming(case);
    let mut findings = Findings(vec![]);
    findings.same(About::Answer, "", &answer.error);
    let is_placed = answer.message.starts_with(NOT_BOUND_YET);
    let real_reason = if is_placed { "" } else { &answer.reason };
    let decision = decide(&rules, &cluster, &pod);
    let reason = match &decision {
        Decision::Placed(_) => "",
        Decision::Rejected(_) => "Unschedulable",
        Decision::Failed(_) => "SchedulerError",
    };
    findings.outcome(&decision, reason, real_reason, answer);
    let is_comparable = findings.0.is_empty();
    let kind = match &decision {
        Decision::Placed(placement) => {
            if is_comparable {
                findings.placement(placement, answer);
                findings.volumes((&rules, &cluster, &pod), answer);
            }
            let scored = if placement.scores.is_empty() { "the only Node" } else { "by score" };
            let bound = if is_placed { ", volumes to bind" } else { "" };
            format!("placed, {scored}{bound}")
        }
        Decision::Rejected(rejection) => {
            let preemption = preempt(&rules, &cluster, &pod);
            if is_comparable {
                findings.rejection(rejection, &preemption, answer);
                findings.preemption(&cluster, &pod, &preemption, answer);
            }
            format!("rejected, {}", preemption_kind(&preemption))
        }
        Decision::Failed(failure) => {
            if is_comparable {
                findings.failure(failure, answer);
            }
            format!("failed, {}", failure.plugin)
        }
    };
    let fault = fault(case, &findings.0);
    Verdict { kind, differences: findings.0, fault }
}

fn preemption_kind(preemption: &Preemption) -> String {
    match preemption {
        Preemption::NotTried => "no Nodes".to_owned(),
        Preemption::ClaimsNotFound => "the Pod as a whole".to_owned(),
        Preemption::NotEligible(_) => "preemption not allowed".to_owned(),
        Preemption::NotHelpful(_) => "preemption does not help".to_owned(),
        Preemption::Possible { candidates, best } => {
            let victims = best.iter().filter_map(|node| candidates.get(node));
            match victims.map(|candidate| candidate.victims.len()).max() {
                Some(1) => "preemption of 1 Pod".to_owned(),
                Some(2) => "preemption of 2 Pods".to_owned(),
                _ => "preemption of 3 or more Pods".to_owned(),
            }
        }
    }
}

struct Findings(Vec<Difference>);

impl Findings {
    fn add(&mut self, about: About, ours: String, real: String) {
        self.0.push(Difference { about, ours, real });
    }

    fn same(&mut self, about: About, ours: &str, real: &str) {
        if ours != real {
            self.add(about, ours.to_owned(), real.to_owned());
        }
    }

    /// Where kube-scheduler leaves it to chance, it must take one of ours.
    fn one_of(&mut self, about: About, ours: &BTreeSet<NodeName>, real: &str) {
        if !ours.iter().any(|name| name.as_str() == real) {
            self.add(about, format!("one of {ours:?}"), real.to_owned());
        }
    }

    fn placement(&mut self, placement: &Placement, answer: &Answer) {
        self.one_of(About::ChosenNode, &placement.best, &answer.suggested);
        if answer.reason.is_empty() {
            self.same(About::ChosenNode, &answer.suggested, &answer.node);
        }
        let scored: Vec<&str> = placement.scores.keys().map(NodeName::as_str).collect();
        let totals = answer.totals.as_ref();
        let scored_really: Vec<&str> =
            totals.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        self.same(About::ScoredNodes, &format!("{scored:?}"), &format!("{scored_really:?}"));
        for (name, score) in &placement.scores {
            let of_node = |what: &str, score: i64| format!("{what} of {name}: {score}");
            let node = name.as_str();
            if let Some(real) = totals.and_then(|totals| totals.get(node)) {
                self.same(
                    About::TotalScore,
                    &of_node("total", score.total),
                    &of_node("total", *real),
                );
            }
            let plugins = answer.plugins.as_ref().and_then(|nodes| nodes.get(node));
            for ours in &score.plugins {
                let plugin = ours.plugin.to_string();
                let real = plugins.and_then(|plugins| plugins.get(&plugin));
                if real != Some(&ours.weighted) {
                    let real = format!("{real:?} (all: {plugins:?})");
                    self.add(About::PluginScore, format!("on {name}: {ours:?}"), real);
                }
            }
        }
    }

    /// The words of both, where the outcomes are not the same.
    fn outcome(&mut self, decision: &Decision, ours: &str, real: &str, answer: &Answer) {
        if ours == real {
            return;
        }
        let ours = match decision {
            Decision::Placed(placement) => format!("placed on one of {:?}", placement.best),
            Decision::Rejected(rejection) => rejection.message(),
            Decision::Failed(failure) => failure.to_string(),
        };
        let Answer { suggested, message, .. } = answer;
        self.add(About::Outcome, ours, format!("{suggested} {message}"));
    }

    /// What is written for the Pod's claims, on the Node that kube-scheduler chose: PersistentVolumes by their sizes.
    fn volumes(&mut self, (rules, cluster, pod): (&Rules, &Cluster, &ClusterPod), answer: &Answer) {
        let Some(node) = cluster.nodes.get(&answer.suggested.as_str().into()) else { return };
        let found = find_pod_volumes(rules, cluster, pod, node);
        let bindings = found.unwrap_or_else(|reasons| {
            self.add(About::Volumes, format!("{reasons:?}"), answer.suggested.clone());
            PodVolumeBindings::default()
        });
        let size = |volume| cluster.objects.volumes.get(volume).map_or(0, |it| it.capacity.value());
        let taken = bindings.static_bindings.iter();
        let mut taken: Vec<_> =
            taken.map(|(claim, volume)| format!("{claim} {}", size(volume))).collect();
        let provisioned = bindings.dynamic_provisions.iter();
        let mut provisioned: Vec<_> =
            provisioned.map(|claim| format!("{claim} {}", answer.suggested)).collect();
        for (ours, real) in [(&mut taken, &answer.taken), (&mut provisioned, &answer.provisioned)] {
            let mut real = real.clone().unwrap_or_default();
            ours.sort();
            real.sort();
            self.same(About::Volumes, &ours.join(", "), &real.join(", "));
        }
    }

    fn rejection(&mut self, rejection: &Rejection, preemption: &Preemption, answer: &Answer) {
        self.same(About::Message, &rejection.message_with(preemption), &answer.message);
    }

    fn preemption(
        &mut self,
        cluster: &Cluster,
        pod: &ClusterPod,
        preemption: &Preemption,
        answer: &Answer,
    ) {
        let mut victims = vec![];
        if let Preemption::Possible { candidates, best } = preemption {
            self.one_of(About::NominatedNode, best, &answer.nominated);
            if let Some(candidate) = candidates.get(&answer.nominated.as_str().into()) {
                victims = to_delete(cluster, candidate);
            }
        } else if pod.nominated_node.is_none() {
            self.same(About::NominatedNode, "", &answer.nominated);
        }
        let mut deleted = answer.victims.clone().unwrap_or_default();
        victims.sort();
        deleted.sort();
        self.same(About::Victims, &victims.join(", "), &deleted.join(", "));
    }

    fn failure(&mut self, failure: &Failure, answer: &Answer) {
        let plugin = format!("plugin \"{}\"", failure.plugin);
        let filter = format!("running \"{}\" filter plugin", failure.plugin);
        if !answer.message.contains(&plugin) && !answer.message.contains(&filter) {
            self.add(About::FailedPlugin, plugin, answer.message.clone());
        }
        self.same(About::ErrorText, &failure.to_string(), &answer.message);
    }
}

/// kube-scheduler does not delete Pods that are already terminating.
fn to_delete(cluster: &Cluster, candidate: &Candidate) -> Vec<String> {
    let victims = candidate.victims.iter().filter_map(|uid| cluster.pods().get(uid));
    let staying = victims.filter(|pod| !pod.deletion.is_terminating());
    staying.map(|pod| format!("{}/{}", pod.key.namespace, pod.key.name)).collect()
}

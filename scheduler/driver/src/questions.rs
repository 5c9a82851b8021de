//! Questions to the engine from outside its loop, and the answers as JSON.
//!
//! They are answered between two turns of the loop, from the state as it is then, and change nothing.
//! The number that may wait is bounded: further questions are rejected at once and delay no decision.

use std::collections::BTreeMap;

use engine::{
    Basis, Confidence, Dominant, Engine, Estimate, Explanation, PreemptionExplained, Work,
};
use jiff::Timestamp;
use model::ObjectKey;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::profile_names::ProfileNames;
use crate::translate;
use crate::wire::WirePod;

/// Questions that wait for the loop. An answer takes an evaluation of all Nodes, milliseconds at most.
const WAITING_MAX: usize = 16;
/// Nodes that a question may look at: in the largest cluster that Kubernetes is made for, all of them.
/// What binds waits meanwhile, so no more than that.
const EVALUATION: Work = Work { attempts_max: 1, nodes_max: 5_000 };

#[derive(Debug)]
enum Question {
    Explain(ObjectKey),
    When(ObjectKey),
    WhatIf(Box<model::PodSpec>),
}

#[derive(Debug)]
pub(crate) struct Asked {
    question: Question,
    answer: oneshot::Sender<Option<Value>>,
}

/// Asks; cheap to clone.
#[derive(Clone, Debug)]
pub struct Questions {
    sender: mpsc::Sender<Asked>,
    profiles: ProfileNames,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuestionError {
    #[error("no Pod {0} is known; only Pods of this scheduler are explained")]
    NotFound(ObjectKey),
    #[error("too many questions are waiting; ask again in a moment")]
    Busy,
    #[error("the scheduler is stopping")]
    Stopped,
    #[error("the body is not a Pod: {0}")]
    BadPod(String),
}

impl Questions {
    pub(crate) fn new(profiles: ProfileNames) -> (Self, mpsc::Receiver<Asked>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Self { sender, profiles }, receiver)
    }

    /// Why the Pod is where it is.
    pub async fn explain(&self, namespace: &str, name: &str) -> Result<Value, QuestionError> {
        let pod = ObjectKey::new(namespace, name);
        let known = self.ask(Question::Explain(pod.clone())).await?;
        known.ok_or(QuestionError::NotFound(pod))
    }

    /// When the Pod could start, and what that rests on.
    pub async fn when(&self, namespace: &str, name: &str) -> Result<Value, QuestionError> {
        let pod = ObjectKey::new(namespace, name);
        let known = self.ask(Question::When(pod.clone())).await?;
        known.ok_or(QuestionError::NotFound(pod))
    }

    /// Where a Pod would go that does not exist.
    pub async fn what_if(&self, pod: &[u8]) -> Result<Value, QuestionError> {
        let spec = hypothetical(pod, &self.profiles).map_err(QuestionError::BadPod)?;
        let answer = self.ask(Question::WhatIf(Box::new(spec))).await?;
        answer.ok_or(QuestionError::Stopped)
    }

    async fn ask(&self, question: Question) -> Result<Option<Value>, QuestionError> {
        let (answer, answered) = oneshot::channel();
        self.sender.try_send(Asked { question, answer }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => QuestionError::Busy,
            mpsc::error::TrySendError::Closed(_) => QuestionError::Stopped,
        })?;
        answered.await.map_err(|_| QuestionError::Stopped)
    }
}

impl Asked {
    pub(crate) fn answer(self, engine: &Engine, now: Timestamp) {
        let answer = match self.question {
            Question::Explain(pod) => engine.explain(&pod).map(|it| explanation(&it)),
            Question::When(pod) => engine.when(&pod, now.as_second()).map(|it| estimate(&it)),
            Question::WhatIf(spec) => Some(explanation(&engine.what_if(&spec, EVALUATION))),
        };
        // The requester may have gone.
        let _ = self.answer.send(answer);
    }
}

/// What a Pod asks for, read as if it had just been created for this scheduler: by the profile it names, if
/// that is one of ours.
fn hypothetical(pod: &[u8], profiles: &ProfileNames) -> Result<model::PodSpec, String> {
    let object: Value = serde_json::from_slice(pod).map_err(|error| error.to_string())?;
    if object["spec"]["containers"].as_array().is_none_or(Vec::is_empty) {
        return Err("spec.containers must name a container".to_owned());
    }
    let mut wire: WirePod = serde_json::from_value(object).map_err(|error| error.to_string())?;
    let metadata = &mut wire.metadata;
    metadata.namespace.get_or_insert_with(|| "default".to_owned());
    metadata.name.get_or_insert_with(|| "what-if".to_owned());
    metadata.uid = Some("what-if".to_owned());
    metadata.resource_version = Some("0".to_owned());
    metadata.deletion_timestamp = None;
    if !profiles.has(&wire.spec.scheduler_name) {
        profiles.first().clone_into(&mut wire.spec.scheduler_name);
    }
    wire.spec.node_name.clear();
    wire.spec.scheduling_gates.clear();
    wire.status.phase.clear();
    let pod = translate::pod(&wire, profiles).ok_or("it has no identity")?;
    Ok(model::PodSpec::clone(&pod.spec))
}

pub(crate) fn explanation(explanation: &Explanation) -> Value {
    let nodes = &explanation.nodes;
    let reasons: Vec<Value> = nodes
        .reasons
        .iter()
        .map(|it| {
            json!({
                "plugin": it.plugin, "reason": it.reason, "count": it.count,
                "examples": it.examples,
            })
        })
        .collect();
    let best: Vec<&str> = nodes.best.iter().map(model::NodeName::as_str).collect();
    let line = explanation.line.as_ref().map(|line| {
        json!({
            "object": line.object.to_string(), "position": line.position, "length": line.length,
        })
    });
    json!({
        "pod": explanation.pod.to_string(),
        "state": explanation.state,
        "message": explanation.message,
        "dominant": explanation.dominant.as_ref().map(dominant),
        "nominatedNode": explanation.nominated_node.as_ref().map(model::NodeName::as_str),
        "preemption": explanation.preemption.as_ref().map(preemption),
        "nodes": {
            "total": nodes.total, "lookedAt": nodes.looked_at, "feasible": nodes.feasible, "best": best, "reasons": reasons,
        },
        "waitingSeconds": explanation.waiting_for.as_secs(),
        "line": line,
        "wakesOn": explanation.wakes_on,
    })
}

fn preemption(preemption: &PreemptionExplained) -> Value {
    let names = |pods: &[ObjectKey]| pods.iter().map(ToString::to_string).collect::<Vec<_>>();
    let victims = preemption.victims.iter();
    let victims: BTreeMap<&str, _> =
        victims.map(|(node, pods)| (node.as_str(), names(pods))).collect();
    json!({
        "message": preemption.message,
        "nodes": preemption.nodes.iter().map(model::NodeName::as_str).collect::<Vec<_>>(),
        "victims": victims,
    })
}

fn dominant(dominant: &Dominant) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let whole = |milli: u64| milli as f64 / 1000.0;
    json!({
        "plugin": dominant.plugin,
        "reason": dominant.reason,
        "object": dominant.object.as_ref().map(ToString::to_string),
        "needed": whole(dominant.needed_milli),
        "free": whole(dominant.free_milli),
        "deficit": whole(dominant.deficit_milli),
        "unit": dominant.unit,
    })
}

fn estimate(estimate: &Estimate) -> Value {
    let time = |unix_s: i64| {
        Timestamp::from_second(unix_s).map_or_else(|_| unix_s.to_string(), |at| at.to_string())
    };
    let basis = |basis: &Basis| match basis {
        Basis::Fact(text) => text.clone(),
        Basis::End { pod, end, node } => {
            let place = node.as_ref().map(|node| format!(" on node {node}")).unwrap_or_default();
            format!("Pod {pod}{place} ends at {} ({})", time(end.at_unix_s), end.by.name())
        }
    };
    let known = estimate.confidence != Confidence::Unknown;
    json!({
        "earliest": estimate.earliest_unix_s.filter(|_| known).map(time),
        "basis": estimate.basis.iter().map(basis).collect::<Vec<_>>(),
        "confidence": estimate.confidence.name(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::EngineConfig;

    #[test]
    fn a_hypothetical_pod_is_read_like_a_real_one() {
        let pod = br#"{"metadata":{"namespace":"a","annotations":{
            "corridoros.io/corridorRef":"a/c1","corridoros.io/corridorGbps":"40"}},
            "spec":{"nodeName":"taken","containers":[{"name":"m"}]}}"#;
        let spec = hypothetical(pod, &ProfileNames::default()).unwrap();
        assert_eq!(spec.needs.len(), 1);
        assert_eq!(&*spec.namespace, "a");
        for nonsense in [&b"[]"[..], b"{}", b"", br#"{"spec":{"containers":[]}}"#, b"\xff"] {
            assert!(hypothetical(nonsense, &ProfileNames::default()).is_err());
        }
    }

    #[tokio::test]
    async fn answers_have_the_promised_fields() {
        let (questions, mut asked) = Questions::new(ProfileNames::default());
        let engine = Engine::new(EngineConfig::default());
        let loops = async {
            for _ in 0..2 {
                asked.recv().await.unwrap().answer(&engine, Timestamp::UNIX_EPOCH);
            }
        };
        let (answer, unknown, ()) = tokio::join!(
            questions.what_if(br#"{"spec":{"containers":[{}]}}"#),
            questions.explain("a", "p"),
            loops
        );
        let answer = answer.unwrap();
        let fields =
            ["pod", "state", "message", "dominant", "nodes", "waitingSeconds", "line", "wakesOn"];
        for field in fields {
            assert!(answer.get(field).is_some(), "{field} of {answer}");
        }
        assert_eq!(answer["message"], "no nodes available to schedule pods");
        assert!(unknown.unwrap_err().to_string().contains("no Pod a/p is known"));
    }

    #[tokio::test]
    async fn who_asks_too_much_is_told_so() {
        let (questions, _asked) = Questions::new(ProfileNames::default());
        let many = futures::future::join_all(
            (0..=WAITING_MAX).map(|_| tokio::time::timeout(SHORT, questions.explain("a", "p"))),
        );
        let busy = many.await.into_iter().filter(|it| *it == Ok(Err(QuestionError::Busy)));
        assert_eq!(busy.count(), 1);
    }

    const SHORT: std::time::Duration = std::time::Duration::from_millis(50);
}

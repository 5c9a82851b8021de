//! Questions to the engine from outside its loop.
//!
//! They are answered from the state between two turns of the loop, and change nothing. The loop hands them to the
//! journal's twin (`journal/twin/`), and answers only those for which there is no twin yet.
//! Few may wait at a time; one more is refused, so that questions delay no Binding.

use std::panic::{AssertUnwindSafe, catch_unwind};

use engine::{Engine, Work};
use jiff::Timestamp;
use model::ObjectKey;
use tokio::sync::{mpsc, oneshot};
use tracing::error;

use crate::answers::{estimate, explanation};
use crate::hypothetical_pod::hypothetical_pod;
use crate::profile_names::ProfileNames;

/// Questions that wait for the loop, and as many for the twin. An answer takes an evaluation of all Nodes,
/// milliseconds at most.
pub(crate) const WAITING_MAX: usize = 16;
/// Nodes that a question may look at: in the largest cluster that Kubernetes is made for, all of them.
/// Without a twin, what binds waits meanwhile, so no more than that.
const EVALUATION: Work = Work { attempts_max: 1, nodes_max: 5_000 };

/// The answer is `None` for a Pod that is not known.
pub(crate) type Reply<A> = oneshot::Sender<Result<Option<A>, QuestionError>>;

/// A question with the way for its answer.
#[derive(Debug)]
pub(crate) enum Asked {
    Explain(ObjectKey, Reply<api::Explanation>),
    When(ObjectKey, Reply<api::Estimate>),
    WhatIf(Box<model::PodSpec>, Reply<api::Explanation>),
    /// Begins and ends when the test says so; fails if the test hangs up instead.
    #[cfg(test)]
    Slow(std::sync::mpsc::Receiver<()>, Reply<()>),
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
    #[error("the scheduler failed on this question, and its log says why; decisions go on")]
    Failed,
}

impl Questions {
    pub(crate) fn new(profiles: ProfileNames) -> (Self, mpsc::Receiver<Asked>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Self { sender, profiles }, receiver)
    }

    /// Why the Pod is where it is.
    pub async fn explain(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<api::Explanation, QuestionError> {
        let pod = ObjectKey::new(namespace, name);
        let known = self.ask(|reply| Asked::Explain(pod.clone(), reply)).await?;
        known.ok_or(QuestionError::NotFound(pod))
    }

    /// When the Pod could start, and what that rests on.
    pub async fn when(&self, namespace: &str, name: &str) -> Result<api::Estimate, QuestionError> {
        let pod = ObjectKey::new(namespace, name);
        let known = self.ask(|reply| Asked::When(pod.clone(), reply)).await?;
        known.ok_or(QuestionError::NotFound(pod))
    }

    /// Where a Pod would go that does not exist.
    pub async fn what_if(&self, pod: &[u8]) -> Result<api::Explanation, QuestionError> {
        let spec = hypothetical_pod(pod, &self.profiles).map_err(QuestionError::BadPod)?;
        let answer = self.ask(|reply| Asked::WhatIf(Box::new(spec), reply)).await?;
        answer.ok_or(QuestionError::Stopped)
    }

    async fn ask<A>(
        &self,
        question: impl FnOnce(Reply<A>) -> Asked,
    ) -> Result<Option<A>, QuestionError> {
        let (reply, answered) = oneshot::channel();
        self.sender.try_send(question(reply)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => QuestionError::Busy,
            mpsc::error::TrySendError::Closed(_) => QuestionError::Stopped,
        })?;
        answered.await.map_err(|_| QuestionError::Stopped)?
    }
}

impl Asked {
    pub(crate) fn answer(self, engine: &Engine, now: Timestamp) {
        match self {
            Self::Explain(pod, reply) => {
                send(reply, || engine.explain(&pod).map(|it| explanation(&it)));
            }
            Self::When(pod, reply) => {
                send(reply, || engine.when(&pod, now.as_second()).map(|it| estimate(&it)));
            }
            Self::WhatIf(spec, reply) => {
                send(reply, || Some(explanation(&engine.what_if(&spec, EVALUATION))));
            }
            #[cfg(test)]
            Self::Slow(until, reply) => send(reply, || {
                until.recv().unwrap();
                until.recv().unwrap();
                Some(())
            }),
        }
    }

    pub(crate) fn refuse(self, why: QuestionError) {
        // The requester may have gone.
        match self {
            Self::Explain(_, reply) | Self::WhatIf(_, reply) => drop(reply.send(Err(why))),
            Self::When(_, reply) => drop(reply.send(Err(why))),
            #[cfg(test)]
            Self::Slow(_, reply) => drop(reply.send(Err(why))),
        }
    }
}

/// A requester that has gone meanwhile costs nothing. A panic costs one answer: the engine is only looked at, and is
/// as it was.
fn send<A>(reply: Reply<A>, answer: impl FnOnce() -> Option<A>) {
    if reply.is_closed() {
        return;
    }
    let answered = catch_unwind(AssertUnwindSafe(answer)).map_err(|_| {
        error!("a question failed; decisions and other questions go on");
        QuestionError::Failed
    });
    let _ = reply.send(answered);
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::EngineConfig;

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
        let answer = serde_json::to_value(answer.unwrap()).unwrap();
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

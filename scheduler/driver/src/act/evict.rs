//! Makes a victim go, one step at a time.

use std::time::Duration;

use engine::{Eviction, EvictionStep};
use http::{Method, Request};
use kube::Client;
use model::PodUid;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tracing::warn;

use super::{CALL_TIMEOUT, JSON, STRATEGIC_MERGE, request};
use crate::clock::wall_clock;
use crate::wire::{DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER, WirePod};

/// Of an announcement, or of taking it back. Then the victim stays, and the preemptor is tried again.
const TRIES_MAX: u32 = 3;
/// Before the second try; doubled before each further one.
const PAUSE_FIRST: Duration = Duration::from_millis(250);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EvictOutcome {
    Announced,
    Deleted,
    Withdrawn,
    /// It has gone by itself, or another Pod stands under its name.
    Gone,
    /// It was not deleted, this time.
    Delayed,
    /// It is still there.
    Failed,
}

/// How a step ended, in the engine's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EvictReport {
    Done { victim: PodUid, step: EvictionStep },
    Delayed { victim: PodUid },
    Failed { victim: PodUid },
}

impl EvictReport {
    pub fn new(eviction: &Eviction, outcome: EvictOutcome) -> Self {
        let victim = eviction.uid.clone();
        match outcome {
            EvictOutcome::Failed => Self::Failed { victim },
            EvictOutcome::Delayed => Self::Delayed { victim },
            _ => Self::Done { victim, step: eviction.step },
        }
    }
}

/// What the API server said, to the step or to a look at the Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    /// The step is done; or the Pod, with its own UID, is there.
    Yes,
    /// There is no such Pod, or another one under its name.
    NotThere,
    /// Another UID, or a write that others overtook too often: the Pod itself tells.
    Conflict,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Try { after: Duration },
    Look,
    Settled(EvictOutcome),
}

/// From replies to an outcome. Doing a step twice does no harm.
#[derive(Debug)]
struct Evicting {
    step: EvictionStep,
    tries: u32,
    pause: Duration,
}

impl Evicting {
    fn new(step: EvictionStep) -> Self {
        Self { step, tries: 0, pause: PAUSE_FIRST }
    }

    fn after_try(&mut self, reply: Reply) -> Next {
        self.tries += 1;
        match reply {
            Reply::Yes => Next::Settled(match self.step {
                EvictionStep::Announce => EvictOutcome::Announced,
                EvictionStep::Delete => EvictOutcome::Deleted,
                EvictionStep::Withdraw => EvictOutcome::Withdrawn,
            }),
            Reply::NotThere => Next::Settled(EvictOutcome::Gone),
            Reply::Conflict => Next::Look,
            Reply::Failed => self.again(),
        }
    }

    fn after_look(&mut self, reply: Reply) -> Next {
        match reply {
            Reply::NotThere => Next::Settled(EvictOutcome::Gone),
            Reply::Yes | Reply::Conflict | Reply::Failed => self.again(),
        }
    }

    fn again(&mut self) -> Next {
        // What it is for may have changed: the engine is asked before each deletion.
        if self.step == EvictionStep::Delete {
            return Next::Settled(EvictOutcome::Delayed);
        }
        if self.tries >= TRIES_MAX {
            return Next::Settled(EvictOutcome::Failed);
        }
        let after = self.pause;
        self.pause *= 2;
        Next::Try { after }
    }
}

/// Repeats the step until it is done, or was tried often enough.
pub(crate) async fn evict(client: &Client, eviction: &Eviction) -> EvictOutcome {
    let mut evicting = Evicting::new(eviction.step);
    let mut next = Next::Try { after: Duration::ZERO };
    loop {
        next = match next {
            Next::Settled(outcome) => return outcome,
            Next::Try { after } => {
                sleep(after).await;
                evicting.after_try(attempt(client, eviction).await)
            }
            Next::Look => evicting.after_look(look(client, eviction).await),
        }
    }
}

async fn attempt(client: &Client, eviction: &Eviction) -> Reply {
    let outcome = match step(eviction) {
        Ok(request) => call(client.request_text(request)).await,
        Err(error) => Err(error),
    };
    outcome.map_or_else(|error| refused(eviction, &error), |_| Reply::Yes)
}

async fn look(client: &Client, eviction: &Eviction) -> Reply {
    let request = request(Method::GET, &path(eviction), JSON, &Value::Null);
    let outcome = match request {
        Ok(request) => call(client.request::<WirePod>(request.map(|_| Vec::new()))).await,
        Err(error) => Err(kube::Error::HttpError(error)),
    };
    match outcome {
        Ok(pod) if pod.metadata.uid.as_deref() == Some(eviction.uid.as_str()) => Reply::Yes,
        Ok(_) => Reply::NotThere,
        Err(error) => refused(eviction, &error),
    }
}

fn refused(eviction: &Eviction, error: &kube::Error) -> Reply {
    match error {
        kube::Error::Api(status) if status.code == 404 => Reply::NotThere,
        kube::Error::Api(status) if status.code == 409 => Reply::Conflict,
        error => {
            let victim = &eviction.victim;
            warn!(%victim, %error, step = ?eviction.step, "a victim could not be evicted");
            Reply::Failed
        }
    }
}

async fn call<T>(reply: impl Future<Output = Result<T, kube::Error>>) -> Result<T, kube::Error> {
    match timeout(CALL_TIMEOUT, reply).await {
        Ok(reply) => reply,
        Err(elapsed) => Err(kube::Error::Service(elapsed.into())),
    }
}

fn path(eviction: &Eviction) -> String {
    let victim = &eviction.victim;
    format!("/api/v1/namespaces/{}/pods/{}", victim.namespace, victim.name)
}

fn step(eviction: &Eviction) -> Result<Request<Vec<u8>>, kube::Error> {
    let path = path(eviction);
    let request = match eviction.step {
        EvictionStep::Announce | EvictionStep::Withdraw => {
            let path = format!("{path}/status");
            request(Method::PATCH, &path, STRATEGIC_MERGE, &announcement(eviction))
        }
        EvictionStep::Delete => request(Method::DELETE, &path, JSON, &deletion(eviction)),
    };
    request.map_err(kube::Error::HttpError)
}

/// The UID is a precondition: a successor under the same name is not the victim.
fn announcement(eviction: &Eviction) -> Value {
    let (status, why) = match eviction.step {
        EvictionStep::Announce | EvictionStep::Delete => {
            ("True", "preempting to accommodate a higher priority pod")
        }
        EvictionStep::Withdraw => ("False", "the higher priority pod found another place"),
    };
    let message = format!("{}: {why}", crds::SCHEDULER_NAME);
    json!({
        "metadata": {"uid": eviction.uid.as_str()},
        "status": {"conditions": [{
            "type": DISRUPTION_TARGET,
            "status": status,
            "reason": PREEMPTION_BY_SCHEDULER,
            "message": message,
            "lastTransitionTime": format!("{:.0}", wall_clock()),
        }]},
    })
}

/// With the Pod's own grace period.
fn deletion(eviction: &Eviction) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": eviction.uid.as_str()},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ObjectKey;

    fn eviction(step: EvictionStep) -> Eviction {
        Eviction {
            victim: ObjectKey::new("a", "v"),
            uid: "u".into(),
            step,
            node: "n1".into(),
            preemptor: ObjectKey::new("b", "p"),
            preemptor_uid: "w".into(),
        }
    }

    #[test]
    fn both_steps_are_done_to_this_uid_and_no_other() {
        let announced = announcement(&eviction(EvictionStep::Announce));
        assert_eq!(announced["metadata"]["uid"], "u");
        let condition = &announced["status"]["conditions"][0];
        assert_eq!(condition["reason"], "PreemptionByScheduler");
        let message = "corridor-scheduler: preempting to accommodate a higher priority pod";
        assert_eq!(condition["message"], message);
        let withdrawn = announcement(&eviction(EvictionStep::Withdraw));
        assert_eq!(withdrawn["status"]["conditions"][0]["status"], "False");
        assert_eq!(deletion(&eviction(EvictionStep::Delete))["preconditions"]["uid"], "u");
        let request = step(&eviction(EvictionStep::Announce)).unwrap();
        assert_eq!(request.uri().path(), "/api/v1/namespaces/a/pods/v/status");
        let request = step(&eviction(EvictionStep::Delete)).unwrap();
        assert_eq!(
            (request.method(), request.uri().path()),
            (&Method::DELETE, "/api/v1/namespaces/a/pods/v",)
        );
    }

    #[test]
    fn a_victim_that_has_gone_counts_as_done() {
        for step in [EvictionStep::Announce, EvictionStep::Delete] {
            let gone = Evicting::new(step).after_try(Reply::NotThere);
            assert_eq!(gone, Next::Settled(EvictOutcome::Gone));
            let done = EvictReport::new(&eviction(step), EvictOutcome::Gone);
            assert_eq!(done, EvictReport::Done { victim: "u".into(), step });
        }
    }

    #[test]
    fn a_conflict_is_decided_by_a_look_at_the_pod() {
        let mut evicting = Evicting::new(EvictionStep::Announce);
        assert_eq!(evicting.after_try(Reply::Conflict), Next::Look);
        assert_eq!(evicting.after_look(Reply::Yes), Next::Try { after: PAUSE_FIRST });
        assert_eq!(evicting.after_try(Reply::Conflict), Next::Look);
        let another = evicting.after_look(Reply::NotThere);
        assert_eq!(another, Next::Settled(EvictOutcome::Gone));
    }

    #[test]
    fn a_deletion_that_fails_is_not_repeated_without_being_asked_for() {
        let delayed = Next::Settled(EvictOutcome::Delayed);
        assert_eq!(Evicting::new(EvictionStep::Delete).after_try(Reply::Failed), delayed);
        assert_eq!(Evicting::new(EvictionStep::Delete).after_look(Reply::Yes), delayed);
        let report = EvictReport::new(&eviction(EvictionStep::Delete), EvictOutcome::Delayed);
        assert_eq!(report, EvictReport::Delayed { victim: "u".into() });
    }

    #[test]
    fn what_fails_is_tried_again_and_then_given_up() {
        let mut evicting = Evicting::new(EvictionStep::Announce);
        let again = |times: u32| Next::Try { after: PAUSE_FIRST * times };
        assert_eq!(evicting.after_try(Reply::Failed), again(1));
        assert_eq!(evicting.after_try(Reply::Failed), again(2));
        let given_up = evicting.after_try(Reply::Failed);
        assert_eq!(given_up, Next::Settled(EvictOutcome::Failed));
        let report = EvictReport::new(&eviction(EvictionStep::Announce), EvictOutcome::Failed);
        assert_eq!(report, EvictReport::Failed { victim: "u".into() });
    }
}

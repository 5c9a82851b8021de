//! Makes a victim go, one step at a time.

use engine::{Eviction, EvictionStep};
use http::{Method, Request};
use kube::Client;
use model::PodUid;
use serde_json::{Value, json};
use tracing::warn;

use super::settle::{Write, read_object, settle, write};
use super::{JSON, STRATEGIC_MERGE, request};
use crate::clock::wall_clock;
use crate::settling::{Outcome, Patience, ReadReply, Refused, WRITES_MAX, WriteReply};
use crate::wire::{DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER, WirePod};

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

/// Reads without an answer before the engine is asked anew: other writes wait for the step.
const READS_MAX: u32 = 3;

/// A step that lands late does no harm: it is for this UID alone. A deletion is sent once, because what it is for may
/// have changed: the engine is asked before each.
fn patience(step: EvictionStep) -> Patience {
    let writes_max = if step == EvictionStep::Delete { 1 } else { WRITES_MAX };
    Patience { writes_max, reads_max: Some(READS_MAX), waits_for_late: false }
}

/// Does the step, or finds out that it cannot be done.
pub(crate) async fn evict(client: &Client, eviction: &Eviction) -> EvictOutcome {
    let step = eviction.step;
    match settle(&mut Step { client, eviction }, patience(step)).await {
        Outcome::Done => match step {
            EvictionStep::Announce => EvictOutcome::Announced,
            EvictionStep::Delete => EvictOutcome::Deleted,
            EvictionStep::Withdraw => EvictOutcome::Withdrawn,
        },
        Outcome::Gone => EvictOutcome::Gone,
        Outcome::Refused(_) | Outcome::StaleLeader { .. } | Outcome::TermEnded => match step {
            EvictionStep::Delete => EvictOutcome::Delayed,
            EvictionStep::Announce | EvictionStep::Withdraw => EvictOutcome::Failed,
        },
    }
}

struct Step<'a> {
    client: &'a Client,
    eviction: &'a Eviction,
}

impl Write for Step<'_> {
    async fn write(&mut self) -> WriteReply {
        let reply = write(self.client, step(self.eviction)).await;
        if let WriteReply::Refused(Refused { message, .. }) = &reply {
            self.warn(message);
        }
        reply
    }

    async fn read(&mut self) -> ReadReply {
        let Self { client, eviction } = *self;
        let is_as_written = |pod: &WirePod| is_done(pod, eviction.step);
        read_object(client, &path(eviction), eviction.uid.as_str(), is_as_written).await.0
    }

    async fn unclear(&mut self, message: Option<&str>) {
        self.warn(message.unwrap_or("no connection"));
    }
}

impl Step<'_> {
    fn warn(&self, why: &str) {
        let Eviction { victim, step, .. } = self.eviction;
        warn!(%victim, why, ?step, "a victim could not be evicted");
    }
}

/// Whether the Pod shows that the step was done.
fn is_done(pod: &WirePod, step: EvictionStep) -> bool {
    let condition = pod.status.condition(DISRUPTION_TARGET);
    let announced =
        condition.is_some_and(|it| it.status == "True" && it.reason == PREEMPTION_BY_SCHEDULER);
    match step {
        EvictionStep::Announce => announced,
        EvictionStep::Withdraw => !announced,
        EvictionStep::Delete => pod.metadata.deletion_timestamp.is_some(),
    }
}

fn path(eviction: &Eviction) -> String {
    let victim = &eviction.victim;
    format!("/api/v1/namespaces/{}/pods/{}", victim.namespace, victim.name)
}

fn step(eviction: &Eviction) -> Result<Request<Vec<u8>>, http::Error> {
    let path = path(eviction);
    match eviction.step {
        EvictionStep::Announce | EvictionStep::Withdraw => {
            let path = format!("{path}/status");
            request(Method::PATCH, &path, STRATEGIC_MERGE, &announcement(eviction))
        }
        EvictionStep::Delete => request(Method::DELETE, &path, JSON, &deletion(eviction)),
    }
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
    fn the_pod_itself_shows_whether_a_step_was_done() {
        let pod = |status: &str, reason: &str, deleted: Value| -> WirePod {
            let condition = json!({"type": DISRUPTION_TARGET, "status": status, "reason": reason});
            serde_json::from_value(json!({
                "metadata": {"name": "v", "deletionTimestamp": deleted},
                "status": {"conditions": [condition]},
            }))
            .unwrap()
        };
        let of_another = pod("True", "EvictionByEvictionAPI", Value::Null);
        let announced = pod("True", PREEMPTION_BY_SCHEDULER, Value::Null);
        let withdrawn = pod("False", PREEMPTION_BY_SCHEDULER, Value::Null);
        let deleted = pod("True", PREEMPTION_BY_SCHEDULER, json!("2026-01-01T00:00:00Z"));
        let done =
            |step| [&of_another, &announced, &withdrawn, &deleted].map(|pod| is_done(pod, step));
        assert_eq!(done(EvictionStep::Announce), [false, true, false, true]);
        assert_eq!(done(EvictionStep::Withdraw), [true, false, true, false]);
        assert_eq!(done(EvictionStep::Delete), [false, false, false, true]);
    }

    #[test]
    fn a_deletion_is_not_repeated_without_being_asked_for() {
        assert_eq!(patience(EvictionStep::Delete).writes_max, 1);
        let report = EvictReport::new(&eviction(EvictionStep::Delete), EvictOutcome::Delayed);
        assert_eq!(report, EvictReport::Delayed { victim: "u".into() });
        for (step, writes_max) in [(EvictionStep::Announce, 3), (EvictionStep::Withdraw, 3)] {
            assert_eq!(patience(step).writes_max, writes_max);
            let done = EvictReport::new(&eviction(step), EvictOutcome::Gone);
            assert_eq!(done, EvictReport::Done { victim: "u".into(), step });
            let report = EvictReport::new(&eviction(step), EvictOutcome::Failed);
            assert_eq!(report, EvictReport::Failed { victim: "u".into() });
        }
    }
}

//! The real kube-scheduler: given a Pod, what does it do?

use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::runtime::watcher::{self, Event};
use random_clusters::{GeneratedCluster, key_of, name_of};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use super::api::Api;
use super::frozen::{self, path_of, pods_of};
use super::log::{Log, PluginScores, Thoughts, Totals};
use super::volumes::{self, Standing, Written};
use crate::control_plane::{ControlPlane, KubeScheduler};
use crate::error::{Error, Result, ensure};
use crate::objects::pods::PodState as _;

/// Generous: reached only when something is wrong.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
const LOG_POLL_EVERY: Duration = Duration::from_millis(2);
/// How long a victim may be the only one after it was found to be leaving already.
const LEAVING_ALONE_MAX: Duration = Duration::from_millis(300);
/// Long enough to see that a Pod behind a gate is left alone.
const GATED_FOR: Duration = Duration::from_millis(30);

/// What it says of a Pod that it chose a Node for, when its claims are not bound.
const NOT_BOUND_YET: &str = "running PreBind plugin \"VolumeBinding\": ";
/// Holds a Pod back until the claims are there that are its own.
const GATE_OF_CLAIMS: &str = "example.com/claims";

/// What the Pods to schedule are called, before a number.
pub(super) const INCOMING: &str = "incoming-";

/// What became of the Pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Placed {
        node: String,
        feasible: usize,
        totals: Totals,
        /// It chose the Node, and did not bind the Pod, because its claims are not bound.
        waits_for_volumes: bool,
    },
    Rejected {
        message: String,
        preempted: Option<Preempted>,
    },
    /// The attempt itself failed.
    Failed {
        message: String,
    },
}

/// The same in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Placed,
    Held,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Preempted {
    pub node: String,
    /// `namespace/name` of those that it deleted.
    pub victims: Vec<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Tried {
    /// The Pod as the API server stored it.
    pub stored: Value,
    pub outcome: Outcome,
    pub plugins: PluginScores,
    /// For the Pod's claims. It is undone.
    pub written: Vec<Written>,
    /// Attempts while the Pod was behind a gate.
    pub attempts_behind_gate: usize,
}

/// A running kube-scheduler, and a watch on what it does.
pub(super) struct KubeSide {
    api: Api,
    scheduler: KubeScheduler,
    log: Log,
    seen: mpsc::UnboundedReceiver<Pod>,
    watch: JoinHandle<()>,
}

impl KubeSide {
    pub async fn start(plane: &ControlPlane) -> Result<Self> {
        let scheduler = plane.start_kube_scheduler().await?;
        let log = Log::open(&scheduler.log_path())?;
        let (sender, seen) = mpsc::unbounded_channel();
        let pods: kube::Api<Pod> = kube::Api::all(plane.admin());
        let watch = tokio::spawn(async move {
            let mut events = watcher::watcher(pods, watcher::Config::default()).boxed();
            while let Some(event) = events.next().await {
                // After an error, the watcher lists or watches again by itself.
                if let Ok(Event::Apply(pod) | Event::InitApply(pod)) = event
                    && pod.name_any().starts_with(INCOMING)
                    && sender.send(pod).is_err()
                {
                    return;
                }
            }
        });
        Ok(Self { api: Api::new(plane.admin()), scheduler, log, seen, watch })
    }

    /// Creates the Pod and the claims of its ephemeral volumes, waits for what becomes of it, and leaves the cluster
    /// as it was, with those claims.
    pub async fn try_pod(
        &mut self,
        cluster: &GeneratedCluster,
        pod: &Value,
        claims: &[Value],
    ) -> Result<Tried> {
        self.log.turn_to(&key_of(pod))?;
        let mut pod = pod.clone();
        if !claims.is_empty() && pod["spec"]["schedulingGates"].is_null() {
            pod["spec"]["schedulingGates"] = json!([{"name": GATE_OF_CLAIMS}]);
        }
        let pod = &pod;
        let mut before = self.standing(cluster).await?;
        let mut stored = self.api.create(&pods_of(name_of(pod).0), pod).await?;
        let uid = stored["metadata"]["uid"].as_str().unwrap_or_default();
        if !claims.is_empty() {
            volumes::adopt(&self.api, claims, uid).await?;
            // The Pod is behind a gate.
            before = self.standing(cluster).await?;
        }
        let mut attempts_behind_gate = 0;
        if !stored["spec"]["schedulingGates"].is_null() {
            sleep(GATED_FOR).await;
            attempts_behind_gate = self.log.thoughts()?.attempts;
            let patch = json!({"spec": {"schedulingGates": null}});
            stored = self.api.merge(&path_of(pod), &patch).await?;
        }
        let outcome = self.outcome(cluster, pod).await?;
        let plugins = self.log.thoughts()?.plugins.clone();
        frozen::delete_pod(&self.api, pod).await?;
        if let Outcome::Rejected { preempted: Some(preempted), .. } = &outcome {
            frozen::restore(&self.api, cluster, &preempted.victims).await?;
        }
        let after = self.standing(cluster).await?;
        let written = after.written_since(&before);
        after.restore(&before, &self.api).await?;
        if let Outcome::Placed { node: chosen, .. } = &outcome {
            let is_elsewhere =
                |it: &&Written| matches!(it, Written::Selected { node, .. } if node != chosen);
            let elsewhere = written.iter().find(is_elsewhere);
            ensure(elsewhere.is_none(), || {
                format!("kube-scheduler chose {chosen} and wrote otherwise: {elsewhere:?}")
            })?;
        }
        Ok(Tried { stored, outcome, plugins, written, attempts_behind_gate })
    }

    /// Costs two lists.
    async fn standing(&self, cluster: &GeneratedCluster) -> Result<Standing> {
        if cluster.volumes.claims.is_empty() {
            return Ok(Standing::default());
        }
        Standing::read(&self.api).await
    }

    /// Waits for what becomes of a Pod.
    pub async fn until_known(&mut self, key: &str) -> Result<Fate> {
        let shown = self.until_decided(key).await?;
        let reason = shown.scheduled_condition().and_then(|it| it.reason.as_deref());
        Ok(match (shown.node(), reason) {
            (Some(_), _) => Fate::Placed,
            (None, Some("SchedulerError")) => Fate::Failed,
            (None, _) => Fate::Held,
        })
    }

    async fn outcome(&mut self, cluster: &GeneratedCluster, pod: &Value) -> Result<Outcome> {
        let key = key_of(pod);
        let shown = self.until_decided(&key).await?;
        if let Some(node) = shown.node() {
            let bound = |thoughts: &Thoughts| thoughts.feasible.is_some();
            let thoughts = self.until_log_shows("the binding", ANSWER_TIME_MAX, bound).await?;
            let feasible = thoughts.feasible.unwrap_or_default();
            return Ok(Outcome::Placed {
                node: node.to_owned(),
                feasible,
                totals: thoughts.totals,
                waits_for_volumes: false,
            });
        }
        let condition = shown.scheduled_condition();
        let message = condition.and_then(|it| it.message.clone()).unwrap_or_default();
        if message.starts_with(NOT_BOUND_YET) {
            return self.chosen().await;
        }
        if condition.and_then(|it| it.reason.as_deref()) == Some("SchedulerError") {
            return Ok(Outcome::Failed { message });
        }
        let nominated = shown.status.as_ref().and_then(|it| it.nominated_node_name.clone());
        let Some(node) = nominated.filter(|node| !node.is_empty()) else {
            return Ok(Outcome::Rejected { message, preempted: None });
        };
        self.until_victims_are_deleted().await?;
        let victims = frozen::victims(&self.api, cluster).await?;
        Ok(Outcome::Rejected { message, preempted: Some(Preempted { node, victims }) })
    }

    /// Of a Pod that it would have bound, had its claims been.
    async fn chosen(&mut self) -> Result<Outcome> {
        let has_chosen = |thoughts: &Thoughts| thoughts.chosen.is_some();
        let thoughts = self.until_log_shows("a choice", ANSWER_TIME_MAX, has_chosen).await?;
        Ok(Outcome::Placed {
            node: thoughts.chosen.unwrap_or_default(),
            // A single one is taken without a score.
            feasible: thoughts.totals.len().max(1),
            totals: thoughts.totals,
            waits_for_volumes: true,
        })
    }

    /// The Pod as it is when its fate is first told.
    async fn until_decided(&mut self, key: &str) -> Result<Pod> {
        let deadline = Instant::now() + ANSWER_TIME_MAX;
        loop {
            let Ok(Some(shown)) = timeout_at(deadline, self.seen.recv()).await else {
                return Err(self.no_answer(key));
            };
            let is_it = format!("{}/{}", shown.namespace().unwrap_or_default(), shown.name_any());
            let gated = |reason: &str| reason == "SchedulingGated";
            let is_decided = shown.node().is_some()
                || shown.scheduled_condition().is_some_and(|condition| {
                    condition.status == "False" && !condition.reason.as_deref().is_some_and(gated)
                });
            if is_it == key && is_decided {
                return Ok(shown);
            }
        }
    }

    /// The Pod tells of its nomination before the last victim is deleted.
    async fn until_victims_are_deleted(&mut self) -> Result<()> {
        let finished = |thoughts: &Thoughts| thoughts.has_preempted;
        let leaving = self.log.thoughts()?.met_leaving_victim;
        let patience = if leaving { LEAVING_ALONE_MAX } else { ANSWER_TIME_MAX };
        match self.until_log_shows("the end of preemption", patience, finished).await {
            Err(Error::TimedOut { .. }) if leaving => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    async fn until_log_shows(
        &mut self,
        awaited: &str,
        patience: Duration,
        done: impl Fn(&Thoughts) -> bool,
    ) -> Result<Thoughts> {
        let deadline = Instant::now() + patience;
        loop {
            let thoughts = self.log.thoughts()?;
            if done(thoughts) {
                return Ok(thoughts.clone());
            }
            if Instant::now() > deadline {
                return Err(Error::TimedOut {
                    awaited: format!("{awaited} in the log of kube-scheduler"),
                    seconds: patience.as_secs(),
                    seen: format!("{thoughts:?}"),
                });
            }
            sleep(LOG_POLL_EVERY).await;
        }
    }

    fn no_answer(&self, pod: &str) -> Error {
        if self.scheduler.has_ended() {
            return self.scheduler.stopped_unexpectedly();
        }
        Error::TimedOut {
            awaited: format!("kube-scheduler to decide about {pod}"),
            seconds: ANSWER_TIME_MAX.as_secs(),
            seen: "its condition does not say anything".into(),
        }
    }
}

impl Drop for KubeSide {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

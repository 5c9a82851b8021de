//! The scheduler under test: where would it put a Pod?

use std::collections::BTreeMap;
use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use random_clusters::{key_of, name_of};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::api::Api;
use super::frozen::{self, pods_of};
use crate::SCHEDULER_NAME;
use crate::cluster::Cluster;
use crate::error::{Doing as _, Error, Result};
use crate::scheduler_process::{SchedulerProcess, plain_client};

/// How long it may take until the scheduler has seen a new Pod.
const SEEN_TIME_MAX: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// What a Pod behind a gate is said to be.
const GATED: &str = "gated";

/// What follows says more of claims than kube-scheduler does.
const VOLUMES: &str = " Volumes: ";

/// The answer to `POST /api/what-if`, as far as it is compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Answer {
    pub state: String,
    pub message: String,
    pub nodes: Nodes,
    /// Absent when preemption was not tried.
    pub preemption: Option<Preemption>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Nodes {
    pub total: usize,
    pub feasible: usize,
    pub best: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Preemption {
    /// Why nothing can be preempted.
    pub message: Option<String>,
    /// The best candidates.
    #[serde(default)]
    pub nodes: Vec<String>,
    /// `namespace/name` by Node.
    #[serde(default)]
    pub victims: BTreeMap<String, Vec<String>>,
}

/// A running scheduler of ours.
pub(super) struct OurSide {
    api: Api,
    client: Client,
    #[expect(dead_code, reason = "held for its Drop")]
    scheduler: SchedulerProcess,
}

impl OurSide {
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        let scheduler = cluster.start_scheduler().await?;
        let client = plain_client(scheduler.url())?;
        Ok(Self { api: Api::new(cluster.admin().clone()), client, scheduler })
    }

    /// Asks about a Pod as the API server stores it. Both the answer as it came and as it was read.
    pub async fn ask(&self, stored: &Value) -> Result<(Value, Answer)> {
        let doing = || format!("asking what becomes of {}", key_of(stored));
        let mut pod = stored.clone();
        // Of the object that kube-scheduler has worked on already.
        pod["status"] = json!({});
        let deadline = Instant::now() + SEEN_TIME_MAX;
        loop {
            let request = Request::post("/api/what-if").body(pod.to_string().into_bytes().into());
            match self.call(request, &doing()).await? {
                (StatusCode::OK, answer) => {
                    let mut read: Answer = serde_json::from_value(answer.clone()).doing(doing())?;
                    if let Some(end) = read.message.find(VOLUMES) {
                        read.message.truncate(end);
                    }
                    return Ok((answer, read));
                }
                // The rate limit is meant for clients with fewer questions than this one.
                (StatusCode::TOO_MANY_REQUESTS, _) if Instant::now() < deadline => {
                    sleep(LOOK_EVERY).await;
                }
                (code, answer) => {
                    return Err(Error::malformed(doing(), format!("{code}: {answer}")));
                }
            }
        }
    }

    /// What our scheduler does with a Pod of its own behind the same gates; `None` if it leaves it
    /// alone, as it should.
    pub async fn look_behind_gate(&self, pod: &Value) -> Result<Option<String>> {
        let mut twin = pod.clone();
        twin["spec"]["schedulerName"] = json!(SCHEDULER_NAME);
        let (namespace, name) = name_of(pod);
        let name = format!("twin-of-{name}");
        let pods = pods_of(namespace);
        twin["metadata"]["name"] = json!(name);
        self.api.create(&pods, &twin).await?;
        let state = self.state_of(namespace, &name).await;
        let seen = self.api.get(&format!("{pods}/{name}")).await;
        frozen::delete_pod(&self.api, &twin).await?;
        let (state, seen) = (state?, seen?);
        let node = &seen["spec"]["nodeName"];
        let left_alone = state == GATED && node.is_null();
        Ok((!left_alone).then(|| format!("it is {state}, its Node is {node}")))
    }

    async fn state_of(&self, namespace: &str, name: &str) -> Result<String> {
        let doing = format!("asking why {namespace}/{name} waits");
        let deadline = Instant::now() + SEEN_TIME_MAX;
        loop {
            let path = format!("/api/pods/{namespace}/{name}/explain");
            let request = Request::get(path).body(Body::empty());
            match self.call(request, &doing).await? {
                (StatusCode::OK, answer) => {
                    return Ok(answer["state"].as_str().unwrap_or_default().to_owned());
                }
                (StatusCode::NOT_FOUND, _) if Instant::now() < deadline => sleep(LOOK_EVERY).await,
                (code, answer) => {
                    return Err(Error::malformed(doing, format!("{code}: {answer}")));
                }
            }
        }
    }

    async fn call(
        &self,
        request: http::Result<Request<Body>>,
        doing: &str,
    ) -> Result<(StatusCode, Value)> {
        let request = request.map_err(|problem| Error::malformed(doing, problem))?;
        let (head, body) = self.client.send(request).await.doing(doing)?.into_parts();
        let body = body.collect().await.doing(doing)?.to_bytes();
        Ok((head.status, serde_json::from_slice(&body).doing(doing)?))
    }
}

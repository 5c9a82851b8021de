//! Pods that come and go without a pause.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Api, Client, ResourceExt as _};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::error::{Doing as _, Error, Result};
use crate::objects::custom::Custom;
use crate::objects::pods::PodTemplate;

/// How much comes how fast, and how long it stays.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub every: Duration,
    /// One of so many asks for the corridor.
    pub corridor_one_in: usize,
    /// A Pod goes so long after it was seen bound.
    pub lifetime: Duration,
}

const REAP_EVERY: Duration = Duration::from_millis(500);
const DRAIN_TIME_MAX: Duration = Duration::from_mins(2);

/// Creates Pods until it is told to stop, and removes those that have been bound for a while.
#[derive(Debug)]
pub struct Load {
    pods: Api<Pod>,
    created: Arc<Mutex<HashMap<String, Created>>>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<Result<()>>,
}

/// A Pod of the load, by UID.
#[derive(Debug, Clone)]
pub struct Created {
    pub name: String,
    pub at: Instant,
    pub asks_corridor: bool,
}

impl Load {
    /// Pods in the corridor's namespace.
    pub fn start(client: &Client, corridor: &Custom, gbps: &str, pace: Pace) -> Self {
        let plain = PodTemplate::small();
        let asking = PodTemplate::small().refer(corridor, Some(gbps));
        let (stop, created) = (watch::Sender::new(false), Arc::default());
        let namespace = corridor.namespace.clone();
        let mut tasks = JoinSet::new();
        let creating = create(
            client.clone(),
            namespace.clone(),
            [plain, asking],
            pace,
            Arc::clone(&created),
            stop.subscribe(),
        );
        tasks.spawn(creating);
        tasks.spawn(reap(client.clone(), namespace.clone(), pace.lifetime));
        Self { pods: Api::namespaced(client.clone(), &namespace), created, stop, tasks }
    }

    /// Stops creating and waits until every Pod has been bound: those that wait in line for others to go
    /// included. Returns everything that was created.
    pub async fn drain(mut self) -> Result<HashMap<String, Created>> {
        self.stop.send_replace(true);
        if let Some(Ok(ended)) = self.tasks.join_next().await {
            ended?;
        }
        let waiting = ListParams::default().fields("spec.nodeName=");
        let deadline = Instant::now() + DRAIN_TIME_MAX;
        loop {
            let left = self.pods.list(&waiting).await.doing("looking for Pods that wait")?.items;
            if left.is_empty() {
                break;
            }
            if Instant::now() > deadline {
                let seen = left.iter().take(5).map(|pod| format!("{:?}", pod.status));
                return Err(Error::TimedOut {
                    awaited: "every Pod to be bound".into(),
                    seconds: DRAIN_TIME_MAX.as_secs(),
                    seen: format!("{} wait: {}", left.len(), seen.collect::<Vec<_>>().join("; ")),
                });
            }
            sleep(REAP_EVERY).await;
        }
        self.tasks.shutdown().await;
        Ok(std::mem::take(&mut *self.created.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

async fn create(
    client: Client,
    namespace: String,
    templates: [PodTemplate; 2],
    pace: Pace,
    created: Arc<Mutex<HashMap<String, Created>>>,
    stop: watch::Receiver<bool>,
) -> Result<()> {
    let mut ticks = interval(pace.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut number = 0_usize;
    while !*stop.borrow() {
        ticks.tick().await;
        number += 1;
        let asks_corridor = number.is_multiple_of(pace.corridor_one_in);
        let name = format!("load-{number}");
        let template = &templates[usize::from(asks_corridor)];
        let pod = template.create(&client, &namespace, &name).await?;
        let made = Created { name, at: Instant::now(), asks_corridor };
        let uid = pod.uid().unwrap_or_default();
        created.lock().unwrap_or_else(PoisonError::into_inner).insert(uid, made);
    }
    Ok(())
}

/// Removes Pods that were seen bound for as long as they may live.
async fn reap(client: Client, namespace: String, lifetime: Duration) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    let bound = ListParams::default().fields("spec.nodeName!=");
    let mut since: HashMap<String, Instant> = HashMap::new();
    loop {
        sleep(REAP_EVERY).await;
        let seen = pods.list_metadata(&bound).await.doing("looking for bound Pods")?.items;
        let now = Instant::now();
        let mut still = HashMap::new();
        for pod in seen {
            let uid = pod.uid().unwrap_or_default();
            let at = since.get(&uid).copied().unwrap_or(now);
            if now - at < lifetime {
                still.insert(uid, at);
                continue;
            }
            let preconditions = Some(Preconditions { uid: Some(uid), resource_version: None });
            let params = DeleteParams { preconditions, ..DeleteParams::default().grace_period(0) };
            match pods.delete(&pod.name_any(), &params).await {
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                deleted => drop(deleted.doing("removing a Pod")?),
            }
        }
        since = still;
    }
}

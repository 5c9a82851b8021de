//! The story, step by step. Each step waits for what it announces, and fails if it does not come.

use std::time::{Duration, Instant};

use crds::{Corridor, CorridorStatus, Phase};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde::de::DeserializeOwned;

use super::DemoError;
use super::cast::{self, CORRIDOR, FLOOR_GBPS, NAMESPACE, NODES, URGENT};
use super::narrator::Narrator;
use crate::backends::Chosen;

/// Every step happens within milliseconds; this is for a machine that is busy with other things.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);

pub struct Story<'a> {
    client: Client,
    pods: Api<Pod>,
    corridors: Api<Corridor>,
    backends: &'a Chosen,
    narrator: Narrator,
}

impl<'a> Story<'a> {
    pub fn new(client: Client, backends: &'a Chosen, narrator: Narrator) -> Self {
        let pods = Api::namespaced(client.clone(), NAMESPACE);
        let corridors = Api::namespaced(client.clone(), NAMESPACE);
        Self { client, pods, corridors, backends, narrator }
    }

    pub async fn tell(&self) -> Result<(), DemoError> {
        self.narrator.title("Corridor: Pods wait for bandwidth, and are bound when it returns.");
        self.set_up().await?;
        self.plain_pods_bind().await?;
        self.pods_reserve_bandwidth().await?;
        self.the_corridor_degrades().await?;
        self.new_pods_are_held().await?;
        self.bandwidth_returns().await?;
        self.room_is_made().await?;
        self.narrator.end("Every step happened. No corridor was promised more than its floor.");
        Ok(())
    }

    async fn set_up(&self) -> Result<(), DemoError> {
        self.narrator.chapter(1, "A cluster of five nodes, and a corridor of light between them");
        let create = PostParams::default();
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        for name in [crds::SYSTEM_NAMESPACE, NAMESPACE] {
            let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
            let namespace = Namespace { metadata, ..Namespace::default() };
            namespaces.create(&create, &namespace).await?;
        }
        let nodes: Api<Node> = Api::all(self.client.clone());
        for number in 1..=NODES {
            nodes.create(&create, &cast::node(number)).await?;
        }
        let classes: Api<PriorityClass> = Api::all(self.client.clone());
        classes.create(&create, &cast::urgent_class()).await?;
        let created = Instant::now();
        self.corridors.create(&create, &cast::corridor()).await?;
        self.narrator.tell("5 nodes of 8 CPUs; corridor team-a/spine, 4 lanes, floor 100 Gbps.");
        let status = self.until_corridor(Phase::Ready).await?;
        let id = status.corridor_id.unwrap_or_default();
        let elapsed_ms = created.elapsed().as_millis();
        self.narrator.tell(&format!(
            "Its device was attested and corrd allocated it as {id}, Ready after {elapsed_ms} ms."
        ));
        self.show_corridor().await?;
        self.narrator.pause().await;
        Ok(())
    }

    async fn plain_pods_bind(&self) -> Result<(), DemoError> {
        self.narrator.chapter(2, "Ordinary Pods bind as they always do");
        let names: Vec<String> = (1..=6).map(|number| format!("web-{number}")).collect();
        let started = Instant::now();
        for name in &names {
            self.create(name, None, None).await?;
        }
        for name in &names {
            self.until_bound(name).await?;
        }
        let elapsed_ms = started.elapsed().as_millis();
        self.narrator.tell(&format!("6 Pods bound {elapsed_ms} ms after the first was created."));
        self.narrator.pause().await;
        Ok(())
    }

    async fn pods_reserve_bandwidth(&self) -> Result<(), DemoError> {
        self.narrator.chapter(3, "Three Pods reserve 30 Gbps each");
        for name in ["train-1", "train-2", "train-3"] {
            self.create(name, Some(30), None).await?;
            let pod = self.until_bound(name).await?;
            let grant = pod.annotations().get(crds::annotations::GRANT).cloned();
            expect(name, "a grant in the same write as its node", grant.is_some())?;
            self.narrator.bound(name, &format!("to {}, 30 Gbps granted", node_of(&pod)));
        }
        self.show_corridor().await?;
        self.narrator.pause().await;
        Ok(())
    }

    async fn the_corridor_degrades(&self) -> Result<(), DemoError> {
        self.narrator.chapter(4, "The corridor degrades: corrd measures a lane out of tune");
        let dropped = Instant::now();
        self.force_capacity(Some(40.0)).await?;
        self.until_corridor(Phase::Degraded).await?;
        let elapsed_ms = dropped.elapsed().as_millis();
        self.narrator.tell(&format!("Degraded {elapsed_ms} ms after corrd measured it."));
        self.show_corridor().await?;
        self.narrator.tell("Running Pods stay where they are; nobody new is let in.");
        self.narrator.pause().await;
        Ok(())
    }

    async fn new_pods_are_held(&self) -> Result<(), DemoError> {
        self.narrator.chapter(5, "New Pods are held, and say why");
        for (name, gbps, class) in LATECOMERS {
            self.create(name, Some(gbps), class).await?;
            let message = self.until_held(name).await?;
            let tells = message.contains("(Degraded)") && message.contains("short by");
            expect(name, "the phase and the deficit in its condition", tells)?;
            self.narrator.held(name, &message);
        }
        self.create("web-7", None, None).await?;
        let pod = self.until_bound("web-7").await?;
        self.narrator.bound("web-7", &format!("to {}: it needs no corridor", node_of(&pod)));
        self.narrator.pause().await;
        Ok(())
    }

    async fn bandwidth_returns(&self) -> Result<(), DemoError> {
        self.narrator.chapter(
            6,
            "Bandwidth returns: the last to come is the most important, and goes first",
        );
        let returned = Instant::now();
        self.force_capacity(None).await?;
        let pod = self.until_bound("urgent").await?;
        let elapsed_ms = returned.elapsed().as_millis();
        let detail = format!("to {}, {elapsed_ms} ms after corrd measured it", node_of(&pod));
        self.narrator.bound("urgent", &detail);
        let passed = self.pods.get("batch-1").await?;
        expect("batch-1", "to wait for the more important Pod", node_of(&passed).is_empty())?;
        self.show_corridor().await?;
        self.narrator.tell("The others wait for room: all 100 Gbps are spoken for.");
        self.narrator.pause().await;
        Ok(())
    }

    async fn room_is_made(&self) -> Result<(), DemoError> {
        self.narrator.chapter(7, "Two training Pods end; the line moves up in order");
        for (ends, next, gbps) in [("train-1", "batch-1", 10), ("train-2", "batch-2", 40)] {
            self.pods.delete(ends, &DeleteParams::default()).await?;
            let pod = self.until_bound(next).await?;
            self.narrator.tell(&format!("{ends} ended and gave back 30 Gbps."));
            self.narrator.bound(next, &format!("to {}, {gbps} Gbps granted", node_of(&pod)));
        }
        self.show_corridor().await?;
        Ok(())
    }

    /// One line about the corridor: what it carries, and what the Pods' grants say it has promised.
    async fn show_corridor(&self) -> Result<(), DemoError> {
        let pods = self.pods.list(&ListParams::default()).await?;
        let reserved_gbps = pods.iter().map(granted_milli_gbps).sum::<u64>() / 1000;
        let corridor = self.corridors.get(CORRIDOR).await?;
        let phase = corridor.phase();
        let achievable_gbps =
            corridor.status.and_then(|status| status.achievable_gbps).unwrap_or_default();
        self.narrator.gauge(reserved_gbps, achievable_gbps, FLOOR_GBPS.into(), phase.as_str());
        let within = reserved_gbps <= u64::from(FLOOR_GBPS);
        expect("team-a/spine", "promised no more than its floor", within)
    }

    /// Changes what the light carries, in corrd.
    async fn force_capacity(&self, achievable_gbps: Option<f64>) -> Result<(), DemoError> {
        let status = self.corridors.get(CORRIDOR).await?.status.unwrap_or_default();
        let id = status.corridor_id.unwrap_or_default();
        if let Some(daemons) = self.backends.simulated() {
            let forced = daemons.force_capacity(&id, achievable_gbps).await;
            forced.map_err(|refusal| DemoError::Corrd(refusal.message))?;
        }
        Ok(())
    }

    async fn until_corridor(&self, phase: Phase) -> Result<CorridorStatus, DemoError> {
        let step = format!("corridor {CORRIDOR} is {}", phase.as_str());
        let reached = |corridor: &Corridor| corridor.phase() == phase;
        let corridor = until(&self.corridors, CORRIDOR, &step, reached).await?;
        Ok(corridor.status.unwrap_or_default())
    }

    async fn create(
        &self,
        name: &str,
        gbps: Option<u32>,
        class: Option<&str>,
    ) -> Result<(), DemoError> {
        let pod = cast::pod(name, gbps, class);
        self.pods.create(&PostParams::default(), &pod).await?;
        Ok(())
    }

    async fn until_bound(&self, name: &str) -> Result<Pod, DemoError> {
        let bound = |pod: &Pod| !node_of(pod).is_empty();
        until(&self.pods, name, &format!("Pod {name} is bound"), bound).await
    }

    async fn until_held(&self, name: &str) -> Result<String, DemoError> {
        let step = format!("Pod {name} is held and says why");
        let pod = until(&self.pods, name, &step, |pod| held_message(pod).is_some()).await?;
        Ok(held_message(&pod).unwrap_or_default())
    }
}

/// Watches one object until it is as `reached` says.
async fn until<K>(
    objects: &Api<K>,
    name: &str,
    step: &str,
    reached: impl Fn(&K) -> bool,
) -> Result<K, DemoError>
where
    K: kube::Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let sightings = watcher(objects.clone(), config).default_backoff().applied_objects();
    let mut sightings = std::pin::pin!(sightings);
    let look = async {
        while let Some(sighting) = sightings.next().await {
            if let Some(object) = sighting.ok().filter(&reached) {
                return Some(object);
            }
        }
        None
    };
    let missing =
        || DemoError::StepMissing { step: step.to_owned(), seconds: STEP_TIMEOUT.as_secs() };
    tokio::time::timeout(STEP_TIMEOUT, look).await.ok().flatten().ok_or_else(missing)
}

fn expect(step: &str, expected: &str, happened: bool) -> Result<(), DemoError> {
    if happened {
        return Ok(());
    }
    Err(DemoError::StepWrong { step: step.to_owned(), expected: expected.to_owned() })
}

/// Pods that are created while the corridor is degraded: name, Gbps, priority class.
const LATECOMERS: [(&str, u32, Option<&str>); 3] =
    [("batch-1", 10, None), ("batch-2", 40, None), ("urgent", 10, Some(URGENT))];

fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// What the Pod holds of the corridor, as its own annotation says.
fn granted_milli_gbps(pod: &Pod) -> u64 {
    let grant = pod.annotations().get(crds::annotations::GRANT);
    let grant = grant.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    grant.and_then(|grant| grant["corridor"]["milliGbps"].as_u64()).unwrap_or(0)
}

fn held_message(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let held = conditions.iter().find(|c| c.type_ == "PodScheduled" && c.status == "False")?;
    held.message.clone()
}

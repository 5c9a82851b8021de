//! The story, step by step. Each step waits for what it announces, and fails if it does not come.

use std::time::{Duration, Instant};

use crds::Corridor;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};

use super::DemoError;
use super::cast::{self, CORRIDOR, FLOOR_GBPS, NAMESPACE, NODES, URGENT};
use super::narrator::Narrator;
use super::telemetry::Telemetry;

/// Every step happens within milliseconds; this is for a machine that is busy with other things.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);
const LEASE_INTERVAL: Duration = Duration::from_secs(5);
const NOISE_INTERVAL: Duration = Duration::from_secs(3);

pub struct Story {
    client: Client,
    pods: Api<Pod>,
    corridors: Api<Corridor>,
    telemetry: Telemetry,
    narrator: Narrator,
    seed: u64,
}

impl Story {
    pub fn new(client: Client, narrator: Narrator, seed: u64) -> Self {
        let pods = Api::namespaced(client.clone(), NAMESPACE);
        let corridors = Api::namespaced(client.clone(), NAMESPACE);
        let telemetry = Telemetry::new(&client);
        Self { client, pods, corridors, telemetry, narrator, seed }
    }

    pub async fn tell(&mut self) -> Result<(), DemoError> {
        self.narrator.title("Corridor: Pods wait for bandwidth, and are bound when it returns.");
        self.set_up().await?;
        let lease = tokio::spawn(renew_forever(self.telemetry.clone()));
        let told = self.tell_chapters().await;
        lease.abort();
        told
    }

    async fn tell_chapters(&mut self) -> Result<(), DemoError> {
        self.plain_pods_bind().await?;
        self.pods_reserve_bandwidth().await?;
        self.the_corridor_degrades().await?;
        self.new_pods_are_held().await?;
        self.bandwidth_returns().await?;
        self.room_is_made().await?;
        self.narrator.end("Every step happened. No corridor was promised more than its floor.");
        Ok(())
    }

    /// Telemetry and Lease go on for the user's own experiments.
    pub async fn keep_alive(&self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut noise = Noise::new(self.seed);
        let mut renew = tokio::time::interval(LEASE_INTERVAL);
        let mut report = tokio::time::interval(NOISE_INTERVAL);
        loop {
            let call = tokio::select! {
                () = &mut stop => return,
                _ = renew.tick() => self.telemetry.renew().await,
                _ = report.tick() => self.telemetry.report(noise.above_floor()).await,
            };
            if let Err(error) = call {
                tracing::warn!(%error, "the demo's telemetry was not accepted");
            }
        }
    }

    async fn set_up(&mut self) -> Result<(), DemoError> {
        self.narrator.chapter(1, "A cluster of five nodes, and a corridor of light between them");
        let create = PostParams::default();
        let name = Some(NAMESPACE.to_owned());
        let namespace = Namespace {
            metadata: ObjectMeta { name, ..ObjectMeta::default() },
            ..Namespace::default()
        };
        Api::<Namespace>::all(self.client.clone()).create(&create, &namespace).await?;
        let nodes: Api<Node> = Api::all(self.client.clone());
        for number in 1..=NODES {
            nodes.create(&create, &cast::node(number)).await?;
        }
        let classes: Api<PriorityClass> = Api::all(self.client.clone());
        classes.create(&create, &cast::urgent_class()).await?;
        self.corridors.create(&create, &cast::corridor()).await?;
        self.telemetry.introduce().await?;
        self.telemetry.report(118.0).await?;
        self.narrator.tell("5 nodes of 8 CPUs; corridor team-a/spine, 4 lanes, floor 100 Gbps.");
        self.show_corridor(118.0).await?;
        self.narrator.pause().await;
        Ok(())
    }

    async fn plain_pods_bind(&mut self) -> Result<(), DemoError> {
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

    async fn pods_reserve_bandwidth(&mut self) -> Result<(), DemoError> {
        self.narrator.chapter(3, "Three Pods reserve 30 Gbps each");
        for name in ["train-1", "train-2", "train-3"] {
            self.create(name, Some(30), None).await?;
            let pod = self.until_bound(name).await?;
            let grant = pod.annotations().get(crds::annotations::GRANT).cloned();
            expect(name, "a grant in the same write as its node", grant.is_some())?;
            self.narrator.bound(name, &format!("to {}, 30 Gbps granted", node_of(&pod)));
        }
        self.show_corridor(118.0).await?;
        self.narrator.pause().await;
        Ok(())
    }

    async fn the_corridor_degrades(&mut self) -> Result<(), DemoError> {
        self.narrator.chapter(4, "The corridor degrades: a lane drifts out of tune");
        for achievable in [104.0, 78.5, 40.0] {
            self.telemetry.report(achievable).await?;
            self.show_corridor(achievable).await?;
            self.narrator.pause().await;
        }
        self.narrator.tell("Running Pods stay where they are; nobody new is let in.");
        Ok(())
    }

    async fn new_pods_are_held(&mut self) -> Result<(), DemoError> {
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

    async fn bandwidth_returns(&mut self) -> Result<(), DemoError> {
        self.narrator.chapter(
            6,
            "Bandwidth returns: the last to come is the most important, and goes first",
        );
        let returned = Instant::now();
        self.telemetry.report(121.0).await?;
        let pod = self.until_bound("urgent").await?;
        let elapsed_ms = returned.elapsed().as_millis();
        let detail = format!("to {}, {elapsed_ms} ms after the status changed", node_of(&pod));
        self.narrator.bound("urgent", &detail);
        let passed = self.pods.get("batch-1").await?;
        expect("batch-1", "to wait for the more important Pod", node_of(&passed).is_empty())?;
        self.show_corridor(121.0).await?;
        self.narrator.tell("The others wait for room: all 100 Gbps are spoken for.");
        self.narrator.pause().await;
        Ok(())
    }

    async fn room_is_made(&mut self) -> Result<(), DemoError> {
        self.narrator.chapter(7, "Two training Pods end; the line moves up in order");
        for (ends, next, gbps) in [("train-1", "batch-1", 10), ("train-2", "batch-2", 40)] {
            self.pods.delete(ends, &DeleteParams::default()).await?;
            let pod = self.until_bound(next).await?;
            self.narrator.tell(&format!("{ends} ended and gave back 30 Gbps."));
            self.narrator.bound(next, &format!("to {}, {gbps} Gbps granted", node_of(&pod)));
        }
        self.show_corridor(121.0).await?;
        Ok(())
    }

    /// One line about the corridor: what it carries, and what the Pods' grants say it has promised.
    async fn show_corridor(&self, achievable_gbps: f64) -> Result<(), DemoError> {
        let pods = self.pods.list(&ListParams::default()).await?;
        let reserved_gbps = pods.iter().map(granted_milli_gbps).sum::<u64>() / 1000;
        let phase = self.corridors.get(CORRIDOR).await?.phase();
        self.narrator.gauge(reserved_gbps, achievable_gbps, FLOOR_GBPS.into(), phase.as_str());
        let within = reserved_gbps <= u64::from(FLOOR_GBPS);
        expect("team-a/spine", "promised no more than its floor", within)
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
        self.until(name, &format!("Pod {name} is bound"), bound).await
    }

    async fn until_held(&self, name: &str) -> Result<String, DemoError> {
        let step = format!("Pod {name} is held and says why");
        let pod = self.until(name, &step, |pod| held_message(pod).is_some()).await?;
        Ok(held_message(&pod).unwrap_or_default())
    }

    async fn until(
        &self,
        name: &str,
        step: &str,
        reached: impl Fn(&Pod) -> bool,
    ) -> Result<Pod, DemoError> {
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let sightings = watcher(self.pods.clone(), config).default_backoff().applied_objects();
        let mut sightings = std::pin::pin!(sightings);
        let look = async {
            while let Some(sighting) = sightings.next().await {
                if let Some(pod) = sighting.ok().filter(&reached) {
                    return Some(pod);
                }
            }
            None
        };
        let missing =
            || DemoError::StepMissing { step: step.to_owned(), seconds: STEP_TIMEOUT.as_secs() };
        tokio::time::timeout(STEP_TIMEOUT, look).await.ok().flatten().ok_or_else(missing)
    }
}

fn expect(step: &str, expected: &str, happened: bool) -> Result<(), DemoError> {
    if happened {
        return Ok(());
    }
    Err(DemoError::StepWrong { step: step.to_owned(), expected: expected.to_owned() })
}

/// Who comes while the corridor is degraded: name, Gbps, priority class.
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

async fn renew_forever(telemetry: Telemetry) {
    let mut tick = tokio::time::interval(LEASE_INTERVAL);
    loop {
        tick.tick().await;
        if let Err(error) = telemetry.renew().await {
            tracing::warn!(%error, "the backend's Lease was not renewed");
        }
    }
}

/// Readings a little above the floor, the same for the same seed.
struct Noise {
    state: u64,
}

impl Noise {
    fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn above_floor(&mut self) -> f64 {
        // Knuth's MMIX multiplier: any full-period sequence will do for a flicker.
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let tenths = u32::try_from((self.state >> 33) % 200).unwrap_or(0);
        f64::from(FLOOR_GBPS) + 5.0 + f64::from(tenths) / 10.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_stays_above_the_floor_and_repeats_with_its_seed() {
        let readings = |seed| -> Vec<f64> {
            let mut noise = Noise::new(seed);
            (0..50).map(|_| noise.above_floor()).collect()
        };
        assert!(readings(7).iter().all(|gbps| *gbps >= f64::from(FLOOR_GBPS)));
        assert_eq!(readings(7), readings(7));
        assert_ne!(readings(7), readings(8));
    }
}

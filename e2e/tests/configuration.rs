//! Settings from a ConfigMap that change while the scheduler runs, several profiles, and kube-scheduler's own
//! file.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use std::time::Duration;

use e2e::objects::nodes::NodeTemplate;
use e2e::objects::pods::{PodState as _, PodTemplate};
use e2e::observe::PATIENCE;
use e2e::{Cluster, ControlPlane, SYSTEM_NAMESPACE, SchedulerProcess, metrics};
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

const NAME: &str = "corridor-scheduler";
const TEAM: &str = "team-a";
const RELOADS: &str = "corridor_configuration_reloads_total";
const LAST: &str = "corridor_configuration_last_reload_successful";

/// A profile by our name in which this score weighs so much.
fn weighing(plugin: &str, weight: i32) -> Value {
    profiles(&json!([{
        "schedulerName": NAME,
        "plugins": {"score": {"enabled": [{"name": plugin, "weight": weight}]}},
    }]))
}

fn profiles(profiles: &Value) -> Value {
    json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": profiles,
    })
}

struct Settings {
    maps: Api<ConfigMap>,
    events: Api<Event>,
}

impl Settings {
    async fn create(plane: &ControlPlane, file: &Value) -> Self {
        let maps: Api<ConfigMap> = Api::namespaced(plane.admin(), SYSTEM_NAMESPACE);
        let map = json!({"metadata": {"name": NAME}, "data": {"config.yaml": file.to_string()}});
        let map = serde_json::from_value(map).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
        Self { maps, events: Api::namespaced(plane.admin(), SYSTEM_NAMESPACE) }
    }

    async fn set(&self, text: &str) {
        let patch = json!({"data": {"config.yaml": text}});
        self.maps.patch(NAME, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// The message of an Event on the ConfigMap with this reason that says all this.
    async fn until_told(&self, reason: &str, parts: &[&str]) -> String {
        let about = format!("involvedObject.kind=ConfigMap,involvedObject.name={NAME}");
        let began = Instant::now();
        loop {
            let told = self.events.list(&ListParams::default().fields(&about)).await.unwrap();
            let mut messages =
                told.items.iter().filter(|event| event.reason.as_deref() == Some(reason));
            let told = messages.find_map(|event| {
                let message = event.message.clone()?;
                parts.iter().all(|part| message.contains(part)).then_some(message)
            });
            if let Some(message) = told {
                return message;
            }
            assert!(began.elapsed() < PATIENCE, "no Event {reason} says {parts:?}");
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Counts are whole numbers.
#[expect(clippy::cast_possible_truncation, reason = "a small whole number")]
async fn counted(scheduler: &SchedulerProcess, metric: &str, labels: &[&str]) -> i64 {
    metrics::sum(&scheduler.metrics().await.unwrap(), metric, labels) as i64
}

/// A crowded Node that the Pods of [`choosy`] like, and an empty one.
async fn two_nodes(cluster: &Cluster) {
    let node = NodeTemplate::new("4", "16Gi");
    node.clone().label("zone", "liked").create(cluster.admin(), "crowded").await.unwrap();
    node.create(cluster.admin(), "empty").await.unwrap();
    let filler = PodTemplate::new("3", "1Gi").spec("nodeName", json!("crowded"));
    filler.create(cluster.admin(), TEAM, "filler").await.unwrap();
}

fn choosy() -> PodTemplate {
    let liked =
        json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["liked"]}]});
    let preferred = json!([{"weight": 100, "preference": liked}]);
    PodTemplate::small().spec(
        "affinity",
        json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}),
    )
}

async fn node_of(cluster: &Cluster, pod: PodTemplate, name: &str) -> String {
    pod.create(cluster.admin(), TEAM, name).await.unwrap();
    let bound = cluster.until_pod(TEAM, name, "bound", |pod| pod.node().is_some()).await.unwrap();
    bound.node().unwrap().to_owned()
}

#[tokio::test]
async fn an_edit_holds_without_a_restart_and_a_broken_one_is_refused() {
    let plane = ControlPlane::start().await.unwrap();
    plane.install_crds().await.unwrap();
    let cluster = plane.cluster().await.unwrap();
    cluster.ensure_namespace(TEAM).await.unwrap();
    two_nodes(&cluster).await;
    let settings = Settings::create(&plane, &weighing("NodeAffinity", 2)).await;
    let flag = format!("--config-map={SYSTEM_NAMESPACE}/{NAME}");
    let scheduler = cluster.start_scheduler_with(&[&flag]).await.unwrap();
    assert_eq!(node_of(&cluster, choosy(), "by-affinity").await, "crowded");

    settings.set(&weighing("NodeResourcesFit", 100).to_string()).await;
    settings.until_told("ConfigurationApplied", &["the scheduler's settings hold now"]).await;
    assert_eq!(node_of(&cluster, choosy(), "by-room").await, "empty");
    assert_eq!(counted(&scheduler, RELOADS, &["result=\"applied\""]).await, 1);

    settings.set(&weighing("NoSuchPlugin", 100).to_string()).await;
    let why = ["profiles[0] (corridor-scheduler)", "\"NoSuchPlugin\" is no plugin", "stay"];
    settings.until_told("ConfigurationRefused", &why).await;
    assert_eq!(counted(&scheduler, RELOADS, &["result=\"refused\""]).await, 1);
    assert_eq!(counted(&scheduler, LAST, &[]).await, 0);
    assert_eq!(node_of(&cluster, choosy(), "still-by-room").await, "empty");
    settings.set("kind: [").await;
    settings.until_told("ConfigurationRefused", &["config.yaml: "]).await;

    settings.set(&weighing("NodeAffinity", 100).to_string()).await;
    assert_eq!(
        settings.until_told("ConfigurationApplied", &["settings"]).await,
        "the scheduler's settings hold now"
    );
    let began = Instant::now();
    while counted(&scheduler, LAST, &[]).await < 1 {
        assert!(began.elapsed() < PATIENCE, "the good version was not taken");
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(node_of(&cluster, choosy(), "by-affinity-again").await, "crowded");
    assert_eq!(scheduler.terminate().await.unwrap(), 0);
}

/// Longer than the scheduler's client lets a connection be silent.
const IDLE_TIME: Duration = Duration::from_secs(50);

#[tokio::test]
async fn settings_that_do_not_change_are_followed_without_a_word() {
    let plane = ControlPlane::start().await.unwrap();
    plane.install_crds().await.unwrap();
    let cluster = plane.cluster().await.unwrap();
    let settings = Settings::create(&plane, &weighing("NodeAffinity", 2)).await;
    let flag = format!("--config-map={SYSTEM_NAMESPACE}/{NAME}");
    let scheduler = cluster.start_scheduler_with(&[&flag]).await.unwrap();
    sleep(IDLE_TIME).await;
    let log = scheduler.log();
    assert!(!log.contains("cannot be followed"), "{log}");
    settings.set(&weighing("NodeAffinity", 3).to_string()).await;
    settings.until_told("ConfigurationApplied", &["the scheduler's settings hold now"]).await;
    assert_eq!(scheduler.terminate().await.unwrap(), 0);
}

#[tokio::test]
async fn several_profiles_are_served_by_one_process() {
    let plane = ControlPlane::start().await.unwrap();
    plane.install_crds().await.unwrap();
    let cluster = plane.cluster().await.unwrap();
    cluster.ensure_namespace(TEAM).await.unwrap();
    two_nodes(&cluster).await;
    let by_room = json!({"score": {"enabled": [{"name": "NodeResourcesFit", "weight": 100}]}});
    let both = profiles(&json!([
        {"schedulerName": NAME},
        {"schedulerName": "by-room", "plugins": by_room},
    ]));
    Settings::create(&plane, &both).await;
    let flag = format!("--config-map={SYSTEM_NAMESPACE}/{NAME}");
    let scheduler = cluster.start_scheduler_with(&[&flag]).await.unwrap();
    let by = |name: &str| choosy().spec("schedulerName", json!(name));
    assert_eq!(node_of(&cluster, by(NAME), "usual").await, "crowded");
    assert_eq!(node_of(&cluster, by("by-room"), "other").await, "empty");
    by("nobody").create(cluster.admin(), TEAM, "nobodys").await.unwrap();
    assert_eq!(node_of(&cluster, by(NAME), "after").await, "crowded");
    let nobodys = cluster.pods(TEAM).get("nobodys").await.unwrap();
    assert!(nobodys.node().is_none(), "its scheduler is not served here");
    let bindings = plane.successful_bindings().unwrap();
    assert_eq!(bindings.len(), 3, "{bindings:?}");
    drop(scheduler);
}

#[tokio::test]
async fn kube_schedulers_own_file_is_taken_as_it_is() {
    let plane = ControlPlane::start().await.unwrap();
    let cluster = plane.cluster().await.unwrap();
    plane.install_crds().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kube-scheduler.yaml");
    plane.write_kube_scheduler_defaults(&file).await.unwrap();
    let flag = format!("--config={}", file.display());
    let refused = SchedulerProcess::start(plane.scheduler_kubeconfig(), &[&flag]).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("--replace-default"), "{refused}");
    cluster.ensure_namespace(TEAM).await.unwrap();
    NodeTemplate::new("4", "16Gi").create(cluster.admin(), "n1").await.unwrap();
    // The roles of config/rbac do not reach kube-scheduler's Lease, so there is no election here.
    let flags = [flag.as_str(), "--replace-default", "--leader-elect=false"];
    let scheduler = cluster.start_scheduler_with(&flags).await.unwrap();
    let plain = PodTemplate::small().spec("schedulerName", json!("default-scheduler"));
    assert_eq!(node_of(&cluster, plain, "plain").await, "n1");
    assert_eq!(scheduler.terminate().await.unwrap(), 0);
}

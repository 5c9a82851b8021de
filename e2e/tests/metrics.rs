//! Our metrics beside those of the real kube-scheduler: what has its name has its shape.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use std::fs;
use std::time::Duration;

use e2e::metrics::{self, Family, families};
use e2e::objects::nodes::NodeTemplate;
use e2e::objects::pods::{PodState as _, PodTemplate};
use e2e::{Cluster, ControlPlane, Result, SCHEDULER_NAME, SchedulerProcess};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use tokio::time::sleep;

const TEAM: &str = "team-a";
const KUBE_SCHEDULER: &str = "default-scheduler";
const SECOND_PROFILE: &str = "second";

/// Stable metrics of kube-scheduler that are not ours, and why.
const NOT_OURS: [(&str, &str); 0] = [];

/// The only label that ours have and kube-scheduler's have not: one Prometheus may watch several clusters.
const CLUSTER: &str = "cluster";

fn small(scheduler: &str) -> PodTemplate {
    PodTemplate::small().spec("schedulerName", json!(scheduler))
}

/// Some that fit, one that does not.
async fn place(cluster: &Cluster, scheduler: &str) -> Result<()> {
    cluster.create_pods(TEAM, &format!("{scheduler}-fits"), 3, &small(scheduler)).await?;
    let big = PodTemplate::new("64", "64Mi").spec("schedulerName", json!(scheduler));
    let name = format!("{scheduler}-big");
    big.create(cluster.admin(), TEAM, &name).await?;
    for number in 0..3 {
        let name = format!("{scheduler}-fits-{number}");
        cluster.until_pod(TEAM, &name, "bound", |pod| pod.node().is_some()).await?;
    }
    let is_held = |pod: &Pod| pod.waiting_message().is_some();
    cluster.until_pod(TEAM, &name, "held", is_held).await.map(drop)
}

const PROFILES: &str = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: corridor-scheduler
- schedulerName: second
";

fn compare(name: &str, ours: &Family, kubes: &Family) {
    assert_eq!(ours.kind, kubes.kind, "{name}");
    let mut labels = ours.labels.clone();
    assert!(labels.remove(CLUSTER), "{name} does not name its cluster");
    assert_eq!(labels, kubes.labels, "{name}");
    assert_eq!(ours.buckets.len(), kubes.buckets.len(), "{name}: {ours:?} {kubes:?}");
    for (our, kube) in ours.buckets.iter().zip(&kubes.buckets) {
        let are_last = our.is_infinite() && kube.is_infinite();
        let is_same = are_last || (our - kube).abs() < 1e-9 * kube.abs();
        assert!(is_same, "{name}: a bucket of {our} instead of {kube}");
    }
}

/// And no key comes twice: a parser would lose one of the values.
fn ensure_log_is_json(log: &str) {
    assert!(log.contains("\"held\""), "{log}");
    for line in log.lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
        assert_eq!(line.matches("\"message\":").count(), 1, "{line}");
    }
}

/// Waiting Pods are counted by what they wait for every few seconds.
async fn until_counted(scheduler: &SchedulerProcess) -> Result<String> {
    for _ in 0..300 {
        let scraped = scheduler.metrics().await?;
        let label = format!("profile=\"{SECOND_PROFILE}\"");
        if metrics::sum(&scraped, "scheduler_unschedulable_pods", &[&label]) > 0.5 {
            return Ok(scraped);
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("nobody was counted");
}

#[tokio::test]
async fn what_has_kube_schedulers_name_has_its_type_labels_and_buckets() {
    let plane = ControlPlane::start().await.unwrap();
    let story = async {
        plane.install_crds().await?;
        let cluster = plane.cluster().await?;
        cluster.ensure_namespace(TEAM).await?;
        cluster.create_nodes(2, &NodeTemplate::new("4", "64Gi")).await?;
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.yaml");
        fs::write(&config, PROFILES).unwrap();
        let kube_scheduler = plane.start_serving_kube_scheduler().await?;
        let flags = ["--config", config.to_str().unwrap()];
        let scheduler = cluster.start_scheduler_with(&flags).await?;
        for name in [KUBE_SCHEDULER, SCHEDULER_NAME, SECOND_PROFILE] {
            place(&cluster, name).await?;
        }
        let scraped = until_counted(&scheduler).await?;
        let (ours, kubes) = (families(&scraped), families(&kube_scheduler.metrics().await?));
        let named: Vec<_> =
            ours.iter().filter(|(name, _)| name.starts_with("scheduler_")).collect();
        assert!(named.len() >= 12, "{:?}", named.iter().map(|it| it.0).collect::<Vec<_>>());
        for (name, family) in named {
            let kube = kubes.get(name).unwrap_or_else(|| panic!("{name} is not kube-scheduler's"));
            compare(name, family, kube);
        }
        let is_stable = |family: &Family| family.help.starts_with("[STABLE]");
        let stable =
            kubes.iter().filter(|(name, it)| name.starts_with("scheduler_") && is_stable(it));
        let stable: Vec<&String> = stable.map(|(name, _)| name).collect();
        assert!(stable.len() >= 8, "{stable:?}");
        for name in stable {
            let is_excused = NOT_OURS.iter().any(|(excused, _)| excused == name);
            assert!(ours.contains_key(name) != is_excused, "{name}: stable, and not ours");
        }
        for profile in [SCHEDULER_NAME, SECOND_PROFILE] {
            let of = |result: &str| {
                let labels = [&*format!("result=\"{result}\""), &*format!("profile=\"{profile}\"")];
                metrics::sum(&scraped, "scheduler_schedule_attempts_total", &labels)
            };
            assert!((of("scheduled") - 3.0).abs() < 0.1 && of("unschedulable") > 0.5, "{profile}");
        }
        ensure_log_is_json(&scheduler.log());
        let tries = metrics::sum(&scraped, "scheduler_pod_scheduling_attempts_count", &[]);
        assert!((tries - 6.0).abs() < 0.1, "{tries}");
        Ok::<_, e2e::Error>(())
    };
    if let Err(problem) = story.await {
        panic!("{problem}");
    }
}

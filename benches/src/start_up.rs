//! From the start of the process to the first bind, in a cluster that is large already.
//!
//! Beside it a client lists the same Nodes and Pods in protobuf and drops them: no program that begins by
//! reading what there is can be faster.

use std::env;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use e2e::binaries::say;
use e2e::control_plane::ControlPlane;
use e2e::error::Doing as _;
use e2e::population::{self, create_bound_pods, create_nodes};
use e2e::scheduler_process::scheduler_binary;
use e2e::supervised::Supervised;
use e2e::{Error, Result, SCHEDULER_NAME, SchedulerProcess};
use serde::Serialize;
use serde_json::json;
use tokio::time::sleep;

use crate::machine::Machine;
use crate::race::{Sightings, Spread, Wire, api};
use crate::workload::NAMESPACE;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const WAITING: &str = "first-";
/// Generous: reached only when something is wrong.
const PATIENCE: Duration = Duration::from_mins(5);
const POLL_EVERY: Duration = Duration::from_millis(10);

/// What was measured. Its JSON is read by others: names stay.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StartUp {
    pub nodes: usize,
    pub pods: usize,
    pub machine: Machine,
    pub list_seconds: Option<Spread>,
    pub first_bind_seconds: Option<Spread>,
    /// Of the same round.
    pub ratio: Option<Spread>,
}

impl fmt::Display for StartUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown =
            |spread: Option<Spread>| spread.map(|it| format!("{it:.2}")).unwrap_or_default();
        writeln!(f, "start-up: {} Nodes of 10 KB, {} bound Pods of 5 KB", self.nodes, self.pods)?;
        writeln!(f, "{}\n", self.machine)?;
        writeln!(f, "min – median – max")?;
        writeln!(f, "list in protobuf and drop, s     {}", shown(self.list_seconds))?;
        writeln!(f, "start to first bind, s           {}", shown(self.first_bind_seconds))?;
        write!(f, "ratio                            {}", shown(self.ratio))
    }
}

/// Measures both, in turns, on a control plane of its own.
pub async fn measure(nodes: usize, pods: usize, rounds: usize) -> Result<StartUp> {
    let machine = Machine::here();
    let binary = scheduler_binary().await?;
    let plane = ControlPlane::start().await?;
    plane.install_crds().await?;
    let admin = plane.admin();
    for name in [NAMESPACE, population::NAMESPACE] {
        api::ensure(&admin, &json!({"kind": "Namespace", "metadata": {"name": name}})).await?;
    }
    say(&format!("creating {nodes} Nodes and {pods} Pods"));
    create_nodes(&admin, nodes).await?;
    create_bound_pods(&admin, pods, nodes).await?;
    let (mut lists, mut binds) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        let listed = time_list(&plane).await?;
        let bound = time_first_bind(&plane, &binary, round).await?;
        say(&format!("round {round}: listed in {listed:.2} s, first bind after {bound:.2} s"));
        lists.push(listed);
        binds.push(bound);
    }
    let ratios = binds.iter().zip(&lists).map(|(bind, list)| bind / list);
    Ok(StartUp {
        nodes,
        pods,
        machine,
        ratio: Spread::over(ratios),
        list_seconds: Spread::over(lists.iter().copied()),
        first_bind_seconds: Spread::over(binds.iter().copied()),
    })
}

/// A process of its own, as the scheduler is: this program, with other arguments.
async fn time_list(plane: &ControlPlane) -> Result<f64> {
    let program = env::current_exe().doing("looking for the client that lists")?;
    let kubeconfig = plane.scheduler_kubeconfig();
    let mut process = Supervised::prepare("list-only", &program, |_| {
        vec!["list-only".into(), "--kubeconfig".into(), kubeconfig.into()]
    })?;
    let began = Instant::now();
    process.start()?;
    let code = process.exit_code(PATIENCE).await?;
    let took = began.elapsed().as_secs_f64();
    if code == 0 { Ok(took) } else { Err(process.stopped_unexpectedly()) }
}

/// Lists all Nodes and Pods, both at the same time, and drops them.
pub async fn list_and_drop(kubeconfig: &Path) -> Result<u64> {
    let wire = Wire::new(kubeconfig).await?;
    // From the API server's memory, as every informer begins.
    let read = |what: &'static str| wire.read_and_drop(what, PROTOBUF, |_| {});
    let (nodes, pods) = tokio::join!(
        read("/api/v1/nodes?resourceVersion=0"),
        read("/api/v1/pods?resourceVersion=0")
    );
    Ok(nodes? + pods?)
}

async fn time_first_bind(plane: &ControlPlane, binary: &Path, round: usize) -> Result<f64> {
    let admin = plane.admin();
    let requests = json!({"cpu": "100m", "memory": "64Mi"});
    let pod = json!({
        "kind": "Pod",
        "metadata": {"namespace": NAMESPACE, "name": format!("{WAITING}{round}")},
        "spec": {
            "schedulerName": SCHEDULER_NAME,
            "containers": [{"name": "main", "image": "pause:1", "resources": {"requests": requests}}],
        },
    });
    api::create(&admin, &pod).await?;
    let sightings = Sightings::start(&admin, NAMESPACE, WAITING).await?;
    let began = Instant::now();
    let kubeconfig = plane.scheduler_kubeconfig();
    let scheduler = SchedulerProcess::start_binary(binary, kubeconfig, &[]).await?.quiet();
    let bound = loop {
        if let Some(bound) = sightings.look(|seen| seen.bound_span().first)? {
            break bound;
        }
        if began.elapsed() > PATIENCE {
            return Err(Error::TimedOut {
                awaited: "the first bind".into(),
                seconds: PATIENCE.as_secs(),
                seen: scheduler.log(),
            });
        }
        sleep(POLL_EVERY).await;
    };
    scheduler.terminate().await?;
    api::delete(&admin, &pod).await?;
    Ok(bound.duration_since(began).as_secs_f64())
}

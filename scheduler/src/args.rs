//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use engine::EventQueue;

use crate::configuration::ConfigMapName;

/// Schedules Pods that need reserved bandwidth, and holds them until it is there.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Schedule the Pods of a cluster that name corridor-scheduler as their scheduler.
    Run(Box<RunArgs>),
    /// Show what it does, with nothing installed: an in-memory API, fake nodes, a short story.
    Demo(DemoArgs),
    /// Run the simulated daemons corrd, memqosd and attestd as one process.
    Daemons(DaemonsArgs),
    /// Carry out a journal again and compare every decision (docs/journal.md). Ends with 0 if all are the
    /// same, 1 if one is not, 2 if the file is no whole journal of this version.
    Replay(ReplayArgs),
    /// Place made-up Pods on a made-up cluster in memory, and tell how fast that is and what it takes.
    Simulate(SimulateArgs),
    /// Print the custom resource definitions, for `kubectl apply -f -`.
    Crds,
}

#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// How to reach the API server. Default: in-cluster, then $KUBECONFIG, then ~/.kube/config.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Settings: YAML documents of kind KubeSchedulerConfiguration (the file of kube-scheduler; ours
    /// are the args of the plugin Corridor) and CorridorConfiguration. May be given several times: a
    /// ConfigMap is mounted as a file for each key.
    #[arg(long, value_name = "FILE")]
    pub config: Vec<PathBuf>,

    /// The same from a ConfigMap, with the keys config.yaml and corridor.yaml. It is followed: a new
    /// version holds at once, a bad one is refused and the last good one stays.
    #[arg(long, value_name = "NAMESPACE/NAME", conflicts_with = "config")]
    pub config_map: Option<ConfigMapName>,

    /// Let a profile be named default-scheduler and the Lease kube-scheduler: this scheduler takes the
    /// place of kube-scheduler, which must not run.
    #[arg(long)]
    pub replace_default: bool,

    /// Look on beside another scheduler, for instance default-scheduler, and write nothing: each of its
    /// decisions is compared with what would have been done here (/api/shadow, /metrics).
    #[arg(long, value_name = "SCHEDULER_NAME", conflicts_with_all = ["leader_elect", "backends", "replace_default"])]
    pub shadow: Option<String>,

    /// Whether several replicas agree on one that decides, by a Lease. Default: what --config says,
    /// else true. With false, never run two.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub leader_elect: Option<bool>,

    /// Where to serve /metrics, /healthz and /readyz, in plain text: loopback only.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:10260", value_parser = loopback)]
    pub http: SocketAddr,

    #[command(flatten)]
    pub https: HttpsArgs,

    /// The daemons behind Corridors and MemoryBundles: none, simulated inside this process, or over
    /// HTTP. With none, nothing is allocated, and the objects' status is trusted whatever its writer.
    #[arg(long, value_name = "WHICH", default_value = "none")]
    pub backends: BackendsArg,

    /// Where corrd answers, with --backends http.
    #[arg(long, value_name = "URL")]
    pub corrd_url: Option<String>,

    /// Where memqosd answers, with --backends http.
    #[arg(long, value_name = "URL")]
    pub memqosd_url: Option<String>,

    /// Where attestd answers, with --backends http. Its tickets are verified with the keys in --config.
    #[arg(long, value_name = "URL")]
    pub attestd_url: Option<String>,

    /// Where to write the journal (docs/journal.md) when the engine fails. The last 8 files are kept. Default:
    /// nowhere; it can be read from /api/journal.
    #[arg(long, value_name = "DIR")]
    pub journal_dir: Option<PathBuf>,

    /// Events about bound Pods that may wait, behind Bindings, until they are written. What is more is counted in
    /// corridor_reports_dropped_total and never written.
    #[arg(long, value_name = "N", default_value_t = EventQueue::default().waiting_max)]
    pub events_waiting_max: usize,

    /// What may be remembered of nodes for classes of Pods, in MiB. What is more is forgotten, by what it takes and what
    /// it costs to find out again: that takes time, and changes no decision. Default: an eighth of the memory that the
    /// process may use, by the limit of its cgroup or else the machine's, and 16 at least.
    #[arg(long, value_name = "N")]
    pub cache_mib_max: Option<u64>,

    /// The `cluster` label of metrics.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub cluster_name: String,

    /// Breaks ties between equally good nodes; the same seed and events give the same decisions.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

#[derive(Debug, clap::Args)]
pub struct HttpsArgs {
    /// Where to serve the same over TLS, to users that the API server authorizes.
    #[arg(long, value_name = "ADDR")]
    pub https: Option<SocketAddr>,

    /// The certificate of --https and its chain, in PEM; read again when it changes. Default: one that
    /// is made at the start and signed by itself.
    #[arg(long, value_name = "FILE", requires_all = ["https", "tls_private_key_file"])]
    pub tls_cert_file: Option<PathBuf>,

    /// The key of that certificate, in PEM.
    #[arg(long, value_name = "FILE", requires_all = ["https", "tls_cert_file"])]
    pub tls_private_key_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum BackendsArg {
    None,
    Simulated,
    Http,
}

#[derive(Debug, clap::Args)]
pub struct SimulateArgs {
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pub nodes: usize,

    #[arg(long, value_name = "N", default_value_t = 50_000)]
    pub pods: usize,

    /// How many different requests the Pods have.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub shapes: usize,

    /// The same seed gives the same cluster, Pods and decisions.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputArg,
}

#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// A journal, as /api/journal or --journal-dir gave it.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// How to tell what came out.
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub output: OutputArg,

    /// Carry out no more than the first N calls.
    #[arg(long, value_name = "N")]
    pub until: Option<u64>,

    /// Explain this Pod, as it stands after the last call.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = pod_name)]
    pub explain: Option<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputArg {
    Text,
    Json,
}

#[derive(Debug, clap::Args)]
pub struct DemoArgs {
    /// End after the story instead of waiting for Ctrl-C.
    #[arg(long)]
    pub once: bool,

    /// The story's chance: tie-breaks and the daemons' readings.
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub seed: u64,
}

#[derive(Debug, clap::Args)]
pub struct DaemonsArgs {
    /// Where allocations are kept; they survive a restart.
    #[arg(long, value_name = "DIR")]
    pub state_dir: PathBuf,

    /// Where to serve, in plain text: loopback only.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7080", value_parser = loopback)]
    pub http: SocketAddr,

    /// Serve /admin too, which changes capacities and injects faults.
    #[arg(long)]
    pub enable_admin: bool,

    /// An allocation is lost when its lease is not renewed for this long.
    #[arg(long, value_name = "N", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub lease_ttl_seconds: u64,

    /// How long an attestation ticket is good.
    #[arg(long, value_name = "N", default_value_t = 3600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub ticket_ttl_seconds: u64,

    /// The same seed gives the same readings and the same signing keys.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

fn pod_name(text: &str) -> Result<(String, String), String> {
    let (namespace, name) = text.split_once('/').ok_or("expected NAMESPACE/NAME")?;
    Ok((namespace.to_owned(), name.to_owned()))
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr =
        text.parse().map_err(|_| "expected an address like 127.0.0.1:10260".to_owned())?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err(format!("{address} is not a loopback address, and plain HTTP is served on loopback only"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, clap::Error> {
        Args::try_parse_from(line.split(' '))
    }

    #[test]
    fn run_has_the_promised_defaults() {
        let Command::Run(args) = parse("corridor-scheduler run").unwrap().command else {
            panic!("run was parsed as something else")
        };
        assert_eq!(args.http.to_string(), "127.0.0.1:10260");
        assert!(args.leader_elect.is_none() && args.kubeconfig.is_none());
        let given = |line: &str| match parse(&format!("corridor-scheduler run {line}")) {
            Ok(Args { command: Command::Run(args) }) => args.leader_elect,
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(given("--leader-elect"), Some(true));
        assert_eq!(given("--leader-elect=false"), Some(false));
    }

    #[test]
    fn bad_flags_end_with_code_2_and_a_reason() {
        let cases = [
            ("run --http 0.0.0.0:80", "loopback only"),
            ("run --http here", "127.0.0.1:10260"),
            ("run --leader-elect=maybe", "true, false"),
            ("run --no-such-flag", "--no-such-flag"),
            ("run --https here", "--https"),
            ("run --https 127.0.0.1:1 --tls-cert-file a", "--tls-private-key-file"),
            ("run --https 127.0.0.1:1 --tls-private-key-file a", "--tls-cert-file"),
            ("replay", "<FILE>"),
            ("replay a --explain b", "NAMESPACE/NAME"),
            ("run --tls-cert-file a --tls-private-key-file b", "--https"),
        ];
        for (line, reason) in cases {
            let error = parse(&format!("corridor-scheduler {line}")).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(reason), "{line}: {error}");
        }
    }
}

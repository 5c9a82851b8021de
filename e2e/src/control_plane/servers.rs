//! Starts etcd and kube-apiserver and waits until they serve.

use std::ffi::OsString;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Request;
use kube::{Client, Config};
use tokio::time::{Instant, sleep};

use super::{PlaneOptions, access};
use crate::binaries::Binaries;
use crate::error::{Doing as _, Error, Result};
use crate::supervised::Supervised;

/// A port that was free a moment ago can be taken; that this happens so often in a row is a fault.
pub(crate) const STARTS_MAX: usize = 5;
/// Measured: 2 to 3 s alone; many at once on a small machine take longer.
const READY_TIME_MAX: Duration = Duration::from_mins(2);
const READY_POLL_EVERY: Duration = Duration::from_millis(50);

const PORT_TAKEN: &str = "address already in use";
/// etcd logs this when its listeners are its own. Asking the port could reach another's etcd.
const ETCD_SERVES: &str = "ready to serve client requests";

/// Every Binding with what it says, and nothing else, so that the log stays small.
const AUDIT_POLICY: &str = r#"apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Request
    verbs: [create]
    resources:
      - group: ""
        resources: [pods/binding, bindings]
  - level: Metadata
    users: ["system:serviceaccount:corridor-system:corridor-operator"]
    verbs: [create, update, patch, delete, deletecollection]
  - level: None
"#;

/// As GKE has it: Pods of these classes are made only where a quota names the class.
const GUARDED_CLASSES: &str = "apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
  - name: ResourceQuota
    configuration:
      apiVersion: apiserver.config.k8s.io/v1
      kind: ResourceQuotaConfiguration
      limitedResources:
        - resource: pods
          matchScopes:
            - scopeName: PriorityClass
              operator: In
              values: [system-node-critical, system-cluster-critical]
";
const NO_CONFIGURATION: &str =
    "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n";

pub(super) struct Etcd {
    pub server: Supervised,
    pub url: String,
}

pub(super) struct ApiServer {
    pub server: Supervised,
    pub port: u16,
    pub admin: Config,
    pub admin_kubeconfig: PathBuf,
    pub audit_log: PathBuf,
}

pub(super) async fn start_etcd(binaries: &Binaries) -> Result<Etcd> {
    for _ in 1..STARTS_MAX {
        match try_etcd(binaries).await {
            Err(problem) if lost_the_port(&problem) => {}
            outcome => return outcome,
        }
    }
    try_etcd(binaries).await
}

pub(super) async fn start_api_server(
    binaries: &Binaries,
    etcd_url: &str,
    options: PlaneOptions,
) -> Result<ApiServer> {
    for _ in 1..STARTS_MAX {
        match try_api_server(binaries, etcd_url, options).await {
            Err(problem) if lost_the_port(&problem) => {}
            outcome => return outcome,
        }
    }
    try_api_server(binaries, etcd_url, options).await
}

/// Another process took the port between the look for a free one and the server's start.
pub(crate) fn lost_the_port(problem: &Error) -> bool {
    match problem {
        Error::ServerStopped { log_tail, .. } => log_tail.to_lowercase().contains(PORT_TAKEN),
        _ => false,
    }
}

async fn try_etcd(binaries: &Binaries) -> Result<Etcd> {
    let url = format!("http://127.0.0.1:{}", free_port()?);
    let server = run_etcd(binaries, |folder| etcd_flags(folder, &url)).await?;
    Ok(Etcd { server, url })
}

/// With the data of one that was killed.
pub(super) async fn etcd_again(binaries: &Binaries, files: &Path, url: &str) -> Result<Supervised> {
    run_etcd(binaries, |_| etcd_flags(files, url)).await
}

async fn run_etcd(
    binaries: &Binaries,
    flags: impl FnOnce(&Path) -> Vec<OsString>,
) -> Result<Supervised> {
    let mut server = Supervised::prepare("etcd", &binaries.path("etcd"), flags)?;
    server.start()?;
    until_ready(&server, async |server| server.log().contains(ETCD_SERVES)).await?;
    Ok(server)
}

fn etcd_flags(folder: &Path, url: &str) -> Vec<OsString> {
    vec![
        flag("--data-dir", folder.join("data")),
        flag("--listen-client-urls", url),
        flag("--advertise-client-urls", url),
        // A single member has no peers: any port will do, and none need be known.
        flag("--listen-peer-urls", "http://127.0.0.1:0"),
        "--unsafe-no-fsync".into(),
    ]
}

/// With the port and the files of one that was killed.
pub(super) async fn api_server_again(
    binaries: &Binaries,
    files: &Path,
    port: u16,
    etcd_url: &str,
    admin: &Config,
) -> Result<Supervised> {
    let program = binaries.path("kube-apiserver");
    let mut server = Supervised::prepare("kube-apiserver", &program, |_| {
        api_server_flags(files, port, etcd_url)
    })?;
    server.start()?;
    let client = Client::try_from(admin.clone()).doing("making a client of the API server")?;
    until_ready(&server, async |_| is_ready(&client).await).await?;
    Ok(server)
}

async fn try_api_server(
    binaries: &Binaries,
    etcd_url: &str,
    options: PlaneOptions,
) -> Result<ApiServer> {
    let port = free_port()?;
    let token = random_token();
    let mut server =
        Supervised::prepare("kube-apiserver", &binaries.path("kube-apiserver"), |folder| {
            api_server_flags(folder, port, etcd_url)
        })?;
    let folder = server.folder().to_owned();
    write(&folder.join("tokens.csv"), &format!("{token},admin,admin,\"system:masters\"\n"))?;
    write(&folder.join("audit-policy.yaml"), AUDIT_POLICY)?;
    let admission = if options.guards_classes { GUARDED_CLASSES } else { NO_CONFIGURATION };
    write(&folder.join("admission.yaml"), admission)?;
    let authority = certificate(&folder);
    let admin_kubeconfig = folder.join("admin.kubeconfig");
    let url = format!("https://127.0.0.1:{port}");
    write(&admin_kubeconfig, &access::kubeconfig(&url, &authority, &token))?;
    server.start()?;

    // The key is written last: when it is there, the certificate is whole.
    let key = authority.with_extension("key");
    until_ready(&server, async |_| key.exists()).await?;
    let admin = access::config_from(&admin_kubeconfig).await?;
    // The token and the certificate are of this server alone, so another's is not mistaken for it.
    let client = Client::try_from(admin.clone()).doing("making a client of the API server")?;
    until_ready(&server, async |_| is_ready(&client).await).await?;
    Ok(ApiServer { server, port, admin, admin_kubeconfig, audit_log: folder.join("audit.log") })
}

fn api_server_flags(folder: &Path, port: u16, etcd_url: &str) -> Vec<OsString> {
    // The server makes this pair at its start, before it reads the keys of ServiceAccounts; one
    // pair for both purposes is enough here.
    let certificate = certificate(folder);
    let key = certificate.with_extension("key");
    vec![
        flag("--etcd-servers", etcd_url),
        flag("--bind-address", "127.0.0.1"),
        flag("--secure-port", port.to_string()),
        flag("--cert-dir", folder.join("certificates")),
        flag("--service-account-issuer", "https://corridor-e2e.invalid"),
        flag("--service-account-key-file", &certificate),
        flag("--service-account-signing-key-file", key),
        flag("--service-cluster-ip-range", "10.0.0.0/24"),
        flag("--authorization-mode", "RBAC"),
        flag("--anonymous-auth", "false"),
        flag("--token-auth-file", folder.join("tokens.csv")),
        flag("--audit-policy-file", folder.join("audit-policy.yaml")),
        flag("--audit-log-path", folder.join("audit.log")),
        flag("--admission-control-config-file", folder.join("admission.yaml")),
        // Without kubelets and kube-controller-manager, Nodes would stay tainted, and Pods be
        // refused for the lack of a default ServiceAccount.
        flag("--disable-admission-plugins", "TaintNodesByCondition,ServiceAccount"),
        // No client reaches this server through the Service `kubernetes`.
        flag("--endpoint-reconciler-type", "none"),
    ]
}

pub(super) fn certificate(folder: &Path) -> PathBuf {
    folder.join("certificates").join("apiserver.crt")
}

pub(crate) async fn is_ready(client: &Client) -> bool {
    answers(client, "/readyz").await
}

pub(crate) async fn is_prometheus_ready(client: &Client) -> bool {
    answers(client, "/-/ready").await
}

async fn answers(client: &Client, path: &'static str) -> bool {
    let request = Request::get(path).body(Vec::new()).expect("a constant path is valid");
    client.request_text(request).await.is_ok()
}

/// Asks again and again; the server's own end is noticed at once.
pub(crate) async fn until_ready(
    server: &Supervised,
    ready: impl AsyncFn(&Supervised) -> bool,
) -> Result<()> {
    let deadline = Instant::now() + READY_TIME_MAX;
    while !ready(server).await {
        if server.has_ended() {
            return Err(server.stopped_unexpectedly());
        }
        if Instant::now() > deadline {
            return Err(Error::TimedOut {
                awaited: format!("the server in {}", server.folder().display()),
                seconds: READY_TIME_MAX.as_secs(),
                seen: format!("its log ends with:\n{}", server.log_tail()),
            });
        }
        sleep(READY_POLL_EVERY).await;
    }
    Ok(())
}

/// Free at this moment. The caller must be ready to find it taken.
pub fn free_port() -> Result<u16> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .doing("looking for a free port on loopback")
}

/// 128 bits from the keys that the standard library draws from the system.
fn random_token() -> String {
    let word = || RandomState::new().hash_one(0);
    format!("{:016x}{:016x}", word(), word())
}

pub(super) fn flag(name: &str, value: impl Into<OsString>) -> OsString {
    let mut flag = OsString::from(format!("{name}="));
    flag.push(value.into());
    flag
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).doing(format!("writing {}", path.display()))
}

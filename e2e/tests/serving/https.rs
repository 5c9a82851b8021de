//! The scheduler's HTTPS with a real API server behind it: who may ask what, revoked tokens, an API
//! server that does not answer, new certificates, and too many questions.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use e2e::https_client::{HttpsClient, Pair, Reply, TestAuthority};
use e2e::{ControlPlane, SchedulerProcess};
use http::{Method, StatusCode};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

const NAMESPACE: &str = "default";
const POD: &str = r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]}}"#;
/// Ours and the API server's memory of a token, and some room.
const FORGETTING_TIME_MAX: Duration = Duration::from_secs(40);
/// Twice what it takes to look at the files, and some room.
const ROTATION_TIME_MAX: Duration = Duration::from_secs(20);
/// Twice what the scheduler allows for a handshake, and some room.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(15);

/// One plane for all tests of this file, held by one at a time. It ends with the process.
static SHARED: Mutex<Option<ControlPlane>> = Mutex::const_new(None);

/// A running scheduler, and a client that trusts its certificate.
pub(super) struct Story<'a> {
    pub(super) plane: &'a ControlPlane,
    scheduler: SchedulerProcess,
    client: HttpsClient,
    authority: TestAuthority,
    files: [PathBuf; 2],
    first: Pair,
    _folder: tempfile::TempDir,
}

pub(super) async fn tell(story: impl AsyncFnOnce(&Story<'_>)) {
    let mut shared = SHARED.lock().await;
    let plane = match &mut *shared {
        Some(plane) => &*plane,
        none => {
            let plane = ControlPlane::start().await.unwrap();
            plane.install_crds().await.unwrap();
            &*none.insert(plane)
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let files = ["tls.crt", "tls.key"].map(|name| folder.path().join(name));
    let authority = TestAuthority::new().unwrap();
    let first = authority.issue().unwrap();
    write(&files, &first);
    let [certificate, key] = files.each_ref().map(|path| path.to_str().unwrap());
    let cluster = plane.cluster().await.unwrap();
    let flags = ["--https", "127.0.0.1:0", "--tls-cert-file", certificate];
    let flags = [&flags[..], &["--tls-private-key-file", key]].concat();
    let scheduler = cluster.start_scheduler_with(&flags).await.unwrap();
    let client = authority.client(scheduler.https_address().unwrap()).unwrap();
    let told = Story { plane, scheduler, client, authority, files, first, _folder: folder };
    story(&told).await;
    assert_eq!(told.scheduler.terminate().await.unwrap(), 0);
}

fn write(files: &[PathBuf; 2], pair: &Pair) {
    fs::write(&files[0], &pair.certificate).unwrap();
    fs::write(&files[1], &pair.key).unwrap();
}

impl Story<'_> {
    /// A ServiceAccount's token, with a ClusterRole or without.
    async fn token(&self, account: &str, role: Option<&str>) -> String {
        self.token_of(NAMESPACE, account, role).await
    }

    pub(super) async fn token_of(
        &self,
        namespace: &str,
        account: &str,
        role: Option<&str>,
    ) -> String {
        let place = format!("--namespace={namespace}");
        self.plane.kubectl(&["create", "serviceaccount", account, &place]).await.unwrap();
        if let Some(role) = role {
            let role = format!("--clusterrole={role}");
            let whom = format!("--serviceaccount={namespace}:{account}");
            let arguments = ["create", "clusterrolebinding", account, &role, &whom];
            self.plane.kubectl(&arguments).await.unwrap();
        }
        let accounts: Api<ServiceAccount> = Api::namespaced(self.plane.admin(), namespace);
        let spec = Some(TokenRequestSpec::default());
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let params = PostParams::default();
        let granted = accounts.create_token_request(account, &params, &request).await.unwrap();
        granted.status.unwrap().token.unwrap()
    }

    async fn get(&self, path: &str, token: &str) -> Reply {
        let authorization = format!("Bearer {token}");
        self.client.call(Method::GET, path, Some(&authorization), "").await.unwrap()
    }

    pub(super) async fn what_if(&self, token: &str) -> Reply {
        let authorization = format!("Bearer {token}");
        self.client.call(Method::POST, "/api/what-if", Some(&authorization), POD).await.unwrap()
    }
}

/// The one thing that a refusal must have.
fn reason(reply: &Reply) -> String {
    let body: Value = serde_json::from_str(&reply.body).unwrap();
    body["error"].as_str().unwrap_or_else(|| panic!("no reason: {reply:?}")).to_owned()
}

#[tokio::test]
async fn the_api_server_says_who_may_ask_what() {
    tell(async |story| {
        let scraper = story.token("scraper", Some("corridor-metrics-reader")).await;
        let asker = story.token("asker", Some("corridor-api-reader")).await;
        let nobody = story.token("nobody", None).await;

        for path in ["/healthz", "/livez", "/readyz"] {
            let reply = story.client.call(Method::GET, path, None, "").await.unwrap();
            assert_eq!(reply.status, 200, "{path}: {reply:?}");
        }
        for (path, token, code) in [
            ("/metrics", &scraper, 200),
            ("/metrics", &asker, 403),
            ("/metrics", &nobody, 403),
            ("/metrics/", &scraper, 403),
            ("/%6detrics", &scraper, 403),
            ("/healthz/../metrics", &nobody, 403),
            ("/api/pods/default/p/explain", &asker, 404),
            // Every account may get /api/* of the API server; that is not ours.
            ("/api/pods/default/p/explain", &scraper, 403),
            ("/api/pods/default/p/explain", &nobody, 403),
            ("/version", &nobody, 403),
            ("/api/no-such-question", &asker, 404),
            ("/no-such-path", &nobody, 403),
        ] {
            let reply = story.get(path, token).await;
            assert_eq!(reply.status, code, "{path}: {reply:?}");
        }
        for (token, code) in [(&asker, 200), (&scraper, 403), (&nobody, 403)] {
            let reply = story.what_if(token).await;
            assert_eq!(reply.status, code, "{reply:?}");
        }
        let why = reason(&story.what_if(&nobody).await);
        for part in ["system:serviceaccount:default:nobody", "post", "/corridor/api/what-if"] {
            assert!(why.contains(part), "{why}");
        }
        assert!(story.get("/metrics", &scraper).await.body.contains("# TYPE"));

        // Another signature, in the middle: the last letter holds bits that are not read.
        let (claims, signature) = scraper.rsplit_once('.').unwrap();
        let forged = format!("{claims}.{}", signature.chars().rev().collect::<String>());
        let (no_scheme, basic) = (scraper.clone(), format!("Basic {scraper}"));
        let cases =
            [None, Some("Bearer "), Some(&*no_scheme), Some(&basic), Some("Bearer nonsense")];
        let forged = format!("Bearer {forged}");
        for authorization in cases.into_iter().chain([Some(&*forged)]) {
            for path in ["/metrics", "/no-such-path"] {
                let reply = story.client.call(Method::GET, path, authorization, "").await.unwrap();
                assert_eq!(reply.status, 401, "{path} {authorization:?}: {reply:?}");
                assert_eq!(reply.headers["www-authenticate"], "Bearer");
                reason(&reply);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_revoked_token_is_soon_refused() {
    tell(async |story| {
        let token = story.token("short-lived", Some("corridor-metrics-reader")).await;
        assert_eq!(story.get("/metrics", &token).await.status, 200);
        let accounts: Api<ServiceAccount> = Api::namespaced(story.plane.admin(), NAMESPACE);
        accounts.delete("short-lived", &DeleteParams::default()).await.unwrap();
        let deadline = Instant::now() + FORGETTING_TIME_MAX;
        loop {
            let reply = story.get("/metrics", &token).await;
            if reply.status == StatusCode::UNAUTHORIZED {
                break;
            }
            assert_eq!(reply.status, 200, "{reply:?}");
            assert!(Instant::now() < deadline, "the token is still good");
            sleep(Duration::from_millis(500)).await;
        }
    })
    .await;
}

/// Stops a process where it stands, and lets it go on whatever happens.
struct Frozen(u32);

impl Frozen {
    fn new(process_id: u32) -> Self {
        signal("-STOP", process_id);
        Self(process_id)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        signal("-CONT", self.0);
    }
}

fn signal(signal: &str, process_id: u32) {
    let status = Command::new("kill").args([signal, &process_id.to_string()]).status();
    assert!(status.unwrap().success());
}

#[tokio::test]
async fn nobody_is_let_in_while_the_api_server_is_silent() {
    tell(async |story| {
        let token = story.token("patient", Some("corridor-metrics-reader")).await;
        // The API server comes first.
        let frozen = Frozen::new(story.plane.process_ids()[0]);
        let reply = story.get("/metrics", &token).await;
        assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE, "{reply:?}");
        assert!(reason(&reply).contains("TokenReview"), "{reply:?}");
        let open = story.client.call(Method::GET, "/healthz", None, "").await.unwrap();
        assert_eq!(open.status, 200, "{open:?}");
        drop(frozen);
        // A failure is not remembered.
        let deadline = Instant::now() + FORGETTING_TIME_MAX;
        while story.get("/metrics", &token).await.status != 200 {
            assert!(Instant::now() < deadline, "it does not recover");
            sleep(Duration::from_millis(200)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_new_certificate_is_shown_without_a_restart() {
    tell(async |story| {
        let shown = async || {
            let reply = story.client.call(Method::GET, "/healthz", None, "").await.unwrap();
            assert_eq!(reply.status, 200);
            reply.certificate
        };
        let process = story.scheduler.process_id();
        assert_eq!(shown().await, story.first.shown);

        // Half of a new pair is no pair.
        let second = story.authority.issue().unwrap();
        fs::write(&story.files[0], &second.certificate).unwrap();
        let deadline = Instant::now() + ROTATION_TIME_MAX;
        while !story.scheduler.log().contains("the last good ones stay") {
            assert!(Instant::now() < deadline, "the broken pair was not noticed");
            sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(shown().await, story.first.shown);

        fs::write(&story.files[1], &second.key).unwrap();
        let deadline = Instant::now() + ROTATION_TIME_MAX;
        while shown().await != second.shown {
            assert!(Instant::now() < deadline, "the new certificate is not shown");
            sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(story.scheduler.process_id(), process);
    })
    .await;
}

#[tokio::test]
async fn too_many_questions_are_asked_to_wait() {
    /// More than a burst and all that comes back while they are asked, one after the other.
    const TRIES_MAX: usize = 400;
    tell(async |story| {
        let token = story.token("impatient", Some("corridor-api-reader")).await;
        // Plain and over TLS share a pace; plain ones are faster to ask.
        let plain = kube::Config::new(story.scheduler.url().parse().unwrap());
        let plain = kube::Client::try_from(plain).unwrap();
        let mut refused = None;
        for _ in 0..TRIES_MAX {
            let request = http::Request::post("/api/what-if").body(POD.as_bytes().to_vec().into());
            let _ = plain.send(request.unwrap()).await.unwrap();
            let reply = story.what_if(&token).await;
            if reply.status != 200 {
                refused = Some(reply);
                break;
            }
        }
        let reply = refused.expect("everything was answered");
        assert_eq!(reply.status, StatusCode::TOO_MANY_REQUESTS, "{reply:?}");
        assert_eq!(reply.headers["retry-after"], "1");
        assert!(reason(&reply).contains("again in 1 s"), "{reply:?}");
        // Only this kind of question has to wait, and not for long.
        assert_eq!(story.get("/api/pods/default/p/explain", &token).await.status, 404);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(story.what_if(&token).await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn nobody_takes_more_than_their_share() {
    tell(async |story| {
        // A connection without a request is closed.
        let mut silent =
            TcpStream::connect(story.scheduler.https_address().unwrap()).await.unwrap();
        let waited = timeout(HANDSHAKE_TIME_MAX, silent.read(&mut [0; 16])).await;
        assert_eq!(waited.expect("it may stay for ever").unwrap_or(0), 0);

        let long = format!("Bearer {}", "a".repeat(40 << 10));
        let reply = story.client.call(Method::GET, "/metrics", Some(&long), "").await.unwrap();
        assert_eq!(reply.status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "{reply:?}");

        let token = story.token("verbose", Some("corridor-api-reader")).await;
        let (authorization, body) = (format!("Bearer {token}"), " ".repeat(3 << 20));
        let path = "/api/what-if";
        let reply = story.client.call(Method::POST, path, Some(&authorization), &body).await;
        let reply = reply.unwrap();
        assert_eq!(reply.status, StatusCode::PAYLOAD_TOO_LARGE, "{reply:?}");
        reason(&reply);
    })
    .await;
}

/// It writes nothing, except the reviews of the token in the request.
#[tokio::test]
async fn a_replica_that_follows_is_scraped_too() {
    tell(async |story| {
        let scraper = story.token("scraper-of-all", Some("corridor-metrics-reader")).await;
        let leases: Api<Lease> = Api::namespaced(story.plane.admin(), e2e::SYSTEM_NAMESPACE);
        let lease = json!({
            "metadata": { "name": "corridor-scheduler" },
            "spec": { "holderIdentity": "another", "leaseDurationSeconds": 3600,
                      "renewTime": "2026-01-01T00:00:00.000000Z", "leaseTransitions": 1 },
        });
        let lease = serde_json::from_value(lease).unwrap();
        leases.create(&PostParams::default(), &lease).await.unwrap();
        let cluster = story.plane.cluster().await.unwrap();
        let [certificate, key] = story.files.each_ref().map(|path| path.to_str().unwrap());
        let flags =
            ["--leader-elect=true", "--https", "127.0.0.1:0", "--tls-cert-file", certificate];
        let flags = [&flags[..], &["--tls-private-key-file", key]].concat();
        let follower = cluster.start_scheduler_with(&flags).await.unwrap();
        let client = story.authority.client(follower.https_address().unwrap()).unwrap();
        let bearer = format!("Bearer {scraper}");
        let reply = client.call(Method::GET, "/metrics", Some(&bearer), "").await.unwrap();
        assert_eq!(reply.status, 200, "{reply:?}");
        leases.delete("corridor-scheduler", &DeleteParams::default()).await.unwrap();
        assert_eq!(follower.terminate().await.unwrap(), 0);
    })
    .await;
}

/// Flags that cannot be meant end with code 2, before anything is served.
#[tokio::test]
async fn a_broken_certificate_at_the_start_is_a_mistake() {
    let binary = e2e::scheduler_process::scheduler_binary().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("tls.crt"), "nonsense").unwrap();
    fs::write(path("kubeconfig"), kubeconfig().to_string()).unwrap();
    for (key, why) in [("tls.crt", "no certificate"), ("missing.key", "missing.key")] {
        let output = Command::new(&binary)
            .args(["run", "--http", "127.0.0.1:0", "--https", "127.0.0.1:0", "--kubeconfig"])
            .arg(path("kubeconfig"))
            .arg("--tls-cert-file")
            .arg(path("tls.crt"))
            .arg("--tls-private-key-file")
            .arg(path(key))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why) && said.contains("--tls-cert-file"), "{said}");
    }
}

/// No server answers there, and none is called before flags are read.
fn kubeconfig() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "e2e", "cluster": { "server": "http://127.0.0.1:1" } }],
        "users": [],
        "contexts": [{ "name": "e2e", "context": { "cluster": "e2e", "user": "" } }],
        "current-context": "e2e",
    })
}

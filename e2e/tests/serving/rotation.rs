//! Credentials that are replaced while the scheduler runs: the token that it shows the API server, and
//! the certificate that it shows the daemons.

use std::fs;
use std::future::Future;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use e2e::ControlPlane;
use e2e::control_plane::install_crypto_provider;
use e2e::https_client::{Pair, TestAuthority};
use e2e::scheduler_process::scheduler_binary;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// kube reads a token again when the last reading is 50 s old; the scheduler repeats failed calls
/// within seconds.
const TOKEN_TIME_MAX: Duration = Duration::from_secs(90);
/// Files are looked at every few seconds, and a feed that failed waits a little longer.
const IDENTITY_TIME_MAX: Duration = Duration::from_mins(1);

/// What came in, in order.
type Seen = Arc<Mutex<Vec<Vec<u8>>>>;

/// Listens on loopback and shows each connection to `serve`.
async fn listen<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> u16
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    port
}

/// Reads the head of a request, and answers that now is not the time.
async fn turn_down(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.windows(4).any(|it| it == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
            break;
        }
    }
    let reply =
        "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let _ = stream.write_all(reply.as_bytes()).await;
    let _ = stream.shutdown().await;
    head
}

async fn until(awaited: &str, patience: Duration, done: impl Fn() -> bool) {
    let deadline = Instant::now() + patience;
    while !done() {
        assert!(Instant::now() < deadline, "waited for {awaited}, in vain");
        sleep(LOOK_EVERY).await;
    }
}

/// As a kubelet does it: the old file or the new one, never half of one.
fn replace(path: &Path, content: &str) {
    let next = path.with_extension("next");
    fs::write(&next, content).unwrap();
    fs::rename(next, path).unwrap();
}

#[tokio::test]
async fn a_new_token_in_the_file_is_shown_to_the_api_server() {
    let seen: Seen = Arc::default();
    let log = Arc::clone(&seen);
    let port = listen(move |stream| {
        let log = Arc::clone(&log);
        async move {
            let head = turn_down(stream).await;
            log.lock().unwrap().push(head);
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let (token, kubeconfig) = (folder.path().join("token"), folder.path().join("kubeconfig"));
    fs::write(&token, "first-token").unwrap();
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "e2e", "cluster": { "server": format!("http://127.0.0.1:{port}") } }],
        "users": [{ "name": "e2e", "user": { "tokenFile": token } }],
        "contexts": [{ "name": "e2e", "context": { "cluster": "e2e", "user": "e2e" } }],
        "current-context": "e2e",
    });
    fs::write(&kubeconfig, config.to_string()).unwrap();
    let mut scheduler = Command::new(scheduler_binary().await.unwrap())
        .args(["run", "--leader-elect=false", "--http", "127.0.0.1:0", "--kubeconfig"])
        .arg(&kubeconfig)
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let shows = |token: &str| {
        let header = format!("authorization: Bearer {token}\r\n");
        let is_there = |head: &Vec<u8>| String::from_utf8_lossy(head).contains(&header);
        seen.lock().unwrap().iter().any(is_there)
    };
    until("the first token", TOKEN_TIME_MAX, || shows("first-token")).await;
    replace(&token, "second-token");
    until("the second token", TOKEN_TIME_MAX, || shows("second-token")).await;
    scheduler.kill().await.unwrap();
}

#[tokio::test]
async fn a_new_certificate_in_the_files_is_shown_to_the_daemons() {
    install_crypto_provider();
    let authority = TestAuthority::new().unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(authority.mutual_server().unwrap()));
    let seen: Seen = Arc::default();
    let log = Arc::clone(&seen);
    let port = listen(move |stream| {
        let (log, acceptor) = (Arc::clone(&log), acceptor.clone());
        async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let shown = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
            log.lock().unwrap().push(shown);
            turn_down(stream).await;
        }
    })
    .await;

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let write = |pair: &Pair| {
        replace(&path("tls.crt"), &pair.certificate);
        replace(&path("tls.key"), &pair.key);
    };
    let [first, second] = [authority.issue().unwrap(), authority.issue().unwrap()];
    fs::write(path("ca.crt"), authority.pem()).unwrap();
    write(&first);
    let config = json!({
        "apiVersion": "corridoros.io/v1alpha1",
        "kind": "CorridorConfiguration",
        "backends": {
            "corrdUrl": format!("https://localhost:{port}"),
            "tls": {
                "caFile": path("ca.crt"),
                "certFile": path("tls.crt"),
                "keyFile": path("tls.key"),
            },
        },
    });
    fs::write(path("config.yaml"), config.to_string()).unwrap();
    let plane = ControlPlane::start().await.unwrap();
    plane.install_crds().await.unwrap();
    let cluster = plane.cluster().await.unwrap();
    let config = path("config.yaml");
    let flags = ["--backends", "http", "--config", config.to_str().unwrap()];
    let scheduler = cluster.start_scheduler_with(&flags).await.unwrap();

    let shows = |pair: &Pair| seen.lock().unwrap().contains(&pair.shown);
    until("the first certificate", IDENTITY_TIME_MAX, || shows(&first)).await;

    // A key of another pair: the old identity stays in use.
    replace(&path("tls.key"), &second.key);
    let refused = || scheduler.log().contains("backends.tls: the new files are not used");
    until("the broken pair to be refused", IDENTITY_TIME_MAX, refused).await;
    seen.lock().unwrap().clear();
    until("the first certificate again", IDENTITY_TIME_MAX, || shows(&first)).await;

    write(&second);
    until("the second certificate", IDENTITY_TIME_MAX, || shows(&second)).await;
    assert_eq!(scheduler.terminate().await.unwrap(), 0);
}

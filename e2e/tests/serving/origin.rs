//! Plain HTTP on loopback answers this machine, and no web page that is open on it.

use std::net::SocketAddr;

use e2e::ControlPlane;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Sends these headers as they are and returns what comes back.
async fn ask(address: SocketAddr, path: &str, headers: &[&str]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let headers = headers.join("\r\n");
    let request = format!("GET {path} HTTP/1.1\r\n{headers}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.unwrap();
    String::from_utf8_lossy(&reply).into_owned()
}

fn code(reply: &str) -> &str {
    reply.split(' ').nth(1).unwrap_or_default()
}

#[tokio::test]
async fn a_web_page_cannot_read_what_loopback_serves() {
    let plane = ControlPlane::start().await.unwrap();
    plane.install_crds().await.unwrap();
    let cluster = plane.cluster().await.unwrap();
    let scheduler = cluster.start_scheduler().await.unwrap();
    let address: SocketAddr = scheduler.url().trim_start_matches("http://").parse().unwrap();
    let (port, pod) = (address.port(), "/api/pods/default/p/explain");

    // A page whose name resolves to 127.0.0.1, as the browser sends it.
    let rebound = format!("Host: attacker.example:{port}");
    for path in [pod, "/metrics", "/api/journal"] {
        let reply = ask(address, path, &[&rebound, "Sec-Fetch-Site: same-origin"]).await;
        assert_eq!(code(&reply), "421", "{path}: {reply}");
        assert!(reply.contains("attacker.example") && reply.contains("port-forward"), "{reply}");
    }
    // A page that asks for loopback itself.
    let own = format!("Host: localhost:{port}");
    for foreign in [
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
        "Origin: http://attacker.example",
        "Origin: null",
    ] {
        let reply = ask(address, "/metrics", &[&own, foreign]).await;
        assert_eq!(code(&reply), "403", "{foreign}: {reply}");
        assert!(reply.contains("open the address directly"), "{reply}");
    }
    // People: curl, a browser's address bar, another port by `kubectl port-forward`.
    let origin = format!("Origin: http://localhost:{port}");
    for headers in [
        vec![own.as_str()],
        vec![own.as_str(), "Sec-Fetch-Site: none"],
        vec![own.as_str(), "Sec-Fetch-Site: same-origin", origin.as_str()],
        vec!["Host: 127.0.0.1:8080"],
        vec!["Host: [::1]:8080"],
    ] {
        let reply = ask(address, pod, &headers).await;
        assert_eq!(code(&reply), "404", "no such Pod, and answered: {headers:?}: {reply}");
        assert!(reply.contains("\"error\""), "{reply}");
        assert_eq!(code(&ask(address, "/metrics", &headers).await), "200", "{headers:?}");
    }
    // Probes give nothing away.
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(code(&ask(address, path, &[&rebound]).await), "200", "{path}");
    }
    assert_eq!(scheduler.terminate().await.unwrap(), 0);
}

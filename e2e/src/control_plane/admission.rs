//! Installs the policies of `config/admission/`, and tries out what they say.

use std::time::Duration;

use http::{Method, Request};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{CONFIG_DIR, ControlPlane};
use crate::error::{Doing as _, Error, Result};
use crate::objects::custom::{Custom, CustomKind};

/// The API server compiles and heeds a policy within a second or so.
const HEEDED_TIME_MAX: Duration = Duration::from_mins(1);
const HEEDED_POLL_EVERY: Duration = Duration::from_millis(50);

const CORRIDORS: &str = "/apis/corridoros.io/v1alpha1/namespaces/default/corridors";
const PROBE: &str = "admission-probe";

/// A write that the API server judges as any other, and then forgets.
#[derive(Debug, Clone)]
pub struct DryRun {
    pub method: Method,
    pub path: String,
    pub body: Value,
}

impl DryRun {
    pub fn new(method: Method, path: impl Into<String>, body: Value) -> Self {
        Self { method, path: path.into(), body }
    }

    /// For a deletion the body decides, whatever the URL says.
    pub fn delete(path: impl Into<String>) -> Self {
        let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"] });
        Self::new(Method::DELETE, path, options)
    }

    /// What the API server says against it, if it does.
    pub async fn refusal(&self, client: &Client) -> Result<Option<String>> {
        let doing = || format!("trying out {} {}", self.method, self.path);
        let content_type = match self.method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder()
            .method(self.method.clone())
            .uri(format!("{}?dryRun=All", self.path))
            .header(http::header::CONTENT_TYPE, content_type)
            .body(self.body.to_string().into_bytes())
            .map_err(|problem| Error::malformed(doing(), problem))?;
        match client.request_text(request).await {
            Ok(_) => Ok(None),
            Err(kube::Error::Api(status)) => Ok(Some(status.message)),
            failed => failed.map(|_| None).doing(doing()),
        }
    }

    /// Repeats it until it is refused with a message that contains `part`.
    pub async fn until_refused(&self, client: &Client, part: &str) -> Result<()> {
        let is_refused = |refusal: Option<&str>| refusal.is_some_and(|it| it.contains(part));
        self.until(client, &format!("refused: {part}"), is_refused).await
    }

    /// Repeats it until nothing is said against it.
    pub async fn until_allowed(&self, client: &Client) -> Result<()> {
        self.until(client, "allowed", |refusal| refusal.is_none()).await
    }

    async fn until(
        &self,
        client: &Client,
        awaited: &str,
        done: impl Fn(Option<&str>) -> bool,
    ) -> Result<()> {
        let deadline = Instant::now() + HEEDED_TIME_MAX;
        loop {
            let refusal = self.refusal(client).await?;
            if done(refusal.as_deref()) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(Error::TimedOut {
                    awaited: format!("{} {} to be {awaited}", self.method, self.path),
                    seconds: HEEDED_TIME_MAX.as_secs(),
                    seen: format!("the answer is {refusal:?}"),
                });
            }
            sleep(HEEDED_POLL_EVERY).await;
        }
    }
}

impl ControlPlane {
    /// Applies `config/admission/` and returns when its policies are heeded. The custom resources
    /// must be there. The leader's fence cannot be probed before its Lease is there.
    pub async fn install_admission(&self) -> Result<()> {
        let folder = format!("{CONFIG_DIR}/admission");
        self.kubectl(&["apply", "--server-side", "--filename", &folder]).await?;
        let admin = self.admin();
        let kind = CustomKind::Corridor;
        let corridor = Custom::create(&admin, kind, "default", PROBE, corridor_spec()).await?;
        for (write, part) in probes() {
            write.until_refused(&admin, part).await?;
        }
        corridor.delete().await
    }

    /// A client that acts as another user, with that user's rights alone.
    pub fn client_as(&self, user: &str) -> Result<Client> {
        let mut config: Config = self.admin.clone();
        config.auth_info.impersonate = Some(user.to_owned());
        Client::try_from(config).doing(format!("making a client of {user}"))
    }
}

/// One for each policy: they are not heeded at the same moment.
fn probes() -> [(DryRun, &'static str); 4] {
    let granted = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": PROBE, "annotations": { "corridoros.io/grant": "{}" } },
        "spec": { "containers": [{ "name": "main", "image": "never-pulled:1" }] },
    });
    let placed = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": PROBE, "annotations": { "corridoros.io/corridorRef": "a/b" } },
        "spec": {
            "nodeName": "node-1",
            "containers": [{ "name": "main", "image": "never-pulled:1" }],
        },
    });
    let attested = json!({
        "apiVersion": "corridoros.io/v1alpha1",
        "kind": "Corridor",
        "metadata": {
            "name": "admission-probe-attested",
            "annotations": { "corridoros.io/attestationTicket": "forged" },
        },
        "spec": corridor_spec(),
    });
    let status = json!({ "status": { "phase": "Ready" } });
    [
        (
            DryRun::new(Method::POST, "/api/v1/namespaces/default/pods", granted),
            "only corridor-scheduler writes corridoros.io/grant",
        ),
        (
            DryRun::new(Method::POST, "/api/v1/namespaces/default/pods", placed),
            "must be placed by corridor-scheduler",
        ),
        (
            DryRun::new(Method::POST, CORRIDORS, attested),
            "only corridor-scheduler writes corridoros.io/attestationTicket",
        ),
        (
            DryRun::new(Method::PATCH, format!("{CORRIDORS}/{PROBE}/status"), status),
            "only corridor-scheduler writes the status",
        ),
    ]
}

fn corridor_spec() -> Value {
    json!({ "lanes": 1, "lambdaNm": [1550], "minGbps": 1 })
}

//! Installs the custom resources of `config/crd/`.

use std::time::Duration;

use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};
use tokio::time::{Instant, sleep};

use super::{CONFIG_DIR, ControlPlane};
use crate::error::{Doing as _, Error, Result};
use crate::observe::until;

/// The API server establishes a kind within a second or so.
const SERVED_TIME_MAX: Duration = Duration::from_mins(1);
const SERVED_POLL_EVERY: Duration = Duration::from_millis(20);

impl ControlPlane {
    /// Applies `config/crd/` and returns when every kind in it is established and served.
    pub async fn install_crds(&self) -> Result<()> {
        let folder = format!("{CONFIG_DIR}/crd");
        self.kubectl(&["apply", "--server-side", "--filename", &folder]).await?;
        let client = self.admin();
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        let established = until(&crds, "every CRD to be established", SERVED_TIME_MAX, |seen| {
            !seen.is_empty() && seen.values().all(is_established)
        });
        for crd in established.await?.values() {
            until_served(&client, crd).await?;
        }
        Ok(())
    }
}

fn is_established(crd: &CustomResourceDefinition) -> bool {
    let conditions = crd.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|c| c.type_ == "Established" && c.status == "True")
}

/// The handler that serves a kind hears of it a moment after its condition is written.
async fn until_served(client: &Client, crd: &CustomResourceDefinition) -> Result<()> {
    let spec = &crd.spec;
    for version in spec.versions.iter().filter(|version| version.served) {
        let path = format!("/apis/{}/{}/{}?limit=1", spec.group, version.name, spec.names.plural);
        let deadline = Instant::now() + SERVED_TIME_MAX;
        loop {
            let request = Request::get(&path)
                .body(Vec::new())
                .map_err(|problem| Error::malformed(format!("asking for {path}"), problem))?;
            match client.request_text(request).await {
                Ok(_) => break,
                Err(kube::Error::Api(status))
                    if status.code == 404 && Instant::now() < deadline =>
                {
                    sleep(SERVED_POLL_EVERY).await;
                }
                failed => failed.map(drop).doing(format!("asking for {path}"))?,
            }
        }
    }
    Ok(())
}

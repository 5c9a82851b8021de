//! Kubeconfigs: the administrator's, and the scheduler's with the rights of `config/rbac/` only.

use std::fs;
use std::path::Path;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Config};
use serde_json::json;

use super::{CONFIG_DIR, ControlPlane, servers};
use crate::SYSTEM_NAMESPACE;
use crate::error::{Doing as _, Error, Result};

const SCHEDULER_ACCOUNT: &str = "corridor-operator";
/// No test runs longer.
const TOKEN_SECONDS: i64 = 6 * 3600;

impl ControlPlane {
    pub(super) async fn give_scheduler_access(&mut self) -> Result<()> {
        let rules = format!("{CONFIG_DIR}/rbac");
        self.kubectl(&["apply", "--server-side", "--filename", &rules]).await?;
        let token = self.token_of(SYSTEM_NAMESPACE, SCHEDULER_ACCOUNT).await?;
        let authority = servers::certificate(self.api_server.folder());
        let url = self.admin.cluster_url.to_string();
        fs::write(&self.scheduler_kubeconfig, kubeconfig(&url, &authority, &token))
            .doing(format!("writing {}", self.scheduler_kubeconfig.display()))
    }

    /// A token of a ServiceAccount.
    pub async fn token_of(&self, namespace: &str, account: &str) -> Result<String> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin(), namespace);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(TOKEN_SECONDS),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let doing = format!("asking for a token of {namespace}/{account}");
        let granted = accounts
            .create_token_request(account, &PostParams::default(), &request)
            .await
            .doing(doing.clone())?;
        let token = granted.status.and_then(|status| status.token);
        token.ok_or_else(|| Error::malformed(doing, "the answer has none"))
    }
}

/// A kubeconfig in JSON, which is YAML too.
pub(super) fn kubeconfig(url: &str, authority: &Path, token: &str) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "e2e",
            "cluster": { "server": url, "certificate-authority": authority },
        }],
        "users": [{ "name": "e2e", "user": { "token": token } }],
        "contexts": [{ "name": "e2e", "context": { "cluster": "e2e", "user": "e2e" } }],
        "current-context": "e2e",
    })
    .to_string()
}

/// A client's configuration from a kubeconfig.
pub async fn config_from(kubeconfig: &Path) -> Result<Config> {
    let doing = || format!("reading {}", kubeconfig.display());
    let parsed =
        Kubeconfig::read_from(kubeconfig).map_err(|problem| Error::malformed(doing(), problem))?;
    Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default())
        .await
        .map_err(|problem| Error::malformed(doing(), problem))
}

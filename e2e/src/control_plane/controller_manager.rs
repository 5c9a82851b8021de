//! kube-controller-manager, for the few tests in which other controllers matter.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpStream;

use super::servers::{STARTS_MAX, flag, free_port, lost_the_port, until_ready};
use super::{ControlPlane, Supervised};
use crate::error::Result;

const PROGRAM: &str = "kube-controller-manager";

/// Those that end namespaces and remove what their owners left, make Pods for Deployments, let roles
/// become part of others, count what quotas limit, and check the types in admission policies.
const CONTROLLERS: [&str; 7] = [
    "namespace-controller",
    "garbage-collector-controller",
    "deployment-controller",
    "replicaset-controller",
    "clusterrole-aggregation-controller",
    "resourcequota-controller",
    "validatingadmissionpolicy-status-controller",
];

/// A running kube-controller-manager. It ends when this is dropped.
#[derive(Debug)]
pub struct ControllerManager {
    #[expect(dead_code, reason = "held for its Drop")]
    server: Supervised,
}

impl ControlPlane {
    /// Starts a few of its controllers, with every right.
    pub async fn start_controller_manager(&self) -> Result<ControllerManager> {
        for _ in 1..STARTS_MAX {
            match self.try_controller_manager().await {
                Err(problem) if lost_the_port(&problem) => {}
                outcome => return outcome,
            }
        }
        self.try_controller_manager().await
    }

    async fn try_controller_manager(&self) -> Result<ControllerManager> {
        let port = free_port()?;
        let mut server = Supervised::prepare(PROGRAM, &self.binaries.path(PROGRAM), |folder| {
            vec![
                flag("--kubeconfig", self.admin_kubeconfig()),
                flag("--bind-address", "127.0.0.1"),
                flag("--secure-port", port.to_string()),
                flag("--cert-dir", folder.join("certificates")),
                flag("--controllers", CONTROLLERS.join(",")),
                "--leader-elect=false".into(),
            ]
        })?;
        server.start()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        until_ready(&server, async |_| TcpStream::connect(address).await.is_ok()).await?;
        Ok(ControllerManager { server })
    }
}

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

/// Those that bind claims, guard them while they are used, make the claims of ephemeral volumes, remove what
/// their owners left, make Pods with claims of their own, and end namespaces.
const VOLUME_CONTROLLERS: [&str; 7] = [
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "ephemeral-volume-controller",
    "garbage-collector-controller",
    "statefulset-controller",
    "namespace-controller",
];

/// Those that make the claims of templates and end what is reserved for Pods that are over, delete Pods whose devices
/// are tainted, bind the volumes of Pods that have both, remove what their owners left, and end namespaces.
const DEVICE_CONTROLLERS: [&str; 5] = [
    "resourceclaim-controller",
    "device-taint-eviction-controller",
    "persistentvolume-binder-controller",
    "garbage-collector-controller",
    "namespace-controller",
];

/// The provisioner `kubernetes.io/host-path`, for tests only: what it makes lies in `/tmp/hostpath_pv`.
const WITH_HOST_PATHS: &str = "--enable-hostpath-provisioner";

/// Its client's own limits would let claims wait for it that should wait for the scheduler alone.
const WITHOUT_LIMITS: [&str; 2] = ["--kube-api-qps=10000", "--kube-api-burst=10000"];

/// A running kube-controller-manager. It ends when this is dropped.
#[derive(Debug)]
pub struct ControllerManager {
    #[expect(dead_code, reason = "held for its Drop")]
    server: Supervised,
}

impl ControlPlane {
    /// Starts a few of its controllers, with every right.
    pub async fn start_controller_manager(&self) -> Result<ControllerManager> {
        self.start_controllers(&CONTROLLERS, &[]).await
    }

    /// Starts those that volumes need, with its provisioner of folders on this machine. What that one makes is
    /// removed by [`remove_host_paths`](crate::objects::volumes::remove_host_paths).
    pub async fn start_volume_controllers(&self) -> Result<ControllerManager> {
        let [queries, burst] = WITHOUT_LIMITS;
        let more = [WITH_HOST_PATHS, queries, burst];
        self.start_controllers(&VOLUME_CONTROLLERS, &more).await
    }

    /// Starts those that devices need.
    pub async fn start_device_controllers(&self) -> Result<ControllerManager> {
        self.start_controllers(&DEVICE_CONTROLLERS, &WITHOUT_LIMITS).await
    }

    async fn start_controllers(&self, names: &[&str], more: &[&str]) -> Result<ControllerManager> {
        for _ in 1..STARTS_MAX {
            match self.try_controllers(names, more).await {
                Err(problem) if lost_the_port(&problem) => {}
                outcome => return outcome,
            }
        }
        self.try_controllers(names, more).await
    }

    async fn try_controllers(&self, names: &[&str], more: &[&str]) -> Result<ControllerManager> {
        let port = free_port()?;
        let mut server = Supervised::prepare(PROGRAM, &self.binaries.path(PROGRAM), |folder| {
            let own = [
                flag("--kubeconfig", self.admin_kubeconfig()),
                flag("--bind-address", "127.0.0.1"),
                flag("--secure-port", port.to_string()),
                flag("--cert-dir", folder.join("certificates")),
                flag("--controllers", names.join(",")),
                "--leader-elect=false".into(),
            ];
            own.into_iter().chain(more.iter().map(Into::into)).collect()
        })?;
        server.start()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        until_ready(&server, async |_| TcpStream::connect(address).await.is_ok()).await?;
        Ok(ControllerManager { server })
    }
}

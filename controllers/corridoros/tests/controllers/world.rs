//! An API server, daemons and controllers in one process, and ways to look at them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use controllers::{Backends, Controllers, Settings};
use crds::{AttestationPolicy, Corridor, MemoryBundle, Phase, condition};
use daemons::client::Patience;
use daemons::corrd::{self, CorridorRequest, PathSpec};
use daemons::memqosd::Bundle;
use daemons::simulated::{SimulatedConfig, SimulatedDaemons};
use daemons::ticket::TrustedKeys;
use daemons::{Endpoint, Owner};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Namespace};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use sim::ApiServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::running::{Running, behind_policies};

/// Longer than anything here takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(20);
const NAMESPACE: &str = "default";

pub struct World {
    api: ApiServer,
    pub client: Client,
    daemons: Option<SimulatedDaemons>,
    config: SimulatedConfig,
    _state: tempfile::TempDir,
}

impl World {
    pub async fn new() -> Self {
        Self::with(SimulatedConfig::default()).await
    }

    pub async fn with(config: SimulatedConfig) -> Self {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let api = ApiServer::start(any, crds::all()).await.unwrap();
        let client = Client::try_from(Config::new(api.url().parse().unwrap())).unwrap();
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let system: Namespace =
            serde_json::from_value(json!({"metadata": {"name": crds::SYSTEM_NAMESPACE}})).unwrap();
        namespaces.create(&PostParams::default(), &system).await.unwrap();
        let state = tempfile::tempdir().unwrap();
        let mut config = SimulatedConfig {
            enable_admin: true,
            state_dir: Some(state.path().to_owned()),
            ..config
        };
        let daemons = SimulatedDaemons::start(config.clone()).await.unwrap();
        // A restart comes back at the same address.
        config.listen = daemons.local_addr();
        Self { api, client, daemons: Some(daemons), config, _state: state }
    }

    pub async fn stop_daemons(&mut self) {
        self.daemons.take().unwrap().stop().await;
    }

    pub async fn start_daemons(&mut self) {
        self.daemons = Some(SimulatedDaemons::start(self.config.clone()).await.unwrap());
    }

    fn endpoint(&self) -> Endpoint {
        let patience =
            Patience { connect: Duration::from_millis(500), call: Duration::from_secs(5) };
        Endpoint::new(&format!("http://{}", self.config.listen), patience).unwrap()
    }

    fn settings() -> Settings {
        Settings {
            telemetry_wait: Duration::from_millis(500),
            lease_interval: Duration::from_millis(500),
            unreachable_after: Duration::from_secs(1),
            sweep_interval: Duration::from_millis(300),
            audit_interval: Duration::from_secs(2),
            backoff_first: Duration::from_millis(50),
            backoff_max: Duration::from_millis(500),
            ber_dwell: Duration::from_secs(2),
            floor_dwell: Duration::from_secs(2),
            recalibration_interval: Duration::from_secs(4),
            ..Settings::default()
        }
    }

    pub fn run(&self) -> Running {
        Self::start(self.client.clone(), self.backends())
    }

    /// The watch of policies shows nothing that happens after its first list.
    pub fn run_behind_policies(&self) -> Running {
        Self::start(behind_policies(&self.client), self.backends())
    }

    fn backends(&self) -> Backends {
        let endpoint = Arc::new(self.endpoint());
        let keys = self.daemons.as_ref().unwrap().trusted_keys();
        Backends {
            corrd: Some(endpoint.clone()),
            memqosd: Some(endpoint.clone()),
            attestd: Some(endpoint),
            trusted_keys: TrustedKeys::read(keys).unwrap(),
        }
    }

    pub fn run_without_backends(&self) -> Running {
        Self::start(self.client.clone(), Backends::default())
    }

    fn start(client: Client, backends: Backends) -> Running {
        let controllers = Controllers::new(client, backends, Self::settings());
        let metrics = controllers.metrics();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stopped = async move {
                let _ = stopped.await;
            };
            controllers.run(stopped).await.unwrap();
        });
        Running { metrics, stop, task }
    }

    // The API server.

    fn corridors(&self) -> Api<Corridor> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    fn memory_bundles(&self) -> Api<MemoryBundle> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    fn policies(&self) -> Api<AttestationPolicy> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub async fn create_corridor(&self, name: &str, attested: bool) {
        let corridor: Corridor = serde_json::from_value(json!({
            "apiVersion": "corridoros.io/v1alpha1", "kind": "Corridor",
            "metadata": {"name": name},
            "spec": {
                "lanes": 8, "lambdaNm": [1550, 1551], "minGbps": 100, "latencyBudgetNs": 250,
                "reachMm": 50, "attestationRequired": attested,
            },
        }))
        .unwrap();
        self.corridors().create(&PostParams::default(), &corridor).await.unwrap();
    }

    pub async fn create_bundle(&self, name: &str, floor: u32) {
        self.create_bundle_that_is(name, floor, "none").await;
    }

    pub async fn create_bundle_that_is(&self, name: &str, floor: u32, persistence: &str) {
        let bundle: MemoryBundle = serde_json::from_value(json!({
            "apiVersion": "corridoros.io/v1alpha1", "kind": "MemoryBundle",
            "metadata": {"name": name},
            "spec": {
                "bytes": 1 << 30, "latencyClass": "T2", "bandwidthFloorGBs": floor,
                "persistence": persistence,
            },
        }))
        .unwrap();
        self.memory_bundles().create(&PostParams::default(), &bundle).await.unwrap();
    }

    pub async fn create_policy(&self, name: &str, spec: &Value) {
        let policy: AttestationPolicy = serde_json::from_value(json!({
            "apiVersion": "corridoros.io/v1alpha1", "kind": "AttestationPolicy",
            "metadata": {"name": name}, "spec": spec,
        }))
        .unwrap();
        self.policies().create(&PostParams::default(), &policy).await.unwrap();
    }

    pub async fn delete_policy(&self, name: &str) {
        self.policies().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub async fn policy_enforced(&self, name: &str) {
        self.until("the policy is enforced", async || {
            let status = self.policies().get(name).await.unwrap().status.unwrap_or_default();
            status.enforced == Some(true) && status.last_audit_time.is_some()
        })
        .await;
    }

    pub async fn delete_corridor(&self, name: &str) {
        self.corridors().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub async fn annotate(&self, name: &str, key: &str, value: &str) {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        let params = PatchParams::default();
        self.corridors().patch(name, &params, &Patch::Merge(patch)).await.unwrap();
    }

    pub async fn edit(&self, name: &str, spec: &Value) {
        let patch = json!({"spec": spec});
        let params = PatchParams::default();
        self.corridors().patch(name, &params, &Patch::Merge(patch)).await.unwrap();
    }

    pub async fn edit_bundle(&self, name: &str, spec: &Value) {
        let patch = json!({"spec": spec});
        let params = PatchParams::default();
        self.memory_bundles().patch(name, &params, &Patch::Merge(patch)).await.unwrap();
    }

    /// Plays the scheduler's driver.
    pub async fn drain(&self, name: &str) {
        let generation = self.corridors().get(name).await.unwrap().metadata.generation;
        let patch = drained("Corridor", generation);
        let params = PatchParams::apply(crds::DRIVER_MANAGER).force();
        self.corridors().patch_status(name, &params, &Patch::Apply(patch)).await.unwrap();
    }

    pub async fn delete_bundle_drained(&self, name: &str) {
        self.memory_bundles().delete(name, &DeleteParams::default()).await.unwrap();
        let generation = self.memory_bundles().get(name).await.unwrap().metadata.generation;
        let patch = drained("MemoryBundle", generation);
        let params = PatchParams::apply(crds::DRIVER_MANAGER).force();
        self.memory_bundles().patch_status(name, &params, &Patch::Apply(patch)).await.unwrap();
    }

    pub async fn set_in_use(&self, name: &str, count: i64) {
        self.patch_status(name, &json!({"inUse": count})).await;
    }

    pub async fn forge_id(&self, name: &str, id: &str) {
        self.patch_status(name, &json!({"corridorId": id})).await;
    }

    async fn patch_status(&self, name: &str, status: &Value) {
        let patch = json!({"status": status});
        let params = PatchParams::default();
        self.corridors().patch_status(name, &params, &Patch::Merge(patch)).await.unwrap();
    }

    pub async fn phase(&self, name: &str, phase: Phase) -> Corridor {
        self.corridor_until(name, phase.as_str(), |it| {
            it.status.as_ref().and_then(|it| it.phase) == Some(phase)
        })
        .await
    }

    pub async fn corridor_until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&Corridor) -> bool,
    ) -> Corridor {
        let start = Instant::now();
        loop {
            let corridor = self.corridors().get(name).await.unwrap();
            if holds(&corridor) {
                return corridor;
            }
            assert!(start.elapsed() < PATIENCE, "never: {what}; {:#?}", corridor.status);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub async fn bundle_phase(&self, name: &str, phase: Phase) -> MemoryBundle {
        self.bundle_until(name, phase.as_str(), |it| {
            it.status.as_ref().and_then(|it| it.phase) == Some(phase)
        })
        .await
    }

    pub async fn bundle_until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&MemoryBundle) -> bool,
    ) -> MemoryBundle {
        let start = Instant::now();
        loop {
            let bundle = self.memory_bundles().get(name).await.unwrap();
            if holds(&bundle) {
                return bundle;
            }
            assert!(start.elapsed() < PATIENCE, "never: {what}; {:#?}", bundle.status);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub async fn corridor_gone(&self, name: &str) {
        self.until("the corridor is gone", async || {
            self.corridors().get_opt(name).await.unwrap().is_none()
        })
        .await;
    }

    pub async fn lease_is_fresh(&self, name: &str) {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), crds::SYSTEM_NAMESPACE);
        self.until("the lease is there", async || {
            let lease = leases.get_opt(name).await.unwrap();
            lease.and_then(|it| it.spec).and_then(|it| it.renew_time).is_some()
        })
        .await;
    }

    pub async fn lease_renewal(&self, name: &str) -> String {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), crds::SYSTEM_NAMESPACE);
        format!("{:?}", leases.get(name).await.unwrap().spec.unwrap().renew_time)
    }

    pub async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let start = Instant::now();
        while !holds().await {
            assert!(start.elapsed() < PATIENCE, "never: {what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Accepted writes of a resource so far.
    pub fn writes(&self, resource: &str) -> usize {
        self.api.write_log().iter().filter(|it| it.resource.starts_with(resource)).count()
    }

    pub async fn write_count(&self, resource: &str, count: usize) {
        let start = Instant::now();
        // Fewer writes may be all there are.
        while self.writes(resource) < count && start.elapsed() < Duration::from_secs(2) {
            tokio::task::yield_now().await;
        }
    }

    pub async fn events(&self, reason: &str) -> usize {
        let events: Api<Event> = Api::namespaced(self.client.clone(), NAMESPACE);
        let all = events.list(&ListParams::default()).await.unwrap();
        all.iter().filter(|it| it.reason.as_deref() == Some(reason)).count()
    }

    pub async fn cluster_uid(&self) -> String {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces.get("kube-system").await.unwrap().metadata.uid.unwrap()
    }

    // The daemons.

    pub async fn allocations(&self) -> Vec<corrd::Corridor> {
        self.endpoint().as_corrd().list("").await.unwrap()
    }

    pub async fn bundles(&self) -> Vec<Bundle> {
        self.endpoint().as_memqosd().list("").await.unwrap()
    }

    pub async fn allocate_for(&self, cluster: &str, object: &str) -> String {
        let path =
            PathSpec { lanes: 2, lambda_nm: vec![1550], min_gbps: 10, ..PathSpec::default() };
        let owner = Owner::new(cluster, object).unwrap();
        let ask = CorridorRequest { owner, path, ticket: None };
        let endpoint = self.endpoint();
        endpoint.as_corrd().allocate(&ask.key(), &ask).await.unwrap().corridor_id
    }

    pub async fn admin(&self, method: &str, path: &str, body: &Value) {
        let body = body.to_string();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: daemons\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(self.config.listen).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        assert!(reply.starts_with("HTTP/1.1 2"), "{reply}");
    }
}

pub fn ready_reason(corridor: &Corridor) -> String {
    let conditions = corridor.status.as_ref().map(|it| it.conditions.clone()).unwrap_or_default();
    let ready = condition::find(&conditions, condition::READY);
    ready.map(|it| it.reason.clone()).unwrap_or_default()
}

fn drained(kind: &str, generation: Option<i64>) -> Value {
    json!({
        "apiVersion": "corridoros.io/v1alpha1", "kind": kind,
        "status": {"conditions": [{
            "type": "Drained", "status": "True", "reason": "NothingBound", "message": "",
            "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]},
    })
}

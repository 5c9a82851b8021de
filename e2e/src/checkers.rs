//! Recomputes, from recorded versions of Pods alone, that nothing was ever promised twice.
//!
//! The reading of requests and grants here is meant to be independent of the scheduler's own.

mod bindings;
mod devices;
mod volumes;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Node, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use serde::Deserialize;

pub use bindings::{ensure_bound_once, ensure_never_rebound};
pub use devices::{DeviceFigures, DeviceKind, DeviceView, forgotten_claims};
pub use volumes::{VolumeView, claims_of};

use crate::error::{Doing as _, Error, Result, ensure};
use crate::objects::corridors::Corridor;
use crate::objects::pods::{GRANT, PodState as _};
use crate::quantity::milli;
use crate::recorder::PodVersion;

/// CPU and memory in thousandths of their units, and Pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts {
    pub cpu: i128,
    pub memory: i128,
    pub pods: i128,
}

/// What must never be exceeded.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    nodes: BTreeMap<String, Amounts>,
    /// Thousandths of Gbps by the Corridor's UID.
    corridors: BTreeMap<String, i128>,
}

impl Limits {
    /// The Nodes as they are now, and these Corridors. Only for Nodes and floors that do not shrink
    /// during the recording.
    pub async fn read(client: &Client, corridors: &[&Corridor]) -> Result<Self> {
        let nodes: Api<Node> = Api::all(client.clone());
        let nodes = nodes.list(&ListParams::default()).await.doing("listing Nodes to check")?;
        let mut limits = Self::default();
        for node in nodes {
            let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
            limits.nodes.insert(node.name_any(), allocatable_amounts(allocatable)?);
        }
        for corridor in corridors {
            let floor = i128::from(corridor.min_gbps) * 1000;
            limits.corridors.insert(corridor.uid.clone(), floor);
        }
        Ok(limits)
    }

    #[must_use]
    pub fn with_corridor(mut self, uid: &str, floor_gbps: u64) -> Self {
        self.corridors.insert(uid.to_owned(), i128::from(floor_gbps) * 1000);
        self
    }

    /// Replays the record and fails at the first version that leaves a Node above its allocatable
    /// amounts or a Corridor above its floor. Returns how much of each Corridor is reserved at the
    /// end.
    pub fn check(&self, versions: &[PodVersion]) -> Result<BTreeMap<String, i128>> {
        let mut usage = Usage::default();
        for version in versions {
            usage.apply(version)?;
            self.check_at(version, &usage)?;
        }
        Ok(usage.corridors)
    }

    fn check_at(&self, version: &PodVersion, usage: &Usage) -> Result<()> {
        let at = version.resource_version;
        for (name, used) in &usage.nodes {
            let allocatable = self.nodes.get(name).ok_or_else(|| {
                Error::Violated(format!("at version {at} a Pod is on {name}, which is no Node"))
            })?;
            let fits = used.cpu <= allocatable.cpu
                && used.memory <= allocatable.memory
                && used.pods <= allocatable.pods;
            ensure(fits, || {
                format!("at version {at} Node {name} is above {allocatable:?}: {used:?}")
            })?;
        }
        for (uid, reserved) in &usage.corridors {
            let floor = self.corridors.get(uid).ok_or_else(|| {
                Error::Violated(format!(
                    "at version {at} a grant names {uid}, which is no Corridor"
                ))
            })?;
            ensure(reserved <= floor, || {
                format!(
                    "at version {at} Corridor {uid} is above its {floor} milli-Gbps: {reserved}"
                )
            })?;
        }
        Ok(())
    }
}

/// What bound Pods use, kept up to date version by version.
#[derive(Default)]
struct Usage {
    by_pod: BTreeMap<String, PodUse>,
    nodes: BTreeMap<String, Amounts>,
    corridors: BTreeMap<String, i128>,
}

struct PodUse {
    node: String,
    amounts: Amounts,
    grant: Option<(String, i128)>,
}

impl Usage {
    fn apply(&mut self, version: &PodVersion) -> Result<()> {
        let uid = version.pod.uid_str();
        if let Some(before) = self.by_pod.remove(uid) {
            self.count(&before, -1);
        }
        let counts = !version.deleted && !is_terminal(&version.pod);
        if let Some(now) = PodUse::of(&version.pod)?.filter(|_| counts) {
            self.count(&now, 1);
            self.by_pod.insert(uid.to_owned(), now);
        }
        Ok(())
    }

    fn count(&mut self, used: &PodUse, sign: i128) {
        let node = self.nodes.entry(used.node.clone()).or_default();
        node.cpu += sign * used.amounts.cpu;
        node.memory += sign * used.amounts.memory;
        node.pods += sign * used.amounts.pods;
        if let Some((uid, milli_gbps)) = &used.grant {
            *self.corridors.entry(uid.clone()).or_default() += sign * milli_gbps;
        }
    }
}

impl PodUse {
    /// `None` for a Pod that is not bound.
    fn of(pod: &Pod) -> Result<Option<Self>> {
        let Some(node) = pod.node() else { return Ok(None) };
        let node = node.to_owned();
        Ok(Some(Self { node, amounts: requests(pod)?, grant: granted(pod)? }))
    }
}

fn is_terminal(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Grant {
    v: u32,
    corridor: Option<CorridorGrant>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct CorridorGrant {
    uid: String,
    milli_gbps: u64,
}

fn granted(pod: &Pod) -> Result<Option<(String, i128)>> {
    let Some(text) = pod.annotation(GRANT) else { return Ok(None) };
    let doing = format!("reading the grant of Pod {}", pod.name_any());
    let grant: Grant = serde_json::from_str(text).doing(doing.clone())?;
    if grant.v != 1 {
        return Err(Error::malformed(doing, format!("unknown version {}", grant.v)));
    }
    Ok(grant.corridor.map(|corridor| (corridor.uid, i128::from(corridor.milli_gbps))))
}

/// What a Pod takes of a Node: the larger of its long-running containers together and of the peak
/// while it starts, plus its overhead.
fn requests(pod: &Pod) -> Result<Amounts> {
    let problem = || Error::malformed(format!("reading Pod {}", pod.name_any()), "bad requests");
    let spec = pod.spec.as_ref().ok_or_else(problem)?;
    let request = |resource| requested(spec, resource).ok_or_else(problem);
    Ok(Amounts { cpu: request("cpu")?, memory: request("memory")?, pods: 1 })
}

fn requested(spec: &PodSpec, resource: &str) -> Option<i128> {
    let mut sidecars = 0;
    let mut starting_peak = 0;
    for container in spec.init_containers.iter().flatten() {
        let amount = container_request(container, resource)?;
        starting_peak = starting_peak.max(sidecars + amount);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars += amount;
        }
    }
    let mut running = sidecars;
    for container in &spec.containers {
        running += container_request(container, resource)?;
    }
    Some(running.max(starting_peak) + amount_of(spec.overhead.as_ref(), resource)?)
}

fn container_request(container: &Container, resource: &str) -> Option<i128> {
    let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    amount_of(requests, resource)
}

/// Zero when it is not named, `None` when it is no quantity.
fn amount_of(amounts: Option<&BTreeMap<String, Quantity>>, resource: &str) -> Option<i128> {
    match amounts.and_then(|amounts| amounts.get(resource)) {
        Some(quantity) => milli(&quantity.0),
        None => Some(0),
    }
}

fn allocatable_amounts(amounts: Option<&BTreeMap<String, Quantity>>) -> Result<Amounts> {
    let of = |resource| {
        amount_of(amounts, resource)
            .ok_or_else(|| Error::malformed("reading what a Node has", format!("bad {resource}")))
    };
    Ok(Amounts { cpu: of("cpu")?, memory: of("memory")?, pods: of("pods")? / 1000 })
}

#[cfg(test)]
mod tests;

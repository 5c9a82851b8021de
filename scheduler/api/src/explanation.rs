//! Why a Pod is where it is, or where it would go.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answer of `explain` and of `what-if`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// `namespace/name`.
    pub pod: String,
    /// Where the Pod is: schedulable, unschedulable, bound, …
    pub state: String,
    /// What the Pod's condition says.
    pub message: String,
    /// The one thing that stands most in the way.
    pub dominant: Option<Dominant>,
    /// The node on which room is being made for it.
    pub nominated_node: Option<String>,
    /// Which Pods it could preempt, or why that does not help. Null: there is no need.
    pub preemption: Option<Preemption>,
    pub nodes: Nodes,
    /// Those of its PersistentVolumeClaims that keep it from nodes, 8 at most. One with several problems is there several
    /// times.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// How many more there are.
    #[serde(default)]
    pub claims_left_out: usize,
    pub waiting_seconds: u64,
    /// Its place among the Pods that wait for the same Corridor or MemoryBundle. Null: it waits for none.
    pub line: Option<BandwidthQueuePosition>,
    /// What would have it tried again.
    pub wakes_on: Vec<String>,
}

/// What is needed, and what is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dominant {
    /// kube-scheduler's name of the rule, or `Corridor`.
    pub plugin: String,
    pub reason: String,
    /// The object that lacks it.
    pub object: Option<String>,
    pub needed: f64,
    pub free: f64,
    pub deficit: f64,
    /// Of these amounts: Gbps, GB/s, cores, bytes, or the name of a resource.
    pub unit: String,
}

/// What all nodes say of the Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Nodes {
    pub total: usize,
    /// Fewer than all in a very large cluster.
    pub looked_at: usize,
    pub feasible: usize,
    /// The nodes with the highest score, 100 at most.
    pub best: Vec<String>,
    pub reasons: Vec<RejectedNodes>,
}

/// The nodes that one rule rejects for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RejectedNodes {
    pub plugin: String,
    pub reason: String,
    pub count: usize,
    pub examples: Vec<String>,
}

/// A claim of the Pod that keeps it from nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// `namespace/name`.
    pub claim: String,
    /// Its StorageClass. Null: it names none, or does not exist.
    pub class: Option<String>,
    /// A quantity, as `50Gi`. Null: it does not exist.
    pub request: Option<String>,
    pub state: ClaimState,
    /// In one word: `NoVolume`, `OtherNode`, `NotEnoughStorage`, …
    pub reason: String,
    /// The same in a sentence, of which the claim is the subject.
    pub problem: String,
    /// The PersistentVolumes of its class. Null: they are not what it waits for.
    pub volumes: Option<ClaimVolumes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClaimState {
    /// It does not exist.
    Missing,
    Deleting,
    /// Its PersistentVolume is gone.
    Lost,
    Bound,
    Pending,
}

/// What the PersistentVolumes of a class lack for a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimVolumes {
    pub looked_at: usize,
    pub reasons: Vec<RejectedVolumes>,
}

/// The PersistentVolumes that lack the same. Each is counted once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RejectedVolumes {
    /// In one word: `BoundToOthers`, `TooSmall`, `Nodes`, …
    pub reason: String,
    pub count: usize,
    /// The size of the largest, a quantity.
    pub largest: String,
    /// The name of that one.
    pub example: String,
}

/// Which Pods would have to leave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preemption {
    /// Why it does not help. Null: it does.
    pub message: Option<String>,
    /// The nodes where the loss is smallest.
    pub nodes: Vec<String>,
    /// The Pods that would leave each of them.
    pub victims: BTreeMap<String, Vec<String>>,
}

/// A place among the Pods that wait for one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BandwidthQueuePosition {
    pub object: String,
    /// 1 is the head.
    pub position: usize,
    pub length: usize,
}

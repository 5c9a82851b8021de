//! What a Pod is promised while its victims leave, and how that ends.
//!
//! A victim with a grace period stays until the test ends it: there is no kubelet.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use super::{TEAM, ensure_contains, until_bound, until_held};
use crate::cluster::Cluster;
use crate::error::{Doing as _, Error, Result, ensure};
use crate::objects::corridors::Corridor;
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{PodState as _, PodTemplate, delete_pod};

const URGENT: i32 = 1000;
/// The Node that the urgent Pod needs all of.
const LARGE: &str = "node-1";
const VICTIMS: [&str; 2] = ["victim-1", "victim-2"];
/// A policy takes effect within a second or two; more tries than this mean that it never does.
const POLICY_TRIES_MAX: usize = 600;

/// A lesser Pod comes while the victims leave: it waits, though the bandwidth is not used yet, until
/// the Pod that was promised it has come and gone.
pub async fn lesser_pod_waits_for_promised_bandwidth(cluster: &Cluster) -> Result<()> {
    let (corridor, _lease) = stage(cluster).await?;
    let _scheduler = cluster.start_scheduler().await?;
    preempt(cluster, &corridor).await?;

    let lesser = PodTemplate::small().corridor(&corridor, "10");
    lesser.create(cluster.admin(), TEAM, "lesser").await?;
    let message = until_held(cluster, TEAM, "lesser").await?;
    ensure_contains(
        &message,
        &[
            "corridor team-a/c1 (Ready): needs 10 Gbps, 0 of 100 Gbps free",
            "held for team-a/urgent",
        ],
    )?;
    for victim in VICTIMS {
        delete_pod(cluster.admin(), TEAM, victim).await?;
    }
    let bound = until_bound(cluster, TEAM, "urgent").await?;
    ensure(bound.node() == Some(LARGE), || format!("it is on {:?}", bound.node()))?;
    let lesser = cluster.pods(TEAM).get("lesser").await.doing("reading the lesser Pod")?;
    ensure(lesser.node().is_none(), || "it took what was promised to another".to_owned())?;
    delete_pod(cluster.admin(), TEAM, "urgent").await?;
    until_bound(cluster, TEAM, "lesser").await.map(drop)
}

/// The corridor falls while the victims leave: the promise is taken back, the API server shows that,
/// and the room that the victims leave is free for an ordinary Pod.
pub async fn useless_nomination_is_withdrawn(cluster: &Cluster) -> Result<()> {
    let (corridor, _lease) = stage(cluster).await?;
    let _scheduler = cluster.start_scheduler().await?;
    preempt(cluster, &corridor).await?;

    corridor.set_status("Degraded", 0).await?;
    let withdrawn = |pod: &Pod| nominated(pod).is_none();
    let urgent = cluster.until_pod(TEAM, "urgent", "nominated no longer", withdrawn).await?;
    ensure(urgent.node().is_none(), || "it was bound without its corridor".to_owned())?;
    for victim in VICTIMS {
        delete_pod(cluster.admin(), TEAM, victim).await?;
    }
    let ordinary = PodTemplate::new("3", "64Mi");
    ordinary.create(cluster.admin(), TEAM, "ordinary").await?;
    let bound = until_bound(cluster, TEAM, "ordinary").await?;
    ensure(bound.node() == Some(LARGE), || format!("it is on {:?}", bound.node()))
}

/// A victim that was announced and may not be deleted is told that it stays.
pub async fn victim_that_cannot_go_is_told_so(cluster: &Cluster) -> Result<()> {
    cluster.ensure_namespace(TEAM).await?;
    cluster.ensure_priority_class("urgent", URGENT).await?;
    cluster.create_nodes(1, &NodeTemplate::new("1", "16Gi")).await?;
    let _scheduler = cluster.start_scheduler().await?;
    let guarded = PodTemplate::new("800m", "64Mi");
    guarded.create(cluster.admin(), TEAM, "guarded").await?;
    until_bound(cluster, TEAM, "guarded").await?;
    let policy = Guard::install(cluster).await?;

    let urgent = PodTemplate::new("800m", "64Mi").priority("urgent", URGENT);
    urgent.create(cluster.admin(), TEAM, "urgent").await?;
    let told = cluster.until_pod(TEAM, "guarded", "told that it goes", |pod| {
        disruption_target(pod) == Some("True")
    });
    told.await?;
    let told = cluster.until_pod(TEAM, "guarded", "told that it stays", |pod| {
        disruption_target(pod) == Some("False")
    });
    let guarded = told.await?;
    policy.remove().await?;
    let leaves = guarded.metadata.deletion_timestamp.is_some();
    ensure(!leaves, || "it was deleted in spite of the policy".to_owned())
}

/// A large Node full of two victims, a small one beside it, and a corridor of 100 Gbps.
async fn stage(cluster: &Cluster) -> Result<(Corridor, impl Sized)> {
    cluster.ensure_namespace(TEAM).await?;
    cluster.ensure_priority_class("urgent", URGENT).await?;
    cluster.create_nodes(1, &NodeTemplate::new("4", "16Gi")).await?;
    let lease = cluster.hold_corrd_lease().await?;
    let corridor = Corridor::create_ready(cluster.admin(), TEAM, "c1", 100).await?;
    Ok((corridor, lease))
}

/// Returns when the urgent Pod is promised the large Node and both victims are being deleted.
async fn preempt(cluster: &Cluster, corridor: &Corridor) -> Result<()> {
    for victim in VICTIMS {
        PodTemplate::new("2", "64Mi").create(cluster.admin(), TEAM, victim).await?;
        until_bound(cluster, TEAM, victim).await?;
    }
    cluster.create_nodes_numbered([2], &NodeTemplate::new("500m", "16Gi")).await?;
    let urgent = PodTemplate::new("4", "64Mi").priority("urgent", URGENT).corridor(corridor, "100");
    urgent.create(cluster.admin(), TEAM, "urgent").await?;
    for victim in VICTIMS {
        let leaving = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
        cluster.until_pod(TEAM, victim, "leaving", leaving).await?;
    }
    let promised = |pod: &Pod| nominated(pod) == Some(LARGE);
    cluster.until_pod(TEAM, "urgent", "nominated", promised).await.map(drop)
}

pub(super) fn nominated(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.nominated_node_name.as_deref().filter(|name| !name.is_empty())
}

fn disruption_target(pod: &Pod) -> Option<&str> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let condition = conditions.iter().find(|condition| condition.type_ == "DisruptionTarget")?;
    Some(&condition.status)
}

/// A policy that refuses to delete the Pod `guarded`.
struct Guard {
    policies: Api<ValidatingAdmissionPolicy>,
    bindings: Api<ValidatingAdmissionPolicyBinding>,
}

const GUARD: &str = "guarded-pod-stays";

impl Guard {
    async fn install(cluster: &Cluster) -> Result<Self> {
        let doing = "installing a policy that guards a Pod";
        let guard = Self {
            policies: Api::all(cluster.admin().clone()),
            bindings: Api::all(cluster.admin().clone()),
        };
        let rules = json!([{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"],
            "resources": ["pods"], "resourceNames": ["guarded"],
        }]);
        let policy = named(json!({"spec": {
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": "false", "message": "this Pod stays"}],
        }}));
        let binding = named(json!({"spec": {
            "policyName": GUARD, "validationActions": ["Deny"],
        }}));
        let (policy, binding) = (
            serde_json::from_value(policy).doing(doing)?,
            serde_json::from_value(binding).doing(doing)?,
        );
        guard.policies.create(&PostParams::default(), &policy).await.doing(doing)?;
        guard.bindings.create(&PostParams::default(), &binding).await.doing(doing)?;
        for _ in 0..POLICY_TRIES_MAX {
            let tried = DeleteParams { dry_run: true, ..DeleteParams::default() };
            if cluster.pods(TEAM).delete("guarded", &tried).await.is_err() {
                return Ok(guard);
            }
        }
        Err(Error::malformed(doing, "it has no effect"))
    }

    async fn remove(self) -> Result<()> {
        let (doing, now) = ("removing the policy that guards a Pod", DeleteParams::default());
        self.bindings.delete(GUARD, &now).await.doing(doing)?;
        self.policies.delete(GUARD, &now).await.map(drop).doing(doing)
    }
}

fn named(mut object: Value) -> Value {
    object["metadata"] = json!({"name": GUARD});
    object
}

//! What an audit of an AttestationPolicy wakes: its own namespace, and not itself.

use std::time::Duration;

use crds::{AttestationPolicy, Corridor, Phase};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::world::World;

const PASSES: &str = "corridor_reconciles_total";
/// Corridors of a namespace without a policy.
const ELSEWHERE: usize = 20;
const AUDITS: usize = 3;

/// Corridors that no policy of `default` concerns, all Ready.
async fn corridors_elsewhere(world: &World) {
    let namespace: Namespace =
        serde_json::from_value(json!({"metadata": {"name": "elsewhere"}})).unwrap();
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let corridors: Api<Corridor> = Api::namespaced(world.client.clone(), "elsewhere");
    for number in 0..ELSEWHERE {
        let corridor = serde_json::from_value(json!({
            "apiVersion": "corridoros.io/v1alpha1", "kind": "Corridor",
            "metadata": {"name": format!("c{number}")},
            "spec": {"lanes": 1, "lambdaNm": [1550], "minGbps": 10},
        }));
        corridors.create(&PostParams::default(), &corridor.unwrap()).await.unwrap();
    }
    for number in 0..ELSEWHERE {
        world
            .until("ready elsewhere", async || {
                corridors.get(&format!("c{number}")).await.unwrap().phase() == Phase::Ready
            })
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_wakes_its_own_namespace_and_not_itself() {
    let world = World::new().await;
    let running = world.run();
    world.create_corridor("own", false).await;
    world.phase("own", Phase::Ready).await;
    corridors_elsewhere(&world).await;
    world.create_policy("p", &json!({})).await;
    world.policy_enforced("p").await;

    let audits = || world.writes("attestationpolicies");
    let (audits_before, passes_before) = (audits(), running.total(PASSES, "Corridor"));
    let of_policy_before = running.total(PASSES, "AttestationPolicy");
    world.until("audited", async || audits() >= audits_before + AUDITS).await;
    // What an audit wakes has been looked at.
    tokio::time::sleep(Duration::from_millis(500)).await;

    let passes = running.total(PASSES, "Corridor") - passes_before;
    assert!(passes < ELSEWHERE as u64, "{passes} passes over Corridors for {AUDITS} audits");
    let of_policy = running.total(PASSES, "AttestationPolicy") - of_policy_before;
    assert_eq!(of_policy, (audits() - audits_before) as u64, "one pass for each audit");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_policy_reaches_its_own_namespace_at_once() {
    let world = World::new().await;
    let running = world.run();
    world.create_corridor("own", false).await;
    let own = world.phase("own", Phase::Ready).await;
    assert_eq!(own.status.unwrap().attestation_expires_at, None);
    world.create_policy("p", &json!({})).await;
    world.policy_enforced("p").await;
    let policies: Api<AttestationPolicy> = Api::namespaced(world.client.clone(), "default");
    let patch = Patch::Merge(json!({"spec": {"minFirmwareVersion": "99.0.0"}}));
    policies.patch("p", &PatchParams::default(), &patch).await.unwrap();
    world.phase("own", Phase::Degraded).await;
    running.stop().await;
}

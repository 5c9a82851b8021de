//! Pods that ask for what cannot be, or for what is not understood, are held and told why.

use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::json;

use super::{TEAM, ensure_contains, until_bound, until_held};
use crate::cluster::Cluster;
use crate::error::{Doing as _, Result, ensure};
use crate::objects::corridors::Corridor;
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{CORRIDOR_GBPS, CORRIDOR_REF, PodState as _, PodTemplate};

const OTHER_TEAM: &str = "team-b";

/// A Pod that must be held, and a part of the message it must be held with.
struct Refusal {
    namespace: &'static str,
    name: &'static str,
    template: PodTemplate,
    because: &'static str,
}

/// None of them is ever bound, and none of them stands in the way of a Pod that can be.
pub async fn pods_that_cannot_be_placed_say_why(cluster: &Cluster) -> Result<()> {
    cluster.ensure_namespace(TEAM).await?;
    cluster.ensure_namespace(OTHER_TEAM).await?;
    cluster.create_nodes(2, &NodeTemplate::new("4", "16Gi")).await?;
    let _lease = cluster.hold_corrd_lease().await?;
    let corridor = Corridor::create_ready(cluster.admin(), TEAM, "c1", 100).await?;
    let _scheduler = cluster.start_scheduler().await?;

    let refusals = refusals(&corridor);
    for Refusal { namespace, name, template, .. } in &refusals {
        template.create(cluster.admin(), namespace, name).await?;
    }
    for Refusal { namespace, name, because, .. } in &refusals {
        let message = until_held(cluster, namespace, name).await?;
        ensure_contains(&message, &[because])?;
    }

    let fine = PodTemplate::small().corridor(&corridor, "100");
    fine.create(cluster.admin(), TEAM, "fine").await?;
    until_bound(cluster, TEAM, "fine").await?;
    for namespace in [TEAM, OTHER_TEAM] {
        let pods = cluster.pods(namespace).list(&ListParams::default()).await;
        for pod in pods.doing("listing Pods that are held")? {
            let name = pod.name_any();
            ensure(pod.node().is_none() || name == "fine", || format!("Pod {name} is bound"))?;
        }
    }
    Ok(())
}

fn refusals(corridor: &Corridor) -> Vec<Refusal> {
    let pod = PodTemplate::small;
    let in_team = |name, because, template| Refusal { namespace: TEAM, name, template, because };
    let volumes = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
    vec![
        in_team(
            "amount-in-words",
            "invalid annotation corridoros.io/corridorGbps: ",
            pod().corridor(corridor, "lots"),
        ),
        in_team(
            "amount-zero",
            "invalid annotation corridoros.io/corridorGbps: ",
            pod().corridor(corridor, "0"),
        ),
        in_team(
            "slip-of-the-keyboard",
            "corridoros.io/corridorref: no such annotation; did you mean corridoros.io/corridorRef?",
            pod().annotation("corridoros.io/corridorref", "team-a/c1"),
        ),
        in_team(
            "amount-of-nothing",
            "invalid annotation corridoros.io/corridor",
            pod().annotation(CORRIDOR_GBPS, "10"),
        ),
        in_team(
            "reference-without-namespace",
            "invalid annotation corridoros.io/corridorRef: ",
            pod().annotation(CORRIDOR_REF, "c1"),
        ),
        in_team("missing-corridor", "team-a/c2", pod().annotation(CORRIDOR_REF, "team-a/c2")),
        in_team(
            "above-the-floor",
            "asks 200 Gbps, the floor is 100",
            pod().corridor(corridor, "200"),
        ),
        in_team(
            "claim-not-there",
            "persistentvolumeclaim \"data\" not found",
            pod().spec("volumes", volumes),
        ),
        Refusal {
            namespace: OTHER_TEAM,
            name: "not-its-own",
            template: pod().corridor(corridor, "10"),
            because: "team-a/c1",
        },
    ]
}

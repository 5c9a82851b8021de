//! What a Pod requests: the lists as they stand in its spec and status. [`DeclaredRequests`] sums
//! them.

use std::collections::BTreeMap;

use model::{
    ContainerRequests, DeclaredRequests, InitContainerRequests, PodRequests, Quantity,
    ResourceList, RunningResources,
};

use crate::wire::{
    WireContainer, WireContainerStatus, WirePodSpec, WirePodStatus, WireQuantity, WireResourceLists,
};

pub(super) fn requests(spec: &WirePodSpec, status: &WirePodStatus) -> PodRequests {
    let init_container = |container: &WireContainer| InitContainerRequests {
        container: declared(container, status),
        sidecar: container.is_sidecar(),
    };
    let resize = status.condition("PodResizePending");
    DeclaredRequests {
        containers: spec.containers.iter().map(|it| declared(it, status)).collect(),
        init_containers: spec.init_containers.iter().map(init_container).collect(),
        pod_level: ContainerRequests {
            requests: asked(&spec.resources.requests),
            running: running(status.resources.as_ref(), &status.allocated_resources),
        },
        overhead: asked(&spec.overhead),
        resize_infeasible: resize.is_some_and(|condition| condition.reason == "Infeasible"),
    }
    .sum()
}

fn declared(container: &WireContainer, status: &WirePodStatus) -> ContainerRequests {
    // Those of init containers come last and win, as in Kubernetes, should names be given twice.
    let mut statuses = status.init_container_statuses.iter().rev();
    let found = |it: &&WireContainerStatus| it.name == container.name;
    let status =
        statuses.find(found).or_else(|| status.container_statuses.iter().rev().find(found));
    ContainerRequests {
        requests: asked(&container.resources.requests),
        running: status.and_then(|it| running(it.resources.as_ref(), &it.allocated_resources)),
    }
}

/// Only a kubelet that reports what it has applied has anything to say about a resize.
fn running(
    actuated: Option<&WireResourceLists>,
    allocated: &BTreeMap<String, WireQuantity>,
) -> Option<RunningResources> {
    let actuated = asked(&actuated?.requests);
    Some(RunningResources { actuated, allocated: asked(allocated) })
}

/// What is asked for. A quantity that cannot be read counts as more than any Node has: usage may be
/// overstated, never forgotten.
fn asked(amounts: &BTreeMap<String, WireQuantity>) -> ResourceList {
    resource_list(amounts, Quantity::MAX)
}

/// Amounts by resource name, with `unreadable` for what is no quantity.
pub(super) fn resource_list(
    amounts: &BTreeMap<String, WireQuantity>,
    unreadable: Quantity,
) -> ResourceList {
    let amount = |quantity: &WireQuantity| quantity.text.parse().unwrap_or(unreadable);
    amounts.iter().map(|(name, quantity)| (name.as_str().into(), amount(quantity))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::WirePod;
    use serde_json::{Value, json};

    fn of(pod: Value) -> PodRequests {
        let pod: WirePod = serde_json::from_value(pod).unwrap();
        requests(&pod.spec, &pod.status)
    }

    fn cpu(amount: &str) -> Value {
        json!({"requests": {"cpu": amount}})
    }

    #[test]
    fn init_containers_count_by_the_largest_and_sidecars_stay() {
        let pod = json!({"spec": {
            "containers": [{"resources": cpu("1")}, {"resources": cpu("500m")}],
            "initContainers": [
                {"resources": cpu("1")},
                {"resources": cpu("300m"), "restartPolicy": "Always"},
                {"resources": cpu("1600m")},
            ],
        }});
        // Running: 1.5 + 0.3 sidecar. Starting: 1, then 0.3, then 1.6 + 0.3.
        assert_eq!(of(pod).asked.cpu_milli, 1900);
    }

    #[test]
    fn pod_level_requests_replace_and_overhead_adds() {
        let sum = of(json!({"spec": {
            "containers": [{"resources": {"requests": {"cpu": "1", "example.com/gpu": "2"}}}],
            "resources": cpu("3"),
            "overhead": {"cpu": "250m", "memory": "1Mi"},
        }}));
        let asked = &sum.asked;
        assert_eq!(
            (asked.cpu_milli, asked.memory_bytes, asked.scalar("example.com/gpu")),
            (3250, 1 << 20, 2)
        );
        assert_eq!(sum.effective, sum.asked);
    }

    #[test]
    fn containers_without_requests_count_for_scores_only() {
        let sum = of(json!({"spec": {"containers": [{}, {"resources": cpu("1")}]}}));
        assert_eq!(sum.asked.memory_bytes, 0);
        let scored = &sum.effective_in_scores;
        assert_eq!((scored.cpu_milli, scored.memory_bytes), (1100, 400 << 20));
    }

    #[test]
    fn a_resize_holds_the_larger_end_unless_it_is_infeasible() {
        let mut pod = json!({
            "spec": {
                "containers": [{"name": "c", "resources": cpu("5")}],
                "initContainers": [
                    {"name": "s", "resources": cpu("1"), "restartPolicy": "Always"},
                ],
            },
            "status": {
                "containerStatuses": [
                    {"name": "c", "resources": cpu("2"), "allocatedResources": {"cpu": "3"}},
                ],
                "initContainerStatuses": [
                    {"name": "s", "resources": cpu("4")},
                    {"name": "other", "resources": cpu("9")},
                ],
            },
        });
        let sum = of(pod.clone());
        assert_eq!((sum.effective.cpu_milli, sum.asked.cpu_milli), (9000, 6000));
        pod["status"]["conditions"] =
            json!([{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]);
        assert_eq!(of(pod).effective.cpu_milli, 7000);
    }

    #[test]
    fn a_resize_of_the_whole_pod_counts_too() {
        let pod = json!({
            "spec": {"containers": [{}], "resources": cpu("1")},
            "status": {"resources": cpu("2"), "allocatedResources": {"cpu": "3"}},
        });
        let sum = of(pod);
        assert_eq!((sum.effective.cpu_milli, sum.asked.cpu_milli), (3000, 1000));
    }

    #[test]
    fn an_unreadable_quantity_fits_nowhere_and_a_negative_one_makes_no_room() {
        let sum = of(json!({"spec": {"containers": [{"resources": cpu("much")}]}}));
        assert_eq!(sum.asked.cpu_milli, Quantity::VALUE_MAX);
        assert_eq!(sum.effective.cpu_milli, Quantity::VALUE_MAX);
        let sum = of(json!({"spec": {"containers": [{"resources": cpu("-4")}]}}));
        assert_eq!(sum.effective.cpu_milli, 0);
    }
}

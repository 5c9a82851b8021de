//! What a Pod requests, summed as kube-scheduler does it.

use std::collections::BTreeMap;

use model::{Quantity, Resources};

use crate::wire::{WireContainer, WirePod, WireResourceLists};

/// What scores count for a container that requests no CPU or memory.
const CPU_DEFAULT_MILLI: i64 = 100;
const MEMORY_DEFAULT_BYTES: i64 = 200 << 20;

/// Whether containers without requests count with the defaults above.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unrequested {
    CountsNothing,
    CountsDefaults,
}

/// The larger of all containers and sidecars together and of each init container with the
/// sidecars before it; Pod-level requests replace CPU, memory and huge pages; overhead on top.
pub(super) fn requests(pod: &WirePod, unrequested: Unrequested) -> Resources {
    let of = |container: &WireContainer| {
        let mut requests = resources(&container.resources.requests);
        raise_to_running(&mut requests, pod, &container.name);
        if unrequested == Unrequested::CountsDefaults {
            count_defaults(&mut requests, &container.resources);
        }
        requests
    };
    let mut running = Resources::default();
    for container in &pod.spec.containers {
        running.add(&of(container));
    }
    let (mut sidecars, mut starting) = (Resources::default(), Resources::default());
    for container in &pod.spec.init_containers {
        let mut here = of(container);
        here.add(&sidecars);
        starting.raise_to(&here);
        if container.restart_policy == "Always" {
            sidecars = here;
        }
    }
    running.add(&sidecars);
    running.raise_to(&starting);
    replace_by_pod_level(&mut running, &pod.spec.resources);
    running.add(&resources(&pod.spec.overhead));
    running.limit_to(Quantity::VALUE_MAX);
    running
}

/// Amounts by resource name. A quantity that cannot be read counts as more than any Node has:
/// usage may be overstated, never forgotten.
pub(super) fn resources(amounts: &BTreeMap<String, String>) -> Resources {
    let mut resources = Resources::default();
    for (name, text) in amounts {
        let quantity = text.parse().unwrap_or(Quantity::MAX);
        match name.as_str() {
            "cpu" => resources.cpu_milli = quantity.milli_value(),
            "memory" => resources.memory_bytes = quantity.value(),
            "ephemeral-storage" => resources.ephemeral_storage_bytes = quantity.value(),
            scalar if is_scalar(scalar) && quantity.value() != 0 => {
                resources.scalar.insert(scalar.into(), quantity.value());
            }
            _ => {}
        }
    }
    resources
}

fn is_scalar(name: &str) -> bool {
    name.contains('/') || name.starts_with("hugepages-") || name.starts_with("attachable-volumes-")
}

/// A running container holds what the kubelet gave it until a resize is done.
fn raise_to_running(requests: &mut Resources, pod: &WirePod, container: &str) {
    let status = &pod.status;
    let statuses = status.container_statuses.iter().chain(&status.init_container_statuses);
    for running in statuses.filter(|running| running.name == container) {
        requests.raise_to(&resources(&running.allocated_resources));
        requests.raise_to(&resources(&running.resources.requests));
    }
}

fn count_defaults(requests: &mut Resources, asked: &WireResourceLists) {
    if !asked.requests.contains_key("cpu") {
        requests.cpu_milli = requests.cpu_milli.max(CPU_DEFAULT_MILLI);
    }
    if !asked.requests.contains_key("memory") {
        requests.memory_bytes = requests.memory_bytes.max(MEMORY_DEFAULT_BYTES);
    }
}

fn replace_by_pod_level(sum: &mut Resources, pod_level: &WireResourceLists) {
    let asked = resources(&pod_level.requests);
    if pod_level.requests.contains_key("cpu") {
        sum.cpu_milli = asked.cpu_milli;
    }
    if pod_level.requests.contains_key("memory") {
        sum.memory_bytes = asked.memory_bytes;
    }
    for (name, amount) in asked.scalar {
        if name.starts_with("hugepages-") {
            sum.scalar.insert(name, amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(pod: Value, unrequested: Unrequested) -> Resources {
        requests(&serde_json::from_value(pod).unwrap(), unrequested)
    }

    fn cpu(amount: &str) -> Value {
        json!({"requests": {"cpu": amount}})
    }

    #[test]
    fn init_containers_count_by_the_largest_and_sidecars_stay() {
        let pod = json!({"spec": {
            "containers": [{"resources": cpu("1")}, {"resources": cpu("500m")}],
            "initContainers": [
                {"resources": cpu("2")},
                {"resources": cpu("300m"), "restartPolicy": "Always"},
                {"resources": cpu("1600m")},
            ],
        }});
        // Running: 1.5 + 0.3 sidecar. Starting: 2, then 0.3, then 1.6 + 0.3.
        assert_eq!(of(pod, Unrequested::CountsNothing).cpu_milli, 2000);
    }

    #[test]
    fn pod_level_requests_replace_and_overhead_adds() {
        let pod = json!({"spec": {
            "containers": [{"resources": {"requests": {"cpu": "1", "example.com/gpu": "2"}}}],
            "resources": cpu("3"),
            "overhead": {"cpu": "250m", "memory": "1Mi"},
        }});
        let sum = of(pod, Unrequested::CountsNothing);
        assert_eq!(
            (sum.cpu_milli, sum.memory_bytes, sum.scalar("example.com/gpu")),
            (3250, 1 << 20, 2)
        );
    }

    #[test]
    fn containers_without_requests_count_for_scores_only() {
        let pod = json!({"spec": {"containers": [{}, {"resources": cpu("1")}]}});
        assert_eq!(of(pod.clone(), Unrequested::CountsNothing).memory_bytes, 0);
        let scored = of(pod, Unrequested::CountsDefaults);
        assert_eq!((scored.cpu_milli, scored.memory_bytes), (1100, 400 << 20));
    }

    #[test]
    fn a_resize_in_progress_holds_the_larger_amount() {
        let pod = json!({
            "spec": {"containers": [{"name": "c", "resources": cpu("1")}]},
            "status": {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "3"}}]},
        });
        assert_eq!(of(pod, Unrequested::CountsNothing).cpu_milli, 3000);
    }

    #[test]
    fn an_unreadable_quantity_fits_nowhere() {
        let pod = json!({"spec": {"containers": [{"resources": cpu("much")}]}});
        assert_eq!(of(pod, Unrequested::CountsNothing).cpu_milli, Quantity::VALUE_MAX);
    }
}

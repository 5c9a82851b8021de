//! What a Pod requests, summed as Kubernetes 1.36 sums it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Quantity, Resources};

/// Amounts by resource name, as an object lists them. A resource that is listed with 0 differs
/// from one that is not listed: only the latter counts with a default in scores.
pub type ResourceList = BTreeMap<Arc<str>, Quantity>;

/// What scores count for a container that does not list CPU or memory.
const CPU_DEFAULT: Quantity = Quantity::from_milli(100);
const MEMORY_DEFAULT: Quantity = Quantity::from_whole(200 << 20);

/// Everything in a Pod that bears on what it requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredRequests {
    pub containers: Vec<ContainerRequests>,
    pub init_containers: Vec<InitContainerRequests>,
    /// `spec.resources.requests`, and what the kubelet says of them.
    pub pod_level: ContainerRequests,
    pub overhead: ResourceList,
    /// Condition `PodResizePending` with reason `Infeasible`: the spec will not come true.
    pub resize_infeasible: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerRequests {
    pub requests: ResourceList,
    /// Present when the kubelet reports `resources` in the container's status.
    pub running: Option<RunningResources>,
}

/// What the kubelet has applied and admitted; differs from the spec during a resize.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunningResources {
    pub actuated: ResourceList,
    pub allocated: ResourceList,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitContainerRequests {
    pub container: ContainerRequests,
    /// `restartPolicy: Always`: it keeps running beside the containers.
    pub sidecar: bool,
}

/// What a Pod counts for in the different places where kube-scheduler counts it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodRequests {
    /// What a Node must have free to take the Pod.
    pub asked: Resources,
    /// What the Pod takes of the Node it is on: a resize in progress counts by its larger end.
    pub effective: Resources,
    /// The same for scores, with defaults where nothing is listed.
    pub effective_in_scores: Resources,
    /// What scores add for the Pod that is being placed. kube-scheduler leaves out Pod-level
    /// requests here, and here only.
    pub asked_in_scores: Resources,
}

impl DeclaredRequests {
    pub fn sum(&self) -> PodRequests {
        let defaults =
            ResourceList::from([("cpu".into(), CPU_DEFAULT), ("memory".into(), MEMORY_DEFAULT)]);
        let none = ResourceList::new();
        let asked = Count { running: false, pod_level: true, defaults: &none };
        let effective = Count { running: true, pod_level: true, defaults: &none };
        let in_scores = Count { running: false, pod_level: false, defaults: &defaults };
        let effective_list = self.total(&effective);
        let mut effective_defaults = defaults.clone();
        if self.has_pod_level() {
            effective_defaults.retain(|name, _| !effective_list.contains_key(name));
        }
        let effective_in_scores = Count { defaults: &effective_defaults, ..effective };
        PodRequests {
            asked: resources(&self.total(&asked)),
            effective: resources(&effective_list),
            effective_in_scores: resources(&self.total(&effective_in_scores)),
            asked_in_scores: resources(&self.total(&in_scores)),
        }
    }

    fn has_pod_level(&self) -> bool {
        self.pod_level.requests.keys().any(|name| is_pod_level_resource(name))
    }

    fn total(&self, count: &Count<'_>) -> ResourceList {
        let mut total = self.containers_total(count);
        if count.pod_level && self.has_pod_level() {
            let effective = self.effective(&self.pod_level, count.running);
            let names = self.pod_level.requests.keys().filter(|name| is_pod_level_resource(name));
            for name in names {
                total.insert(name.clone(), effective.get(name).copied().unwrap_or_default());
            }
        }
        add(&mut total, &self.overhead);
        total
    }

    /// The larger of all containers and sidecars together, and of each init container together
    /// with the sidecars before it.
    fn containers_total(&self, count: &Count<'_>) -> ResourceList {
        let of = |container: &ContainerRequests, running: bool| {
            let mut requests = self.effective(container, running);
            for (name, amount) in count.defaults {
                requests.entry(name.clone()).or_insert(*amount);
            }
            requests
        };
        let mut together = ResourceList::new();
        for container in &self.containers {
            add(&mut together, &of(container, count.running));
        }
        let (mut sidecars, mut starting) = (ResourceList::new(), ResourceList::new());
        for init in &self.init_containers {
            let requests = of(&init.container, count.running && init.sidecar);
            if init.sidecar {
                add(&mut together, &requests);
                add(&mut sidecars, &requests);
                raise_to(&mut starting, &sidecars);
            } else {
                let mut here = requests;
                add(&mut here, &sidecars);
                raise_to(&mut starting, &here);
            }
        }
        raise_to(&mut together, &starting);
        together
    }

    fn effective(&self, container: &ContainerRequests, running: bool) -> ResourceList {
        let spec = &container.requests;
        let Some(status) = container.running.as_ref().filter(|_| running) else {
            return spec.clone();
        };
        let mut effective = status.actuated.clone();
        raise_to(&mut effective, &status.allocated);
        if !self.resize_infeasible {
            raise_to(&mut effective, spec);
        }
        effective
    }
}

/// How to count.
struct Count<'a> {
    /// Whether what is running counts beside the spec.
    running: bool,
    pod_level: bool,
    /// What a container counts with for what it does not list.
    defaults: &'a ResourceList,
}

fn add(sum: &mut ResourceList, other: &ResourceList) {
    for (name, amount) in other {
        let mine = sum.entry(name.clone()).or_default();
        *mine = mine.saturating_add(*amount);
    }
}

fn raise_to(list: &mut ResourceList, other: &ResourceList) {
    for (name, amount) in other {
        let mine = list.entry(name.clone()).or_insert(*amount);
        *mine = (*mine).max(*amount);
    }
}

fn is_pod_level_resource(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// In whole units, CPU in thousandths. Names that are no resource of a Node are left out, and
/// negative amounts count as nothing: no Pod makes room by being there.
pub fn resources(list: &ResourceList) -> Resources {
    let mut resources = Resources::default();
    for (name, quantity) in list {
        let (value, milli) = (quantity.value().max(0), quantity.milli_value().max(0));
        match name.as_ref() {
            "cpu" => resources.cpu_milli = milli,
            "memory" => resources.memory_bytes = value,
            "ephemeral-storage" => resources.ephemeral_storage_bytes = value,
            scalar if is_scalar_resource(scalar) && value != 0 => {
                resources.scalar.insert(name.clone(), value);
            }
            _ => {}
        }
    }
    resources
}

/// Resources that are counted by name: devices, huge pages, volumes that can be attached.
pub fn is_scalar_resource(name: &str) -> bool {
    name.contains('/') || name.starts_with("hugepages-") || name.starts_with("attachable-volumes-")
}

/// Resources outside of Kubernetes' own domain, which a profile can be told to ignore.
pub fn is_extended_resource(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(amounts: &[(&str, &str)]) -> ResourceList {
        amounts.iter().map(|(name, text)| ((*name).into(), text.parse().unwrap())).collect()
    }

    fn container(amounts: &[(&str, &str)]) -> ContainerRequests {
        ContainerRequests { requests: list(amounts), running: None }
    }

    fn init(amounts: &[(&str, &str)], sidecar: bool) -> InitContainerRequests {
        InitContainerRequests { container: container(amounts), sidecar }
    }

    #[test]
    fn init_containers_count_by_the_largest_and_sidecars_stay() {
        let pod = DeclaredRequests {
            containers: vec![container(&[("cpu", "1")]), container(&[("cpu", "500m")])],
            init_containers: vec![
                init(&[("cpu", "1")], false),
                init(&[("cpu", "300m")], true),
                init(&[("cpu", "1600m")], false),
            ],
            ..DeclaredRequests::default()
        };
        // Running: 1.5 + 0.3. Starting: 1, then 0.3, then 1.6 + 0.3.
        assert_eq!(pod.sum().asked.cpu_milli, 1900);
    }

    #[test]
    fn pod_level_requests_replace_what_they_may_and_overhead_adds() {
        let pod = DeclaredRequests {
            containers: vec![container(&[("cpu", "1"), ("memory", "1Mi"), ("example.com/g", "2")])],
            pod_level: container(&[("cpu", "3"), ("example.com/g", "9")]),
            overhead: list(&[("cpu", "250m"), ("ephemeral-storage", "5")]),
            ..DeclaredRequests::default()
        };
        let PodRequests { asked, effective, asked_in_scores, effective_in_scores } = pod.sum();
        assert_eq!((asked.cpu_milli, asked.scalar("example.com/g")), (3250, 2));
        assert_eq!((asked.memory_bytes, asked.ephemeral_storage_bytes), (1 << 20, 5));
        assert_eq!(effective, asked);
        assert_eq!(asked_in_scores.cpu_milli, 1250, "scores do not see the Pod-level request");
        assert_eq!(effective_in_scores.cpu_milli, 3250, "but what is already there counts it");
    }

    #[test]
    fn scores_count_a_default_for_each_container_that_lists_nothing() {
        let pod = DeclaredRequests {
            containers: vec![container(&[]), container(&[("cpu", "0")])],
            ..DeclaredRequests::default()
        };
        let sum = pod.sum();
        assert_eq!(sum.asked, Resources::default());
        assert_eq!(sum.asked_in_scores.cpu_milli, 100, "0 is listed, so it has no default");
        assert_eq!(sum.asked_in_scores.memory_bytes, 400 << 20);
        assert_eq!(sum.effective_in_scores, sum.asked_in_scores);
    }

    #[test]
    fn a_pod_level_request_keeps_its_containers_from_the_default() {
        let pod = DeclaredRequests {
            containers: vec![container(&[]), container(&[])],
            pod_level: container(&[("cpu", "1")]),
            ..DeclaredRequests::default()
        };
        let sum = pod.sum();
        let effective = &sum.effective_in_scores;
        assert_eq!((effective.cpu_milli, effective.memory_bytes), (1000, 400 << 20));
        assert_eq!(sum.asked_in_scores.cpu_milli, 200);
    }

    #[test]
    fn a_resize_holds_the_larger_end_unless_it_cannot_come_true() {
        let running =
            RunningResources { actuated: list(&[("cpu", "2")]), allocated: list(&[("cpu", "3")]) };
        let resized = ContainerRequests {
            requests: list(&[("cpu", "5"), ("memory", "1Ki")]),
            running: Some(running),
        };
        let mut pod = DeclaredRequests { containers: vec![resized], ..DeclaredRequests::default() };
        assert_eq!((pod.sum().effective.cpu_milli, pod.sum().effective.memory_bytes), (5000, 1024));
        pod.resize_infeasible = true;
        assert_eq!((pod.sum().effective.cpu_milli, pod.sum().effective.memory_bytes), (3000, 0));
        assert_eq!(pod.sum().asked.cpu_milli, 5000);
    }

    #[test]
    fn fractions_are_rounded_once_for_the_pod() {
        let half = || container(&[("memory", "500m")]);
        let pod = DeclaredRequests { containers: vec![half(), half()], ..Default::default() };
        assert_eq!(pod.sum().asked.memory_bytes, 1);
    }

    #[test]
    fn extremes_neither_wrap_nor_make_room() {
        let pod = DeclaredRequests {
            containers: vec![container(&[("cpu", "1e60")]), container(&[("cpu", "1e60")])],
            overhead: list(&[("memory", "-5Gi")]),
            ..DeclaredRequests::default()
        };
        let asked = pod.sum().asked;
        assert_eq!((asked.cpu_milli, asked.memory_bytes), (Quantity::VALUE_MAX, 0));
    }

    #[test]
    fn names_tell_what_can_be_ignored() {
        assert!(is_extended_resource("example.com/gpu"));
        assert!(!is_extended_resource("example.kubernetes.io/gpu"));
        assert!(!is_extended_resource("hugepages-2Mi") && is_scalar_resource("hugepages-2Mi"));
        assert!(!is_scalar_resource("gpu"));
    }
}

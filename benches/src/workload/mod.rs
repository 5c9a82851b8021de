//! Workloads as data: `workloads/*.yaml`. Their format is described in `workloads/README.md`.
//!
//! The race makes API objects of them, the benches in memory events of the engine; both from the same JSON.

mod pattern;
mod scale;

use std::fs;
use std::path::{Path, PathBuf};

use e2e::{Error, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use pattern::{Numbers, fill};
pub use scale::Size;

/// Where the files are.
pub const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/workloads");

/// The namespace of all Pods that do not name one.
pub const NAMESPACE: &str = "race";

/// One file, as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Workload {
    #[serde(skip)]
    pub name: String,
    /// What it is about, for people.
    pub about: String,
    /// Whose case and sizes it takes after.
    #[serde(default)]
    pub source: Option<String>,
    /// Asks for something that kube-scheduler does not know.
    #[serde(default)]
    pub ours_only: bool,
    /// What must be there before: priority classes, Corridors, volumes.
    #[serde(default)]
    pub objects: Vec<ObjectGroup>,
    pub nodes: Vec<Group>,
    /// Pods that are on Nodes already, one Node after the other.
    #[serde(default)]
    pub existing: Vec<Group>,
    /// Pods in the contestant's line that cannot be placed.
    #[serde(default)]
    pub waiting: Vec<Group>,
    /// Pods in the contestant's line that are to be placed.
    pub measured: Vec<Group>,
    #[serde(default)]
    pub churn: Option<Churn>,
}

/// So many objects alike.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    #[serde(default = "one")]
    pub count: usize,
    /// Fragment of an API object, with patterns in its strings.
    pub template: Value,
}

/// So many objects alike, or so many for each Node or Pod.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectGroup {
    #[serde(default = "one")]
    pub count: usize,
    #[serde(default)]
    pub per: Option<Per>,
    pub template: Value,
}

/// What a group of objects grows with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Per {
    Node,
    Existing,
    Measured,
}

/// What comes and goes while Pods are placed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Churn {
    pub every_ms: u64,
    /// One of each comes at each beat, and goes at the next but one.
    pub objects: Vec<Value>,
}

fn one() -> usize {
    1
}

impl Workload {
    /// By its name (`basic`) or as a path.
    pub fn load(name_or_path: &str) -> Result<Self> {
        let by_name = Path::new(FOLDER).join(format!("{name_or_path}.yaml"));
        let path = if by_name.is_file() { by_name } else { PathBuf::from(name_or_path) };
        let doing = || format!("reading the workload {}", path.display());
        let text = fs::read_to_string(&path).map_err(|problem| {
            let known = names().map(|names| names.join(", ")).unwrap_or_default();
            Error::malformed(doing(), format!("{problem}; there are {known}"))
        })?;
        let mut workload: Self =
            serde_saphyr::from_str(&text).map_err(|problem| Error::malformed(doing(), problem))?;
        workload.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if workload.nodes.is_empty() || workload.measured.is_empty() {
            return Err(Error::malformed(doing(), "it needs nodes and measured Pods"));
        }
        Ok(workload)
    }

    pub fn size(&self) -> Size {
        Size { nodes: total(&self.nodes), pods: total(&self.measured) }
    }

    /// Every Node, whole.
    pub fn all_nodes(&self) -> Vec<Value> {
        self.each(&self.nodes).map(|(index, object)| node(index, object)).collect()
    }

    /// What must be there before Nodes and Pods are. Each group is numbered by itself, so that its objects can be those
    /// of the Nodes or Pods with the same numbers.
    pub fn all_objects(&self) -> Vec<Value> {
        let nodes = self.size().nodes;
        let of_group = |group| {
            let indices = 0..self.count_of(group);
            indices.map(move |index| fill(&group.template, Numbers { index, nodes }))
        };
        self.objects.iter().flat_map(of_group).collect()
    }

    /// Whether somebody else must bind claims before its Pods can be bound.
    pub fn has_unbound_claims(&self) -> bool {
        let is_unbound = |group: &ObjectGroup| {
            let template = &group.template;
            template["kind"] == "PersistentVolumeClaim" && template["spec"]["volumeName"].is_null()
        };
        self.objects.iter().any(is_unbound)
    }

    fn count_of(&self, group: &ObjectGroup) -> usize {
        let times = match group.per {
            None => 1,
            Some(Per::Node) => self.size().nodes,
            Some(Per::Existing) => total(&self.existing),
            Some(Per::Measured) => self.size().pods,
        };
        group.count * times
    }

    /// Pods that are bound already.
    pub fn all_existing(&self) -> Vec<Value> {
        let nodes = self.size().nodes;
        let pods = self.each(&self.existing).map(|(index, object)| {
            let mut pod = pod("existing", index, object);
            if pod["spec"]["nodeName"].is_null() {
                pod["spec"]["nodeName"] = json!(node_name(index % nodes));
            }
            pod
        });
        pods.collect()
    }

    /// Pods that a scheduler of this name cannot place.
    pub fn all_waiting(&self, scheduler: &str) -> Vec<Value> {
        let pods = self.each(&self.waiting).map(|(index, object)| pod("waiting", index, object));
        pods.map(|pod| of_scheduler(pod, scheduler)).collect()
    }

    /// Pods that a scheduler of this name is to place.
    pub fn all_measured(&self, scheduler: &str) -> Vec<Value> {
        let pods = self.each(&self.measured).map(|(index, object)| pod("measured", index, object));
        pods.map(|pod| of_scheduler(pod, scheduler)).collect()
    }

    /// Pods like the measured ones, by another name, one after the other for ever.
    pub fn more_measured(&self, scheduler: &str) -> impl Iterator<Item = Value> {
        let groups = self.measured.clone();
        let (nodes, scheduler) = (self.size().nodes, scheduler.to_owned());
        (0..).map(move |index| {
            let group = &groups[index % groups.len()];
            let object = fill(&group.template, Numbers { index, nodes });
            of_scheduler(pod("steady", index, object), &scheduler)
        })
    }

    /// The objects of one beat of the churn.
    pub fn churned(&self, beat: usize, scheduler: &str) -> Vec<Value> {
        let numbers = Numbers { index: beat, nodes: self.size().nodes };
        let objects = self.churn.iter().flat_map(|churn| &churn.objects);
        let filled = objects.map(|template| fill(template, numbers));
        filled.map(|object| churned_object(beat, object, scheduler)).collect()
    }

    /// Numbered through all groups, so that names and Nodes go on where the last group ended.
    fn each<'a>(&self, groups: &'a [Group]) -> impl Iterator<Item = (usize, Value)> + use<'a> {
        let nodes = self.size().nodes;
        let templates =
            groups.iter().flat_map(|group| std::iter::repeat_n(&group.template, group.count));
        templates
            .enumerate()
            .map(move |(index, template)| (index, fill(template, Numbers { index, nodes })))
    }
}

/// The names of all workloads, in order.
pub fn names() -> Result<Vec<String>> {
    let doing = |problem| Error::malformed(format!("listing {FOLDER}"), problem);
    let mut names: Vec<String> = fs::read_dir(FOLDER)
        .map_err(doing)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    Ok(names)
}

pub fn node_name(index: usize) -> String {
    format!("node-{index}")
}

fn total(groups: &[Group]) -> usize {
    groups.iter().map(|group| group.count).sum()
}

/// What every Node has is added, and may be left out in files.
fn node(index: usize, mut object: Value) -> Value {
    let name = node_name(index);
    object["apiVersion"] = json!("v1");
    object["kind"] = json!("Node");
    object["metadata"]["name"] = json!(name);
    object["metadata"]["labels"]["kubernetes.io/hostname"] = json!(name);
    let status = &mut object["status"];
    if status["allocatable"].is_null() {
        status["allocatable"] = json!({"cpu": "32", "memory": "128Gi", "pods": "110"});
    }
    status["capacity"] = status["allocatable"].clone();
    status["conditions"] = json!([{"type": "Ready", "status": "True", "reason": "KubeletReady"}]);
    object
}

/// What every Pod has is added, and may be left out in files.
fn pod(prefix: &str, index: usize, mut object: Value) -> Value {
    object["apiVersion"] = json!("v1");
    object["kind"] = json!("Pod");
    object["metadata"]["name"] = json!(format!("{prefix}-{index}"));
    if object["metadata"]["namespace"].is_null() {
        object["metadata"]["namespace"] = json!(NAMESPACE);
    }
    if object["spec"]["containers"].is_null() {
        let requests = json!({"cpu": "100m", "memory": "500Mi"});
        object["spec"]["containers"] =
            json!([{"name": "main", "image": "pause:1", "resources": {"requests": requests}}]);
    }
    object
}

fn of_scheduler(mut pod: Value, scheduler: &str) -> Value {
    pod["spec"]["schedulerName"] = json!(scheduler);
    pod
}

/// A Node, a Pod in the contestant's line, or anything else that stands there in full.
fn churned_object(beat: usize, object: Value, scheduler: &str) -> Value {
    match object["kind"].as_str() {
        Some("Node") => {
            let mut churned = node(beat, object);
            let name = format!("churn-{beat}");
            churned["metadata"]["labels"]["kubernetes.io/hostname"] = json!(name);
            churned["metadata"]["name"] = json!(name);
            churned
        }
        Some("Pod") => of_scheduler(pod("churn", beat, object), scheduler),
        _ => object,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_workload_can_be_read_and_says_what_it_is_about() {
        let names = names().unwrap();
        assert!(names.len() >= 20, "{names:?}");
        for name in names {
            let workload = Workload::load(&name).unwrap();
            assert!(workload.about.len() > 20, "{name} says too little");
        }
    }

    #[test]
    fn every_pod_has_the_claim_and_every_claim_the_volume_that_it_names() {
        let mut claims_seen = 0;
        for name in names().unwrap() {
            let small = Workload::load(&name).unwrap().scaled(Size { nodes: 20, pods: 40 });
            let objects = small.all_objects();
            let named = |kind: &str| -> BTreeSet<String> {
                let of_kind = objects.iter().filter(|it| it["kind"] == kind);
                of_kind.map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect()
            };
            let (volumes, claims) = (named("PersistentVolume"), named("PersistentVolumeClaim"));
            claims_seen += claims.len();
            for object in &objects {
                if let Some(volume) = object["spec"]["volumeName"].as_str() {
                    assert!(volumes.contains(volume), "{name}: {volume}");
                }
            }
            for pod in small.all_existing().into_iter().chain(small.all_measured("s")) {
                for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
                    let claim = volume["persistentVolumeClaim"]["claimName"].as_str().unwrap();
                    assert!(claims.contains(claim), "{name}: {claim}");
                }
            }
        }
        assert!(claims_seen > 0, "no workload has claims");
    }

    #[test]
    fn every_pod_and_node_is_one_that_kubernetes_knows() {
        for name in names().unwrap() {
            let small = Workload::load(&name).unwrap().scaled(Size { nodes: 20, pods: 40 });
            for node in small.all_nodes() {
                serde_json::from_value::<k8s_openapi::api::core::v1::Node>(node).unwrap();
            }
            let ours = |pods: Vec<Value>| pods.into_iter();
            let all = ours(small.all_existing())
                .chain(small.all_waiting("s"))
                .chain(small.all_measured("s"));
            for pod in all {
                let text = pod.to_string();
                assert!(!text.contains("{index") && !text.contains("{scatter"), "{text}");
                serde_json::from_value::<k8s_openapi::api::core::v1::Pod>(pod).unwrap();
            }
        }
    }

    #[test]
    fn an_unknown_workload_is_answered_with_the_known_ones() {
        let refusal = Workload::load("no-such").unwrap_err().to_string();
        assert!(refusal.contains("basic"), "{refusal}");
    }
}

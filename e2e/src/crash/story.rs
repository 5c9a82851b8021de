//! The life of one Corridor and one MemoryBundle, from their creation to the last trace of them.

use std::collections::BTreeMap;

use futures::future::try_join;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::world::World;
use crate::error::{Doing as _, Error, Result, ensure};
use crate::objects::pods::{
    CORRIDOR_GBPS, CORRIDOR_REF, MEMORY_BUNDLE_GBS, MEMORY_BUNDLE_REF, PodTemplate, delete_pod,
};
use crate::observe::PATIENCE;
use crate::versions::{Key, Version, kind};

const CORRIDOR: (&str, &str) = ("corridors", "c1");
const BUNDLE: (&str, &str) = ("memorybundles", "b1");
const POLICY: (&str, &str) = ("attestationpolicies", "measured");
const POD: &str = "user";

/// What is left of a life that is over.
#[derive(Debug)]
pub struct Lived {
    /// What Corridor and MemoryBundle were like at each station.
    pub stations: Vec<(&'static str, Value)>,
    /// Every version of every custom resource, by `plural/name`.
    pub histories: BTreeMap<String, Vec<Version>>,
    /// UIDs by name.
    pub uids: BTreeMap<&'static str, String>,
}

/// What happens in a life between its beginning and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Plot {
    /// Floors are changed in place.
    pub is_changed: bool,
    /// Fields are changed that need another allocation.
    pub is_moved: bool,
    /// A Pod uses both.
    pub is_used: bool,
}

/// Everything that can happen.
pub const FULL: Plot = Plot { is_changed: true, is_moved: true, is_used: true };

/// Only a beginning and an end.
pub const SHORT: Plot = Plot { is_changed: false, is_moved: false, is_used: false };

/// One story in a namespace of its own.
#[derive(Debug)]
pub struct Story<'a> {
    world: &'a World,
    namespace: &'a str,
    plot: Plot,
    uids: BTreeMap<&'static str, String>,
    stations: Vec<(&'static str, Value)>,
}

impl<'a> Story<'a> {
    pub fn new(world: &'a World, namespace: &'a str, plot: Plot) -> Self {
        Self { world, namespace, plot, uids: BTreeMap::new(), stations: Vec::new() }
    }

    /// Created, Ready, changed in place, moved, used by a Pod, no longer used, deleted, gone; as the
    /// plot says.
    pub async fn live(mut self) -> Result<Lived> {
        self.be_governed().await?;
        // Watches of different kinds are not in step: a Corridor could be seen before its policy.
        let is_known = |it: Option<&Value>| it.is_some_and(|it| it["status"].is_object());
        let policy = self.key(POLICY);
        self.world.versions.until(&policy, "known", PATIENCE, is_known).await?;
        self.be_wanted().await?;
        self.live_on().await
    }

    /// A policy asks for attestation of everything in the namespace.
    pub async fn be_governed(&mut self) -> Result<()> {
        self.world.stage.cluster.ensure_namespace(self.namespace).await?;
        self.create(POLICY, json!({ "requiredClaims": { "secureBoot": "true" } })).await
    }

    pub async fn be_wanted(&mut self) -> Result<()> {
        self.create(CORRIDOR, corridor_spec()).await?;
        self.create(BUNDLE, bundle_spec()).await
    }

    /// The rest, from there.
    pub async fn live_on(mut self) -> Result<Lived> {
        self.arrive("Ready", |it| it["status"]["phase"] == "Ready").await?;

        if self.plot.is_changed {
            self.be_changed().await?;
        }
        if self.plot.is_moved {
            self.be_moved().await?;
        }
        if self.plot.is_used {
            self.be_used().await?;
        }
        self.end().await
    }

    async fn be_changed(&mut self) -> Result<()> {
        self.change(CORRIDOR, json!({ "minGbps": 120 })).await?;
        self.change(BUNDLE, json!({ "bandwidthFloorGBs": 10 })).await?;
        self.arrive("changed in place", |it| {
            it["status"]["floorGbps"] == 120 || it["status"]["floorGBs"] == 10
        })
        .await
    }

    /// Make before break: for a moment there are two allocations, and then one again.
    async fn be_moved(&mut self) -> Result<()> {
        let before = self.handles();
        self.change(CORRIDOR, json!({ "lanes": 5 })).await?;
        self.change(BUNDLE, json!({ "bytes": 2_u64 << 30 })).await?;
        self.arrive("moved", |it| {
            let handle = handle(it);
            handle.is_some() && !before.contains(&handle)
        })
        .await?;
        for uid in self.uids.values() {
            let is_alone = self.world.gate.until_live(uid, 1, PATIENCE).await;
            ensure(is_alone, || {
                format!("two allocations of {uid} live on: {:?}", self.world.gate.account(uid))
            })?;
        }
        Ok(())
    }

    async fn be_used(&mut self) -> Result<()> {
        let reference = |of: (&str, &str)| format!("{}/{}", self.namespace, of.1);
        let pod = PodTemplate::small()
            .annotation(CORRIDOR_REF, &reference(CORRIDOR))
            .annotation(CORRIDOR_GBPS, "40")
            .annotation(MEMORY_BUNDLE_REF, &reference(BUNDLE))
            .annotation(MEMORY_BUNDLE_GBS, "2");
        pod.create(self.world.admin(), self.namespace, POD).await?;
        let key = self.key(("pods", POD));
        let is_bound =
            |pod: Option<&Value>| pod.is_some_and(|pod| pod["spec"]["nodeName"].is_string());
        self.world.versions.until(&key, "bound", PATIENCE, is_bound).await?;
        self.arrive("in use", |it| it["status"]["inUse"] == 1).await?;
        delete_pod(self.world.admin(), self.namespace, POD).await?;
        self.arrive("no longer used", |it| {
            it["status"]["inUse"].is_null() || it["status"]["inUse"] == 0
        })
        .await
    }

    async fn end(self) -> Result<Lived> {
        for of in [CORRIDOR, BUNDLE] {
            let deleting = format!("deleting {}/{}", self.namespace, of.1);
            self.api(of).delete(of.1, &DeleteParams::default()).await.map(drop).doing(deleting)?;
        }
        for of in [CORRIDOR, BUNDLE] {
            let is_gone = |it: Option<&Value>| it.is_none();
            self.world.versions.until(&self.key(of), "gone", PATIENCE, is_gone).await?;
        }
        let deleting = format!("deleting {}/{}", self.namespace, POLICY.1);
        let policies = self.api(POLICY);
        policies.delete(POLICY.1, &DeleteParams::default()).await.map(drop).doing(deleting)?;
        let is_gone = |it: Option<&Value>| it.is_none();
        self.world.versions.until(&self.key(POLICY), "gone", PATIENCE, is_gone).await?;
        self.ensure_nothing_left().await?;
        let history = |of: (&str, &str)| {
            (format!("{}/{}", of.0, of.1), self.world.versions.history(&self.key(of)))
        };
        let histories = [CORRIDOR, BUNDLE, POLICY].map(history).into();
        for of in [CORRIDOR, BUNDLE, POLICY, ("pods", POD)] {
            self.world.versions.forget(&self.key(of));
        }
        Ok(Lived { stations: self.stations, histories, uids: self.uids })
    }

    /// The daemons themselves say so, and not the books of the test.
    async fn ensure_nothing_left(&self) -> Result<()> {
        let (paths, bundles) =
            try_join(self.world.stage.daemons.corridors(""), self.world.stage.daemons.bundles(""))
                .await?;
        let is_ours = |it: &&Value| {
            self.uids.values().any(|uid| it["owner"].as_str().is_some_and(|o| o.ends_with(uid)))
        };
        let left: Vec<_> = paths.iter().chain(&bundles).filter(is_ours).collect();
        ensure(left.is_empty(), || format!("leaked in the daemons: {left:?}"))
    }

    async fn create(&mut self, of: (&'static str, &'static str), spec: Value) -> Result<()> {
        let doing = format!("creating {}/{} in {}", of.0, of.1, self.namespace);
        let object = serde_json::from_value(json!({
            "apiVersion": "corridoros.io/v1alpha1",
            "kind": kind(of.0).kind,
            "metadata": { "namespace": self.namespace, "name": of.1 },
            "spec": spec,
        }))
        .doing(doing.clone())?;
        let created =
            self.api(of).create(&PostParams::default(), &object).await.doing(doing.clone())?;
        let uid = created.uid().ok_or_else(|| Error::malformed(doing, "it got no UID"))?;
        if of != POLICY {
            self.world.gate.introduce(&uid, self.namespace, of.1);
            self.uids.insert(of.1, uid);
        }
        Ok(())
    }

    async fn change(&self, of: (&str, &str), spec: Value) -> Result<()> {
        let patch = Patch::Merge(json!({ "spec": spec }));
        let doing = format!("changing {}/{} in {}", of.0, of.1, self.namespace);
        self.api(of).patch(of.1, &PatchParams::default(), &patch).await.map(drop).doing(doing)
    }

    /// Waits until Corridor and MemoryBundle are so, Ready, and say so about what is wanted now.
    async fn arrive(
        &mut self,
        station: &'static str,
        there: impl Fn(&Value) -> bool,
    ) -> Result<()> {
        let is_settled = |it: &Value| {
            let generation = &it["metadata"]["generation"];
            it["status"]["phase"] == "Ready"
                && it["status"]["observedGeneration"] == *generation
                && condition(it, "UpdatePending")["status"] != "True"
        };
        let done = |it: Option<&Value>| it.is_some_and(|it| is_settled(it) && there(it));
        for of in [CORRIDOR, BUNDLE] {
            let key = self.key(of);
            let it = self.world.versions.until(&key, station, PATIENCE, done).await?;
            self.stations.push((station, portrait(&it)));
        }
        Ok(())
    }

    fn handles(&self) -> Vec<Option<String>> {
        let last = |of| self.world.versions.history(&self.key(of)).pop();
        [CORRIDOR, BUNDLE].map(|of| last(of).and_then(|it| handle(&it.object))).into()
    }

    fn key(&self, of: (&str, &str)) -> Key {
        (of.0.to_owned(), self.namespace.to_owned(), of.1.to_owned())
    }

    fn api(&self, of: (&str, &str)) -> Api<DynamicObject> {
        Api::namespaced_with(self.world.admin().clone(), self.namespace, &kind(of.0))
    }
}

fn corridor_spec() -> Value {
    json!({
        "lanes": 4,
        "lambdaNm": [1550, 1551, 1552, 1553],
        "minGbps": 100,
        "attestationRequired": true,
    })
}

fn bundle_spec() -> Value {
    json!({
        "bytes": 1_u64 << 30,
        "latencyClass": "T2",
        "bandwidthFloorGBs": 8,
        "shareable": true,
    })
}

fn handle(object: &Value) -> Option<String> {
    let status = &object["status"];
    let handle = status["corridorId"].as_str().or(status["ffmHandle"].as_str());
    handle.map(str::to_owned)
}

fn condition<'v>(object: &'v Value, type_: &str) -> &'v Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions.and_then(|all| all.iter().find(|it| it["type"] == type_)).unwrap_or(&Value::Null)
}

/// What must be the same in every life: no times, no ids, no readings.
fn portrait(object: &Value) -> Value {
    let (metadata, status) = (&object["metadata"], &object["status"]);
    let annotations = metadata["annotations"].as_object();
    let annotations: Vec<_> = annotations.into_iter().flatten().map(|(name, _)| name).collect();
    let conditions: BTreeMap<_, _> = status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| {
            let said = (&it["status"], &it["reason"], &it["observedGeneration"]);
            (it["type"].as_str().unwrap_or_default(), said)
        })
        .collect();
    json!({
        "generation": metadata["generation"],
        "finalizers": metadata["finalizers"],
        "annotations": annotations,
        "phase": status["phase"],
        "floor": [status["floorGbps"], status["floorGBs"]],
        "hasHandle": handle(object).is_some(),
        "inUse": status["inUse"],
        "conditions": conditions,
    })
}

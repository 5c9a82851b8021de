//! Custom resources whose status only the controllers write.

use std::fmt::Write as _;
use std::time::Duration;

use futures::future::join_all;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
    PostParams,
};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::error::{Doing as _, Error, Result};
use crate::observe::{PATIENCE, Seen, until_described};

/// The ticket of an attested object.
pub const TICKET: &str = "corridoros.io/attestationTicket";
pub const FORCE_RELEASE: &str = "corridoros.io/force-release";
pub const OVERRIDE: &str = "corridoros.io/override";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CustomKind {
    Corridor,
    MemoryBundle,
    AttestationPolicy,
}

impl CustomKind {
    pub const ALL: [Self; 3] = [Self::Corridor, Self::MemoryBundle, Self::AttestationPolicy];

    pub fn name(self) -> &'static str {
        match self {
            Self::Corridor => "Corridor",
            Self::MemoryBundle => "MemoryBundle",
            Self::AttestationPolicy => "AttestationPolicy",
        }
    }

    /// Where the status shows the daemon's id.
    pub fn handle_field(self) -> &'static str {
        match self {
            Self::MemoryBundle => "ffmHandle",
            Self::Corridor | Self::AttestationPolicy => "corridorId",
        }
    }

    pub fn resource(self) -> ApiResource {
        let plural = match self {
            Self::Corridor => "corridors",
            Self::MemoryBundle => "memorybundles",
            Self::AttestationPolicy => "attestationpolicies",
        };
        let kind = GroupVersionKind::gvk("corridoros.io", "v1alpha1", self.name());
        ApiResource::from_gvk_with_plural(&kind, plural)
    }

    /// The objects of one namespace.
    pub fn objects_in(self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(client.clone(), namespace, &self.resource())
    }
}

/// A custom resource that exists, or did.
#[derive(Debug, Clone)]
pub struct Custom {
    pub api: Api<DynamicObject>,
    pub kind: CustomKind,
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

impl Custom {
    pub async fn create(
        client: &Client,
        kind: CustomKind,
        namespace: &str,
        name: &str,
        spec: Value,
    ) -> Result<Self> {
        let doing = format!("creating {} {namespace}/{name}", kind.name());
        let api = kind.objects_in(client, namespace);
        let object = serde_json::from_value(json!({
            "apiVersion": "corridoros.io/v1alpha1",
            "kind": kind.name(),
            "metadata": { "namespace": namespace, "name": name },
            "spec": spec,
        }))
        .doing(doing.clone())?;
        let created = api.create(&PostParams::default(), &object).await.doing(doing.clone())?;
        let uid = created.uid().ok_or_else(|| Error::malformed(doing, "it got no UID"))?;
        Ok(Self { api, kind, namespace: namespace.into(), name: name.into(), uid })
    }

    /// As Pods refer to it.
    pub fn reference(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// As people say it.
    pub fn title(&self) -> String {
        format!("{} {}", self.kind.name(), self.reference())
    }

    pub async fn get(&self) -> Result<Value> {
        let object = self.api.get(&self.name).await.doing(format!("reading {}", self.title()))?;
        as_value(&object)
    }

    /// The id that the daemon gave it, as the status shows it now.
    pub async fn handle(&self) -> Result<String> {
        let object = self.get().await?;
        Ok(handle_of(&object, self.kind))
    }

    /// A JSON merge patch of the whole object.
    pub async fn patch(&self, patch: Value) -> Result<Value> {
        let doing = format!("patching {} with {patch}", self.title());
        let params = PatchParams::default();
        let patched = self.api.patch(&self.name, &params, &Patch::Merge(patch)).await;
        as_value(&patched.doing(doing)?)
    }

    pub async fn patch_spec(&self, patch: Value) -> Result<Value> {
        self.patch(json!({ "spec": patch })).await
    }

    pub async fn annotate(&self, key: &str, value: &str) -> Result<()> {
        self.patch(json!({ "metadata": { "annotations": { key: value } } })).await.map(drop)
    }

    pub async fn delete(&self) -> Result<()> {
        let doing = format!("deleting {}", self.title());
        self.api.delete(&self.name, &DeleteParams::default()).await.map(drop).doing(doing)
    }

    /// Takes every finalizer away, as an impatient administrator does.
    pub async fn strip_finalizers(&self) -> Result<()> {
        self.patch(json!({ "metadata": { "finalizers": null } })).await.map(drop)
    }

    /// Waits until it is as `done` says, and returns it so.
    pub async fn until(&self, awaited: &str, done: impl FnMut(&Value) -> bool) -> Result<Value> {
        self.until_within(PATIENCE, awaited, done).await
    }

    pub async fn until_within(
        &self,
        patience: Duration,
        awaited: &str,
        mut done: impl FnMut(&Value) -> bool,
    ) -> Result<Value> {
        let key = self.reference();
        let awaited = format!("{} to be {awaited}", self.title());
        let mut found = Value::Null;
        let done = |seen: &Seen<DynamicObject>| {
            let object = seen.get(&key).and_then(|object| as_value(object).ok());
            let Some(object) = object.filter(|object| object["metadata"]["uid"] == self.uid) else {
                return false;
            };
            let is_done = done(&object);
            found = object;
            is_done
        };
        until_described(&self.api, &awaited, patience, done, describe).await?;
        Ok(found)
    }

    pub async fn until_phase(&self, phase: &str) -> Result<Value> {
        self.until(phase, |object| object["status"]["phase"] == phase).await
    }

    pub async fn until_ready(&self) -> Result<Value> {
        self.until_phase("Ready").await
    }

    /// Waits until `Ready` is False for this reason, with a message that contains all of `parts`.
    pub async fn until_not_ready(&self, reason: &str, parts: &[&str]) -> Result<Value> {
        let awaited = format!("not Ready for the reason {reason}, saying {parts:?}");
        self.until(&awaited, |object| {
            let ready = condition(object, "Ready");
            let message = ready["message"].as_str().unwrap_or_default();
            ready["status"] == "False"
                && ready["reason"] == reason
                && parts.iter().all(|part| message.contains(part))
        })
        .await
    }

    pub async fn until_gone(&self) -> Result<()> {
        let awaited = format!("{} to be gone", self.title());
        let key = self.reference();
        let gone = |seen: &Seen<DynamicObject>| {
            seen.get(&key).is_none_or(|object| object.uid().as_deref() != Some(&self.uid))
        };
        until_described(&self.api, &awaited, PATIENCE, gone, describe).await.map(drop)
    }
}

/// One condition of an object; null when it has none of this type.
pub fn condition<'a>(object: &'a Value, name: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let mut named = conditions.filter(|condition| condition["type"] == name);
    named.next().unwrap_or(&Value::Null)
}

/// Whether a condition of this type is there and True.
pub fn is_true(object: &Value, name: &str) -> bool {
    condition(object, name)["status"] == "True"
}

/// The daemon's id in the status; empty when there is none.
pub fn handle_of(object: &Value, kind: CustomKind) -> String {
    object["status"][kind.handle_field()].as_str().unwrap_or_default().to_owned()
}

/// The attestation ticket of an object.
pub fn ticket_of(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][TICKET].as_str()
}

/// Removes every custom resource of ours by force, with no controller to release it.
pub async fn remove_all(client: &Client) -> Result<()> {
    let doing = "removing the custom resources of earlier tests";
    for kind in CustomKind::ALL {
        let all: Api<DynamicObject> = Api::all_with(client.clone(), &kind.resource());
        let list = all.list(&ListParams::default()).await.doing(doing)?;
        let removals = list.items.iter().map(|object| remove(client, kind, object));
        join_all(removals).await.into_iter().collect::<Result<()>>()?;
    }
    Ok(())
}

async fn remove(client: &Client, kind: CustomKind, object: &DynamicObject) -> Result<()> {
    let api = kind.objects_in(client, &object.namespace().unwrap_or_default());
    let name = object.name_any();
    let doing = format!("removing {} {name}", kind.name());
    let gone_is_fine = |outcome: kube::Result<()>| match outcome {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        outcome => outcome.doing(doing.clone()),
    };
    gone_is_fine(api.delete(&name, &DeleteParams::default()).await.map(drop))?;
    // The administrator's way past the admission policies, where they are installed.
    let overridden = json!({ "finalizers": null, "annotations": { OVERRIDE: "true" } });
    let none = Patch::Merge(json!({ "metadata": overridden }));
    gone_is_fine(api.patch(&name, &PatchParams::default(), &none).await.map(drop))
}

pub(crate) fn as_value(object: &DynamicObject) -> Result<Value> {
    serde_json::to_value(object).doing("reading a custom resource")
}

/// What a wait in vain shows: where each object stands and why.
fn describe(seen: &Seen<DynamicObject>) -> String {
    const DESCRIBED_MAX: usize = 10;
    let mut text = format!("there are {}", seen.len());
    for (name, object) in seen.iter().take(DESCRIBED_MAX) {
        let deleting = if object.metadata.deletion_timestamp.is_some() { ", deleting" } else { "" };
        let _ = write!(text, "\n  {name}{deleting}: spec {}", object.data["spec"]);
        let _ = write!(text, "\n    status {}", object.data["status"]);
    }
    text
}

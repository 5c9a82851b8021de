//! Who may do what, as data: each case is one write that the API server lets pass or refuses.

use std::collections::BTreeMap;

use http::Method;
use kube::api::{ApiResource, GroupVersionKind};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::control_plane::DryRun;
use crate::error::{Error, Result};

/// Where the cases play.
pub const NAMESPACE: &str = "guarded";

/// A line of `cases/admission.yaml`, which explains the fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub class: String,
    pub actor: String,
    pub does: Verb,
    pub to: String,
    pub annotations: Option<Value>,
    /// Null takes them all away; absent leaves them alone.
    #[serde(default, deserialize_with = "even_null")]
    pub finalizers: Option<Value>,
    #[serde(default = "nothing")]
    pub with: Value,
    pub lease: Option<String>,
    pub verdict: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    Create,
    Patch,
    Replace,
    Delete,
    Bind,
    BindLegacy,
}

fn even_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn nothing() -> Value {
    json!({})
}

impl Case {
    /// The write as a dry run; `versions` are the resourceVersions of the objects.
    pub fn write(&self, versions: &BTreeMap<String, String>) -> Result<DryRun> {
        let (name, subresource) = match self.to.split_once('/') {
            Some((name, subresource)) => (name, format!("/{subresource}")),
            None => (self.to.as_str(), String::new()),
        };
        let kind = Kind::of(name)?;
        let object = format!("{}/{name}{subresource}", kind.path());
        Ok(match self.does {
            Verb::Create => {
                DryRun::new(Method::POST, kind.path(), self.laid_over(kind.object("new")))
            }
            Verb::Patch => DryRun::new(Method::PATCH, object, self.laid_over(json!({}))),
            Verb::Replace => {
                let mut anew = kind.object(name);
                anew["metadata"]["resourceVersion"] = json!(versions.get(name));
                DryRun::new(Method::PUT, object, self.laid_over(anew))
            }
            Verb::Delete => DryRun::delete(object),
            Verb::Bind => {
                DryRun::new(Method::POST, format!("{object}/binding"), self.binding(name))
            }
            Verb::BindLegacy => {
                let path = format!("/api/v1/namespaces/{NAMESPACE}/bindings");
                DryRun::new(Method::POST, path, self.binding(name))
            }
        })
    }

    fn laid_over(&self, mut object: Value) -> Value {
        merge(&mut object, &self.with);
        if let Some(annotations) = &self.annotations {
            object["metadata"]["annotations"] = annotations.clone();
        }
        if let Some(finalizers) = &self.finalizers {
            object["metadata"]["finalizers"] = finalizers.clone();
        }
        object
    }

    fn binding(&self, pod: &str) -> Value {
        self.laid_over(binding(pod, &json!({})))
    }

    /// What is wrong with the answer, if anything.
    pub fn judge(&self, refusal: Option<&str>) -> Option<String> {
        let answer = refusal.unwrap_or("allowed");
        let is_right = match self.verdict.as_str() {
            "allowed" => refusal.is_none(),
            part => refusal.is_some() && answer.contains(part),
        };
        (!is_right).then(|| format!("{self:?}\n  the answer is: {answer}"))
    }
}

/// Lays one object over another; a null is laid over as a null, so that a patch can remove.
pub fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// A Binding to a Node that need not exist.
pub fn binding(pod: &str, annotations: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": { "name": pod, "namespace": NAMESPACE, "annotations": annotations },
        "target": { "apiVersion": "v1", "kind": "Node", "name": "node-1" },
    })
}

/// The kinds that cases are about.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Pod,
    Corridor,
    Bundle,
    Policy,
}

impl Kind {
    /// By the last word of an object's name.
    pub fn of(name: &str) -> Result<Self> {
        Ok(match name.rsplit('-').next() {
            Some("pod") => Self::Pod,
            Some("corridor") => Self::Corridor,
            Some("bundle") => Self::Bundle,
            Some("policy") => Self::Policy,
            _ => return Err(Error::malformed("reading a case", format!("no kind: {name}"))),
        })
    }

    pub fn resource(self) -> ApiResource {
        let (group, version, kind) = match self {
            Self::Pod => ("", "v1", "Pod"),
            Self::Corridor => ("corridoros.io", "v1alpha1", "Corridor"),
            Self::Bundle => ("corridoros.io", "v1alpha1", "MemoryBundle"),
            Self::Policy => ("corridoros.io", "v1alpha1", "AttestationPolicy"),
        };
        let kind = GroupVersionKind::gvk(group, version, kind);
        ApiResource::from_gvk(&kind)
    }

    pub fn path(self) -> String {
        let ApiResource { api_version, plural, group, .. } = self.resource();
        let root = if group.is_empty() { "api" } else { "apis" };
        format!("/{root}/{api_version}/namespaces/{NAMESPACE}/{plural}")
    }

    pub fn object(self, name: &str) -> Value {
        let spec = match self {
            Self::Pod => json!({
                "schedulerName": "nobody",
                "containers": [{ "name": "main", "image": "never-pulled:1" }],
            }),
            Self::Corridor => json!({ "lanes": 1, "lambdaNm": [1550], "minGbps": 1 }),
            Self::Bundle => json!({ "bytes": 1, "latencyClass": "T2", "bandwidthFloorGBs": 1 }),
            Self::Policy => json!({ "allowedTenants": [NAMESPACE] }),
        };
        let ApiResource { api_version, kind, .. } = self.resource();
        let metadata = json!({ "namespace": NAMESPACE, "name": name });
        json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec })
    }
}

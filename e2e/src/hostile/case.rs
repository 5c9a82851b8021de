//! One row of the table, and how its writes look on the wire.

use http::{Method, Request};
use kube::Client;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::SCHEDULER_NAME;
use crate::admission_cases::merge;
use crate::error::{Doing as _, Error, Result};

/// The row. What its words mean stands at the head of `cases/hostile.yaml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a word of the table, and they are independent"
)]
pub struct Case {
    pub class: String,
    pub name: String,
    #[serde(default)]
    pub bundle: bool,
    #[serde(default)]
    pub attested: bool,
    #[serde(default)]
    pub below_floor: bool,
    pub steps: Vec<Step>,
    pub intruder: Option<String>,
    #[serde(default)]
    pub again_while_down: bool,
    pub with_policies: String,
    pub without: Outcome,
    pub after_restart: Outcome,
    pub kind: Option<String>,
    pub kind_after: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Outcome {
    /// No Pod is bound that should not be, no reservation is lost or stolen, other tenants go on.
    #[serde(rename = "no effect")]
    NoEffect,
    /// It has an effect, and is reported.
    #[serde(rename = "detected")]
    Detected,
    /// The API server does not take it, policies or not.
    #[serde(rename = "refused")]
    Refused,
    /// The object goes, and what it had is released; this is reported.
    #[serde(rename = "object gone")]
    ObjectGone,
    /// A new object under the old name, with which the old one's grants have nothing to do.
    #[serde(rename = "object anew")]
    ObjectAnew,
    /// It counts like a grant of ours, and the object says that more is reserved than there is.
    #[serde(rename = "oversubscribed")]
    Oversubscribed,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub does: Verb,
    pub to: String,
    /// In the namespace of another tenant.
    #[serde(default)]
    pub guest: bool,
    #[serde(default)]
    pub annotations: Option<Value>,
    #[serde(default, deserialize_with = "even_null")]
    pub finalizers: Option<Value>,
    #[serde(default)]
    pub with: Option<Value>,
    /// The name under which it is written, as far as `managedFields` goes.
    pub manager: Option<String>,
    #[serde(default = "once")]
    pub times: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    Create,
    Patch,
    Delete,
    Bind,
    /// Until it has a status.
    Await,
}

fn even_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn once() -> usize {
    1
}

/// What `$words` in a case stand for.
#[derive(Debug, Clone, Default)]
pub struct Words(pub Vec<(&'static str, String)>);

impl Words {
    pub fn get(&self, word: &str) -> &str {
        self.0.iter().find(|(it, _)| *it == word).map_or("", |(_, value)| value)
    }

    fn fill(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                for (word, meaning) in &self.0 {
                    *text = text.replace(&format!("${word}"), meaning);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.fill(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.fill(member)),
            _ => {}
        }
    }
}

/// A write as it goes over the wire.
#[derive(Debug, Clone)]
pub struct Write {
    pub method: Method,
    pub path: String,
    pub body: Value,
    manager: Option<String>,
}

impl Write {
    /// What the API server says against it, if it does.
    pub async fn refusal(&self, client: &Client, dry_run: bool) -> Result<Option<String>> {
        let doing = || format!("trying {} {} with {}", self.method, self.path, self.body);
        let content_type = match self.method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let manager = self.manager.as_deref().unwrap_or("mallory");
        let (mut uri, mut body) =
            (format!("{}?fieldManager={manager}", self.path), self.body.clone());
        if dry_run {
            uri.push_str("&dryRun=All");
        }
        // For a deletion the body decides, whatever the URL says.
        if dry_run && self.method == Method::DELETE {
            body["dryRun"] = json!(["All"]);
        }
        let request = Request::builder()
            .method(self.method.clone())
            .uri(uri)
            .header(http::header::CONTENT_TYPE, content_type)
            .body(if body.is_null() { vec![] } else { body.to_string().into_bytes() })
            .map_err(|problem| Error::malformed(doing(), problem))?;
        match client.request_text(request).await {
            Ok(_) => Ok(None),
            Err(kube::Error::Api(status)) => Ok(Some(status.message)),
            failed => failed.map(|_| None).doing(doing()),
        }
    }
}

impl Write {
    /// What a read of it answers.
    pub async fn read(&self, client: &Client) -> Result<Value> {
        let doing = || format!("reading {}", self.path);
        let request = Request::get(&self.path)
            .body(vec![])
            .map_err(|problem| Error::malformed(doing(), problem))?;
        client.request(request).await.doing(doing())
    }
}

impl Case {
    /// The kind of the object that it is about, in the plural.
    pub fn plural(&self) -> &'static str {
        if self.bundle { "memorybundles" } else { "corridors" }
    }

    pub fn title(&self) -> String {
        format!("{}: {}", self.class, self.name)
    }

    /// Whether any of its steps writes this word.
    pub fn mentions(&self, word: &str) -> bool {
        self.steps.iter().any(|step| format!("{step:?}").contains(word))
    }

    pub fn write(&self, step: &Step, words: &Words) -> Write {
        let (name, subresource) = match step.to.split_once('/') {
            Some((name, subresource)) => (name, format!("/{subresource}")),
            None => (step.to.as_str(), String::new()),
        };
        let namespace = words.get(if step.guest { "guest" } else { "namespace" });
        let (folder, mut anew) = match name {
            "object" => self.object(),
            "policy" => policy(),
            pod => (format!("api/v1/namespaces/{namespace}/pods"), pod_object(pod)),
        };
        let folder = folder.replace("$namespace", namespace);
        let folder = format!("/{folder}");
        anew["metadata"]["namespace"] = json!(namespace);
        let (method, path, body) = match step.does {
            Verb::Create => (Method::POST, folder, step.laid_over(anew)),
            Verb::Await => (Method::GET, format!("{folder}/{name}"), Value::Null),
            Verb::Patch => {
                (Method::PATCH, format!("{folder}/{name}{subresource}"), step.laid_over(json!({})))
            }
            Verb::Delete => {
                let now =
                    json!({ "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0 });
                (Method::DELETE, format!("{folder}/{name}"), now)
            }
            Verb::Bind => {
                let binding = json!({
                    "apiVersion": "v1",
                    "kind": "Binding",
                    "metadata": { "name": name, "namespace": namespace },
                    "target": { "apiVersion": "v1", "kind": "Node", "name": "node-1" },
                });
                (Method::POST, format!("{folder}/{name}/binding"), step.laid_over(binding))
            }
        };
        let mut write = Write { method, path, body, manager: step.manager.clone() };
        words.fill(&mut write.body);
        write
    }

    fn object(&self) -> (String, Value) {
        let kind = if self.bundle { "MemoryBundle" } else { "Corridor" };
        let folder = format!("apis/corridoros.io/v1alpha1/namespaces/$namespace/{}", self.plural());
        let object = json!({
            "apiVersion": "corridoros.io/v1alpha1",
            "kind": kind,
            "metadata": { "name": "object" },
            "spec": self.spec(),
        });
        (folder, object)
    }

    /// The object as its owner wants it.
    pub fn spec(&self) -> Value {
        if self.bundle {
            json!({
                "bytes": 1_u64 << 20,
                "latencyClass": "T2",
                "bandwidthFloorGBs": self.floor(),
                "shareable": true,
            })
        } else {
            json!({
                "lanes": 4,
                "lambdaNm": [1550, 1551],
                "minGbps": self.floor(),
                "attestationRequired": self.attested,
            })
        }
    }

    pub fn floor(&self) -> u32 {
        if self.bundle { 8 } else { 100 }
    }

    /// What the victim holds, and the one that waits asks for: together more than there is.
    pub fn larger_part(&self) -> u32 {
        if self.bundle { 5 } else { 60 }
    }

    pub fn rest(&self) -> u32 {
        self.floor() - self.larger_part()
    }
}

fn policy() -> (String, Value) {
    let folder = "apis/corridoros.io/v1alpha1/namespaces/$namespace/attestationpolicies";
    let object = json!({
        "apiVersion": "corridoros.io/v1alpha1",
        "kind": "AttestationPolicy",
        "metadata": { "name": "policy" },
        "spec": { "pqcRequired": false },
    });
    (folder.to_owned(), object)
}

fn pod_object(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name },
        "spec": {
            "schedulerName": SCHEDULER_NAME,
            "containers": [{ "name": "main", "image": "never-pulled:1" }],
        },
    })
}

impl Step {
    fn laid_over(&self, mut object: Value) -> Value {
        if let Some(with) = &self.with {
            merge(&mut object, with);
        }
        if let Some(annotations) = &self.annotations {
            object["metadata"]["annotations"] = annotations.clone();
        }
        if let Some(finalizers) = &self.finalizers {
            object["metadata"]["finalizers"] = finalizers.clone();
        }
        object
    }
}

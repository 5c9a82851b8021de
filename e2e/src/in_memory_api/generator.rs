//! The next call of a sequence, chosen by chance from what has been seen so far.

use serde_json::{Value, json};

use super::call::{
    APPLY_PATCH, Body, Call, JSON, JSON_PATCH, MERGE_PATCH, Reply, STRATEGIC_PATCH, Subject,
};
use super::kinds::{KINDS, Kind, NAMESPACES, PODS, letter};
use super::reading;
use crate::random::Random;

/// So few that calls meet.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// What the replies have shown.
#[derive(Debug, Default)]
pub struct Seen {
    pub objects: Vec<SeenObject>,
    /// Replies that are pages with more to come, and the list they belong to.
    pub pages: Vec<(usize, String)>,
    /// Replies with a version of their own.
    pub versions: Vec<usize>,
}

#[derive(Debug, Clone)]
pub struct SeenObject {
    pub subject: Subject,
    /// The reply that showed its last state.
    pub reply: usize,
    pub is_there: bool,
    /// Its fields have an owner on record.
    is_applied: bool,
}

#[derive(Debug)]
pub struct Generator {
    pub random: Random,
    pub seen: Seen,
    /// Begins every name that is shared with other sequences.
    prefix: String,
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), seen: Seen::default(), prefix: format!("s{seed}") }
    }

    /// The namespaces of this sequence; the second one sorts before the first in some orders.
    pub fn namespaces(&self) -> [String; 2] {
        [self.prefix.clone(), format!("{}-1", self.prefix)]
    }

    /// The calls that every sequence begins with.
    pub fn opening(&self) -> Vec<Call> {
        let create = |name: String| {
            let namespace = json!({ "metadata": { "name": name } });
            Call::new("POST", KINDS[NAMESPACES].collection(""), JSON, namespace)
        };
        self.namespaces().map(create).into()
    }

    pub fn next(&mut self) -> Call {
        let call = match self.random.below(20) {
            0..=5 => self.create(),
            6 => self.get(),
            7..=9 => reading::list(self),
            10 | 11 => self.replace(),
            12..=14 => self.patch(),
            15 => self.report(),
            16 | 17 => self.bind(),
            18 => self.delete(),
            _ => self.odd(),
        };
        let writes = call.method != "GET" && call.subject.is_some();
        if writes && self.random.chance(5) { call.with_query("dryRun=All") } else { call }
    }

    /// Takes note of a reply.
    pub fn learn(&mut self, index: usize, call: &Call, reply: &Reply) {
        if reply.body.pointer("/metadata/resourceVersion").is_some() {
            self.seen.versions.push(index);
        }
        let next = reply.body.pointer("/metadata/continue").and_then(Value::as_str);
        if next.is_some_and(|token| !token.is_empty()) {
            let list = call.path.split('?').next().unwrap_or_default();
            self.seen.pages.push((index, list.to_owned()));
        }
        let Some(subject) = &call.subject else { return };
        // A deletion with a body is none: what its query says does not count.
        let is_dry = call.path.contains("dryRun") && call.method != "DELETE";
        if reply.code >= 300 || is_dry {
            return;
        }
        let shows = reply.body["kind"] == KINDS[subject.kind].name;
        let gone = call.method == "DELETE" && reply.body.pointer("/metadata/finalizers").is_none();
        let known = self.seen.objects.iter_mut().find(|known| known.subject == *subject);
        match known {
            Some(known) => {
                known.is_there = !gone;
                known.is_applied |= call.content_type == APPLY_PATCH;
                if shows {
                    known.reply = index;
                }
            }
            None if shows => {
                self.seen.objects.push(SeenObject {
                    subject: subject.clone(),
                    reply: index,
                    is_there: !gone,
                    is_applied: call.content_type == APPLY_PATCH,
                });
            }
            None => {}
        }
    }

    pub fn kind(&mut self) -> usize {
        if self.random.chance(35) { PODS } else { self.random.below(KINDS.len()) }
    }

    pub fn namespace(&mut self) -> String {
        let [first, second] = self.namespaces();
        if self.random.chance(75) { first } else { second }
    }

    fn anyone(&mut self) -> Subject {
        let kind = self.kind();
        let name = self.random.pick(&NAMES);
        if KINDS[kind].namespaced {
            Subject { kind, namespace: self.namespace(), name: name.to_owned() }
        } else {
            Subject { kind, namespace: String::new(), name: format!("{}-{name}", self.prefix) }
        }
    }

    /// An object that has been seen, mostly one that is still there.
    pub fn someone(&mut self, fits: impl Fn(&Subject) -> bool) -> Option<SeenObject> {
        let any = self.random.chance(10);
        let fitting =
            self.seen.objects.iter().filter(|it| (any || it.is_there) && fits(&it.subject));
        let fitting: Vec<SeenObject> = fitting.cloned().collect();
        if fitting.is_empty() { None } else { Some(self.random.pick(&fitting)) }
    }

    /// A resourceVersion as a word: the right one, an old one, or none.
    fn version_of(&mut self, object: &SeenObject) -> Value {
        match self.random.below(8) {
            0 | 1 => Value::Null,
            2 if !self.seen.versions.is_empty() => {
                let reply = self.random.pick(&self.seen.versions);
                json!(format!("«rv {reply}»"))
            }
            _ => json!(format!("«rv {}»", object.reply)),
        }
    }

    fn labels(&mut self) -> Value {
        let mut labels = json!({});
        for key in ["tier", "zone"] {
            if self.random.coin() {
                labels[key] = json!(letter(&mut self.random));
            }
        }
        labels
    }

    fn new_object(&mut self, subject: &Subject) -> Value {
        let kind = &KINDS[subject.kind];
        let mut object = (kind.make)(&mut self.random);
        object["apiVersion"] = json!(kind.api_version);
        object["kind"] = json!(kind.name);
        object["metadata"] = json!({ "name": subject.name, "labels": self.labels() });
        if self.random.chance(10) && kind.name != "Namespace" {
            object["metadata"]["finalizers"] = json!(["example.com/hold"]);
        }
        let text = object.to_string().replace("«namespace»", &subject.namespace);
        serde_json::from_str(&text).unwrap_or(object)
    }

    fn create(&mut self) -> Call {
        let subject = self.anyone();
        let object = self.new_object(&subject);
        let kind = &KINDS[subject.kind];
        let path = kind.collection(&subject.namespace);
        let known = self.seen.objects.iter().find(|known| known.subject == subject);
        // A second apply removes what it leaves out, and owners are not part of the model.
        let is_there = known.is_some_and(|known| known.is_there);
        match self.random.below(10) {
            0 if !is_there => {
                let path = format!("{path}/{}?fieldManager=compare&force=true", subject.name);
                Call::new("PATCH", path, APPLY_PATCH, object).about(subject)
            }
            1 if kind.name == "Lease" => {
                Call::new("PUT", format!("{path}/{}", subject.name), JSON, object).about(subject)
            }
            _ => Call::new("POST", path, JSON, object).about(subject),
        }
    }

    fn get(&mut self) -> Call {
        let subject = match self.someone(|_| true) {
            Some(known) if self.random.chance(80) => known.subject,
            _ => self.anyone(),
        };
        Call::get(object_path(&subject)).about(subject)
    }

    fn replace(&mut self) -> Call {
        let Some(known) = self.someone(|_| true) else { return self.create() };
        let kind = &KINDS[known.subject.kind];
        let mut change = (kind.change)(&mut self.random);
        let version = self.version_of(&known);
        change["metadata"]["resourceVersion"] = version;
        if self.random.chance(10) {
            change["metadata"]["uid"] =
                json!(format!("«uid {}»", self.random.below(known.reply + 1)));
        }
        if self.random.chance(20) {
            change["metadata"]["finalizers"] = Value::Null;
        }
        if known.is_applied {
            // A `PUT` that changes nothing else may change owners, and so be a write.
            let number = self.random.below(usize::MAX).to_string();
            change["metadata"]["annotations"] = json!({ "example.com/put": number });
        }
        let path = object_path(&known.subject);
        let body = Body::Changed { reply: known.reply, change };
        Call { method: "PUT", path, content_type: JSON, body, subject: Some(known.subject) }
    }

    fn patch(&mut self) -> Call {
        let Some(known) = self.someone(|_| true) else { return self.create() };
        let kind = &KINDS[known.subject.kind];
        let mut change = (kind.change)(&mut self.random);
        if self.random.chance(20) {
            let version = self.version_of(&known);
            change["metadata"]["resourceVersion"] = version;
        }
        if self.random.chance(20) {
            change["metadata"]["finalizers"] = Value::Null;
        }
        let path = object_path(&known.subject);
        let (content_type, body) = match self.random.below(8) {
            0..=2 => (JSON_PATCH, self.json_patch(&known)),
            3 => (STRATEGIC_PATCH, change),
            // Applied to nothing, this makes an object without a spec, and whether that is valid is
            // not modelled.
            4 if known.is_there => return self.apply(kind, &known),
            _ => (MERGE_PATCH, change),
        };
        Call::new("PATCH", path, content_type, body).about(known.subject)
    }

    /// Always the same fields: an apply that leaves out earlier fields removes them, and owners are not
    /// part of the model.
    fn apply(&mut self, kind: &Kind, known: &SeenObject) -> Call {
        let body = json!({
            "apiVersion": kind.api_version, "kind": kind.name,
            "metadata": {
                "name": known.subject.name,
                "annotations": { "example.com/applied": letter(&mut self.random) },
            },
        });
        let path = format!("{}?fieldManager=other&force=true", object_path(&known.subject));
        Call::new("PATCH", path, APPLY_PATCH, body).about(known.subject.clone())
    }

    fn json_patch(&mut self, known: &SeenObject) -> Value {
        let random = &mut self.random;
        let value = letter(random);
        let own = json!(format!("«rv {}»", known.reply));
        let operations = [
            json!({ "op": "add", "path": "/metadata/labels", "value": { "tier": value } }),
            json!({ "op": "add", "path": "/metadata/labels/tier", "value": value }),
            json!({ "op": "replace", "path": "/metadata/labels/zone", "value": value }),
            json!({ "op": "remove", "path": "/metadata/labels/tier" }),
            json!({ "op": "test", "path": "/metadata/labels/tier", "value": value }),
            json!({ "op": "test", "path": "/metadata/resourceVersion", "value": own }),
            json!({ "op": "copy", "from": "/metadata/name", "path": "/metadata/labels/name" }),
            json!({ "op": "move", "from": "/metadata/labels/tier", "path": "/metadata/labels/moved" }),
            json!({ "op": "add", "path": "/metadata/finalizers/-", "value": "example.com/more" }),
            json!({ "op": "remove", "path": "/metadata/finalizers/0" }),
            json!({ "op": "remove", "path": "/metadata/finalizers" }),
            json!({ "op": "replace", "path": "/metadata/name", "value": value }),
            json!({ "op": "add", "path": "/nowhere/at/all", "value": value }),
        ];
        Value::Array(random.list(1, 3, |random| random.pick(&operations)))
    }

    fn report(&mut self) -> Call {
        let has_status = |subject: &Subject| KINDS[subject.kind].has_status;
        let Some(known) = self.someone(has_status) else { return self.create() };
        let kind = &KINDS[known.subject.kind];
        let mut report = (kind.report)(&mut self.random);
        let path = format!("{}/status", object_path(&known.subject));
        let content_type = match self.random.below(3) {
            0 => {
                let version = self.version_of(&known);
                report["metadata"]["resourceVersion"] = version;
                let body = Body::Changed { reply: known.reply, change: report };
                let subject = Some(known.subject);
                return Call { method: "PUT", path, content_type: JSON, body, subject };
            }
            1 if !kind.is_custom() => STRATEGIC_PATCH,
            _ => MERGE_PATCH,
        };
        Call::new("PATCH", path, content_type, report).about(known.subject)
    }

    fn bind(&mut self) -> Call {
        let Some(known) = self.someone(|subject| subject.kind == PODS) else {
            return self.create();
        };
        let subject = known.subject.clone();
        let mut binding = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": { "name": subject.name, "annotations": { "corridoros.io/grant": "{}" } },
            "target": { "kind": "Node", "name": format!("{}-{}", self.prefix, self.random.pick(&NAMES)) },
        });
        if self.random.coin() {
            let version = self.version_of(&known);
            binding["metadata"]["resourceVersion"] = version;
        }
        if self.random.coin() {
            binding["metadata"]["uid"] = json!(format!("«uid {}»", known.reply));
        }
        if self.random.chance(5) {
            binding["target"] =
                self.random.pick(&[json!({}), json!({ "kind": "Pod", "name": "x" })]);
        }
        Call::new("POST", format!("{}/binding", object_path(&subject)), JSON, binding)
    }

    fn delete(&mut self) -> Call {
        // Deleting a namespace waits for a controller that the real server does not have.
        let Some(known) = self.someone(|subject| subject.kind != NAMESPACES) else {
            return self.create();
        };
        let mut preconditions = json!({});
        if self.random.chance(30) {
            let version = self.version_of(&known);
            preconditions["resourceVersion"] = version;
        }
        if self.random.chance(30) {
            let reply = if self.random.chance(70) {
                known.reply
            } else {
                self.random.below(known.reply + 1)
            };
            preconditions["uid"] = json!(format!("«uid {reply}»"));
        }
        // At once: there is no kubelet that would end a Pod's time of grace.
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
            "preconditions": preconditions,
        });
        Call::new("DELETE", object_path(&known.subject), JSON, options).about(known.subject)
    }

    /// Calls that no client should make.
    fn odd(&mut self) -> Call {
        let subject = self.anyone();
        let kind = &KINDS[subject.kind];
        let (collection, path) = (kind.collection(&subject.namespace), object_path(&subject));
        let mut object = self.new_object(&subject);
        match self.random.below(9) {
            0 => Call::get(format!("{path}/nothing")),
            1 => Call::new("POST", path, JSON, object),
            2 => Call::new("PUT", collection, JSON, object),
            3 => Call::new("PATCH", path, "text/plain", json!({})),
            4 => {
                object["metadata"]["name"] = json!(self.random.pick(&["Not_A_Name", ""]));
                Call::new("POST", collection, JSON, object)
            }
            5 => {
                object["metadata"]["namespace"] = json!("another");
                Call::new("POST", collection, JSON, object)
            }
            6 => {
                object["metadata"]["resourceVersion"] = json!("1");
                Call::new("POST", collection, JSON, object)
            }
            7 => Call::new("PATCH", path, JSON_PATCH, json!({ "op": "add" })),
            _ => {
                let body = Body::Text(self.random.pick(&["{", "[]", "5"]).to_owned());
                Call { method: "POST", path: collection, content_type: JSON, body, subject: None }
            }
        }
    }
}

pub fn object_path(subject: &Subject) -> String {
    format!("{}/{}", KINDS[subject.kind].collection(&subject.namespace), subject.name)
}

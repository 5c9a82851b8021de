//! The verbs that change something.

use axum::body::{Body, Bytes};
use axum::response::Response;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::catalog::{ResourceType, Rules};
use crate::events;
use crate::json::{list, metadata, text};
use crate::json_patch;
use crate::objects;
use crate::pages::Page;
use crate::patch::{Patch, PatchKind};
use crate::pod;
use crate::protobuf;
use crate::refusal::{Refusal, json_response, raw_json_response};
use crate::render::Renderer;
use crate::request::{self, Form, Options, Target};
use crate::selector::Filter;
use crate::server::Server;
use crate::store::{Action, Next, Store, Written};
use crate::stored::{Key, Stored};

/// Objects removed by one request before others get a turn.
const DELETIONS_AT_ONCE: usize = 100;

/// One writing request.
pub(crate) struct Write<'a> {
    pub server: &'a Server,
    pub target: Target<'a>,
    pub options: Options,
    pub form: Form,
    pub content_type: &'a str,
    pub body: &'a Bytes,
}

impl Write<'_> {
    pub async fn answer(&self, method: &Method) -> Result<Response, Refusal> {
        match method.as_str() {
            "POST" if self.target.subresource == "binding" => self.bind(),
            "POST" => self.create(self.object()?, "create"),
            "PUT" => self.replace(),
            "PATCH" => self.patch(),
            _ if self.target.name.is_some() => self.delete().await,
            _ => self.delete_collection().await,
        }
    }

    fn key(&self) -> Key {
        let name = self.target.name.as_deref().unwrap_or_default();
        Key::new(self.target.namespace_key(), name)
    }

    fn action(&self, verb: &'static str) -> Action {
        let subresource = if self.target.subresource == "status" { "status" } else { "" };
        Action { verb, subresource, dry_run: self.options.dry_run }
    }

    /// The body as an object.
    fn object(&self) -> Result<Value, Refusal> {
        match self.content_type {
            "" | "application/json" | "application/yaml" | "*/*" => self.parsed_body(),
            "application/vnd.kubernetes.protobuf" => protobuf::to_json(self.body).map_err(|err| {
                let why = format!("this protobuf message cannot be read ({err}): send JSON");
                Refusal::unsupported_media_type(why)
            }),
            other => {
                let why = format!("the body of the request was in an unknown format: {other}");
                Err(Refusal::unsupported_media_type(why))
            }
        }
    }

    fn parsed_body(&self) -> Result<Value, Refusal> {
        let kind = &self.target.ty.kind;
        let bad = |err: &dyn std::fmt::Display| {
            let why =
                format!("the object provided is unrecognized (must be of type {kind}): {err}");
            Refusal::bad_request(why)
        };
        let value: Value = if self.content_type.ends_with("yaml") {
            let text = std::str::from_utf8(self.body).map_err(|err| bad(&err))?;
            serde_saphyr::from_str(text).map_err(|err| bad(&err))?
        } else {
            serde_json::from_slice(self.body).map_err(|err| bad(&err))?
        };
        if value.is_object() { Ok(value) } else { Err(bad(&"not an object")) }
    }

    fn show(&self, code: StatusCode, object: &Stored) -> Result<Response, Refusal> {
        let form = if self.form == Form::Table { Form::Object } else { self.form };
        let renderer = Renderer::new(self.target.ty, form, "");
        Ok(raw_json_response(code, Body::from(renderer.object(object)?)))
    }

    fn show_written(&self, written: &Written) -> Result<Response, Refusal> {
        self.show(StatusCode::OK, written.last.as_ref().unwrap_or(&written.object))
    }

    fn create(&self, object: Value, verb: &'static str) -> Result<Response, Refusal> {
        let Server { catalog, store, .. } = self.server;
        if self.target.ty.namespaced && self.target.namespace.is_none() {
            let why = "an object of this type is created in a namespace, so the path must name one";
            return Err(Refusal::method_not_allowed(why));
        }
        let (key, object) = objects::prepare_new(catalog, store, &self.target, object)?;
        let created = store.create(self.target.ty, &key, object, self.action(verb))?;
        self.show(StatusCode::CREATED, &created)
    }

    fn replace(&self) -> Result<Response, Refusal> {
        let ty = self.target.ty;
        let object = self.object()?;
        if ty.is_created_by_put() && self.server.store.get(ty, &self.key()).is_err() {
            return self.create_by_put(object);
        }
        let written = self
            .update("update", |old| objects::prepare_update(&self.target, old, object.clone()))?;
        self.show_written(&written)
    }

    /// Like the real server, this does not mind a resourceVersion, but a uid.
    fn create_by_put(&self, mut object: Value) -> Result<Response, Refusal> {
        let (ty, name) = (self.target.ty, self.key().name);
        metadata(&mut object).remove("resourceVersion");
        objects::check_identity(ty, &self.key(), &json!({}), &object)?;
        metadata(&mut object).insert("name".to_owned(), json!(name));
        self.create(object, "update")
    }

    fn patch(&self) -> Result<Response, Refusal> {
        let ty = self.target.ty;
        let kind = PatchKind::from_content_type(self.content_type, ty)?;
        if kind == PatchKind::Json {
            // Whether there is anything to patch is looked at first.
            self.server.store.get(ty, &self.key())?;
            return self.carry_out(kind, &Patch::Json(json_patch::parse(self.body)?));
        }
        let mut patch = self.parsed_body().map_err(|err| err.in_context("error decoding patch"))?;
        if kind == PatchKind::Apply {
            if self.options.field_manager.is_empty() {
                let why = "fieldManager: Required value: is required for apply patch";
                return Err(Refusal::invalid_option(why));
            }
            if text(&patch, "/kind").is_empty() || text(&patch, "/apiVersion").is_empty() {
                let why = "an applied object has to say its apiVersion and kind";
                return Err(Refusal::bad_request(why));
            }
            objects::check_form(ty, &mut patch)?;
            let exists = self.server.store.get(ty, &self.key()).is_ok();
            if !exists && self.target.subresource.is_empty() {
                let name = self.target.name.clone();
                metadata(&mut patch).insert("name".to_owned(), json!(name));
                return self.create(patch, "apply");
            }
        }
        let patch = match kind {
            PatchKind::Merge => Patch::Merge(patch),
            _ => Patch::Keyed(patch),
        };
        self.carry_out(kind, &patch)
    }

    fn carry_out(&self, kind: PatchKind, patch: &Patch) -> Result<Response, Refusal> {
        let ty = self.target.ty;
        let written = self.update(kind.verb(), |old| {
            let mut shown = old.clone();
            events::to_shown(ty, &mut shown);
            let new = patch.applied_to(ty, &shown)?;
            let uid = text(&new, "/metadata/uid");
            if uid != text(old, "/metadata/uid") {
                let why = format!("Invalid value: \"{uid}\": field is immutable");
                return Err(Refusal::invalid(ty, &self.key().name, "metadata.uid", &why));
            }
            objects::prepare_update(&self.target, old, new)
        })?;
        self.show_written(&written)
    }

    /// Changes the object, and lets its namespace go if that was waiting for it.
    fn update(
        &self,
        verb: &'static str,
        change: impl FnMut(&Value) -> Result<Next, Refusal>,
    ) -> Result<Written, Refusal> {
        let store = &self.server.store;
        let written = store.update(self.target.ty, &self.key(), self.action(verb), change)?;
        if written.removed && !self.options.dry_run {
            store.sweep_namespace(self.target.namespace_key());
        }
        if self.target.ty.rules == Rules::Namespace {
            store.sweep_namespace(&self.key().name);
        }
        Ok(written)
    }

    fn bind(&self) -> Result<Response, Refusal> {
        let Server { catalog, store, .. } = self.server;
        let binding = self.object()?;
        let name = text(&binding, "/metadata/name");
        if self.target.name.as_ref().is_some_and(|in_path| in_path != name) {
            return Err(Refusal::bad_request("name in URL does not match name in Binding object"));
        }
        let (kind, node) = (text(&binding, "/target/kind"), text(&binding, "/target/name"));
        if !["", "Node"].contains(&kind) {
            let why = format!(
                "target.kind: Unsupported value: \"{kind}\": supported values: \"Node\", \"<empty>\""
            );
            return Err(Refusal::internal(why));
        }
        if node.is_empty() {
            return Err(Refusal::internal("target.name: Required value"));
        }
        objects::check_metadata(&binding)
            .map_err(|err| Refusal::bad_request(format!("Binding cannot be read: {err}")))?;
        let topology = pod::topology_labels(catalog, store, node);
        let key = Key::new(self.target.namespace_key(), name);
        store.check_namespace_open(self.target.ty, &key)?;
        let action =
            Action { verb: "create", subresource: "binding", dry_run: self.options.dry_run };
        store.update(self.target.ty, &key, action, |old| {
            pod::bind(self.target.ty, old, &binding, &topology).map(Next::Put)
        })?;
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
        });
        Ok(json_response(StatusCode::CREATED, &status))
    }

    async fn delete(&self) -> Result<Response, Refusal> {
        let ty = self.target.ty;
        let wishes = self.delete_options()?;
        let name = self.key().name;
        let dry_run = self.dry_run(&wishes)?;
        let action = Action { dry_run, ..self.action("delete") };
        let store = &self.server.store;
        if ty.rules == Rules::Namespace && PERMANENT_NAMESPACES.contains(&name.as_str()) {
            return Err(Refusal::forbidden(ty, &name, "this namespace may not be deleted"));
        }
        let written = store.update(ty, &self.key(), action, |old| {
            for (what, pointer, hint) in PRECONDITIONS {
                let asked = text(&wishes, &format!("/preconditions/{pointer}"));
                let is = text(old, &format!("/metadata/{pointer}"));
                if !asked.is_empty() && asked != is {
                    let why = format!(
                        "the {what} in the precondition ({asked}) does not match the {what} in \
                         record ({is}). The object might have been {hint}"
                    );
                    return Err(Refusal::conflict(&ty.qualified_kind(), &name, why));
                }
            }
            Ok(objects::prepare_delete(ty, old))
        })?;
        let written = end_of_grace(store, ty, written, action);
        if !dry_run {
            self.finish_deletion(&name, &written).await;
        }
        // What is still there is shown, and so is the last state of some types; the rest is confirmed.
        if ty.shows_the_deleted() || !written.removed {
            return self.show(StatusCode::OK, &written.object);
        }
        let mut details = ty.details(&name);
        details["uid"] = json!(written.object.uid);
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": details,
        });
        Ok(json_response(StatusCode::OK, &status))
    }

    /// A namespace takes everything in it along, as the real namespace controller does. Objects
    /// with an owner do not follow it: garbage collection is not modelled.
    async fn finish_deletion(&self, name: &str, written: &Written) {
        let Server { catalog, store, .. } = self.server;
        if self.target.ty.rules == Rules::Namespace {
            for ty in catalog.types.iter().filter(|ty| ty.namespaced) {
                for (count, object) in store.list(ty, Some(name)).0.into_iter().enumerate() {
                    let action = Action::new("delete", false);
                    // Another request may have removed it meanwhile.
                    let _ = remove(store, ty, &object.key, action);
                    yield_at_times(count).await;
                }
            }
            store.sweep_namespace(name);
        } else if written.removed {
            store.sweep_namespace(self.target.namespace_key());
        }
    }

    async fn delete_collection(&self) -> Result<Response, Refusal> {
        let (ty, store) = (self.target.ty, &self.server.store);
        if ty.namespaced && self.target.namespace.is_none() {
            let why = "a collection is deleted in one namespace, so the path must name one";
            return Err(Refusal::method_not_allowed(why));
        }
        if ty.rules == Rules::Namespace {
            return Err(Refusal::method_not_allowed("namespaces are deleted one by one"));
        }
        let wishes = self.delete_options()?;
        let dry_run = self.dry_run(&wishes)?;
        let (labels, fields) = (&self.options.label_selector, &self.options.field_selector);
        let filter = Filter::parse(ty, self.target.namespace.as_deref(), labels, fields)?;
        let (objects, revision) = store.list(ty, filter.namespace.as_deref());
        let mut deleted = Vec::new();
        for (count, object) in objects.iter().filter(|object| filter.matches(object)).enumerate() {
            let action = Action::new("delete", dry_run);
            let written = remove(store, ty, &object.key, action);
            deleted.extend(written.map(|written| written.object));
            yield_at_times(count).await;
        }
        store.sweep_namespace(self.target.namespace_key());
        let renderer = Renderer::new(ty, Form::Object, "");
        let page = Page { objects: deleted, revision, ..Page::default() };
        let body = renderer.list(&page)?;
        Ok(raw_json_response(StatusCode::OK, Body::from(body)))
    }

    fn delete_options(&self) -> Result<Value, Refusal> {
        if self.body.is_empty() { Ok(json!({})) } else { self.object() }
    }

    /// Like the real server, this looks at the query only if there is no body.
    fn dry_run(&self, wishes: &Value) -> Result<bool, Refusal> {
        let mut dry_run = self.options.dry_run && self.body.is_empty();
        for value in list(wishes, "/dryRun") {
            dry_run |= request::dry_run(value.as_str().unwrap_or_default())?;
        }
        Ok(dry_run)
    }
}

/// Deletes an object, whichever it is by now.
fn remove(store: &Store, ty: &ResourceType, key: &Key, action: Action) -> Result<Written, Refusal> {
    let written = store.update(ty, key, action, |old| Ok(objects::prepare_delete(ty, old)))?;
    Ok(end_of_grace(store, ty, written, action))
}

/// A Pod is marked first, and then goes at once, because no kubelet is there to end its time of grace.
fn end_of_grace(store: &Store, ty: &ResourceType, marked: Written, action: Action) -> Written {
    if ty.rules != Rules::Pod || marked.removed {
        return marked;
    }
    let key = &marked.object.key;
    let gone = store.update(ty, key, action, |old| Ok(objects::prepare_delete(ty, old)));
    // Another request may have removed it meanwhile.
    gone.unwrap_or(marked)
}

/// As in the real server.
const PERMANENT_NAMESPACES: [&str; 3] = ["default", "kube-public", "kube-system"];

/// Name, field, and what may explain a difference.
const PRECONDITIONS: [(&str, &str, &str); 2] = [
    ("UID", "uid", "deleted and then recreated"),
    ("ResourceVersion", "resourceVersion", "modified"),
];

async fn yield_at_times(count: usize) {
    if count % DELETIONS_AT_ONCE == DELETIONS_AT_ONCE - 1 {
        tokio::task::yield_now().await;
    }
}

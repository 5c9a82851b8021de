//! From an HTTP request to its answer: which verb is meant, and what reading verbs say.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use futures::stream;
use http::request::Parts;
use http::{Method, StatusCode};
use tokio::sync::{Semaphore, watch};

use crate::catalog::{Catalog, Rules};
use crate::discovery;
use crate::faults::{self, Described, Fault, Faults, Verb};
use crate::pages;
use crate::refusal::{Refusal, raw_json_response};
use crate::render::Renderer;
use crate::request::{self, Form, Options, Target};
use crate::selector::Filter;
use crate::store::Store;
use crate::stored::Key;
use crate::{watch as watching, write};

/// As in the real server.
const BODY_BYTES_MAX: usize = 3 << 20;
/// A scheduler and its controllers hold about ten; the rest is for tests that leak them.
const WATCHES_MAX: usize = 1_000;

#[derive(Debug)]
pub(crate) struct Server {
    pub catalog: Arc<Catalog>,
    pub store: Arc<Store>,
    stopping: watch::Receiver<bool>,
    watches: Arc<Semaphore>,
    faults: Arc<Faults>,
}

impl Server {
    pub fn new(
        catalog: Arc<Catalog>,
        store: Arc<Store>,
        faults: Arc<Faults>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Self { catalog, store, stopping, watches: Arc::new(Semaphore::new(WATCHES_MAX)), faults }
    }

    /// The answer to a read: a list, a watch or one object.
    fn read(&self, target: &Target, options: &Options, form: Form) -> Result<Response, Refusal> {
        options.check_for_reading()?;
        let renderer = Renderer::new(target.ty, form, &options.include_object);
        let labels = &options.label_selector;
        let filter =
            Filter::parse(target.ty, target.namespace.as_deref(), labels, &options.field_selector)?;
        match &target.name {
            Some(name) if options.watch => {
                self.watch(target, options, renderer, filter.with_name(name))
            }
            None if options.watch => self.watch(target, options, renderer, filter),
            Some(name) => {
                let object = self.store.get(target.ty, &Key::new(target.namespace_key(), name))?;
                Ok(raw_json_response(StatusCode::OK, Body::from(renderer.object(&object)?)))
            }
            None => self.list(target, options, &renderer, &filter),
        }
    }

    fn list(
        &self,
        target: &Target,
        options: &Options,
        renderer: &Renderer,
        filter: &Filter,
    ) -> Result<Response, Refusal> {
        let page = pages::page(&self.store, target.ty, filter, options)?;
        let body = renderer.list(&page)?;
        Ok(raw_json_response(StatusCode::OK, Body::from(body)))
    }

    fn watch(
        &self,
        target: &Target,
        options: &Options,
        renderer: Renderer,
        filter: Filter,
    ) -> Result<Response, Refusal> {
        let permit = self.watches.clone().try_acquire_owned().map_err(|_| {
            Refusal::too_many_requests(format!("there are {WATCHES_MAX} watches already"))
        })?;
        let attended = self.faults.attend(Described::new(Verb::Watch, target));
        let terms = watching::Terms { stopping: self.stopping.clone(), attended, _permit: permit };
        watching::respond(&self.store, target.ty, renderer, filter, options, terms)
    }

    async fn answer(&self, parts: &Parts, body: &Bytes) -> Result<Response, Refusal> {
        let segments = request::segments(parts.uri.path())?;
        if let Some(response) = discovery::respond(&self.catalog, &segments, &parts.method) {
            return response;
        }
        let Some(target) = request::target(&self.catalog, &segments) else {
            return Err(Refusal::no_such_path());
        };
        check_served(&target, &parts.method)?;
        let options = Options::parse(&parts.uri)?;
        let described = Described::new(verb(&parts.method, &target, &options), &target);
        let fault = self.faults.take(&described);
        match fault {
            Some(Fault::Refuse(code)) => return Err(Refusal::on_purpose(code)),
            Some(Fault::Delay(time)) => tokio::time::sleep(time).await,
            Some(Fault::LoseReply) | None => {}
        }
        let form = Form::from_accept(&parts.headers);
        let answer = if parts.method == Method::GET {
            self.read(&target, &options, form)
        } else {
            let content_type = request::content_type(&parts.headers);
            let write = write::Write { server: self, target, options, form, content_type, body };
            write.answer(&parts.method).await
        };
        if fault == Some(Fault::LoseReply) {
            let nothing = stream::once(async { Err::<Bytes, _>(faults::broken_off()) });
            return Ok(Response::new(Body::from_stream(nothing)));
        }
        answer
    }
}

/// Every request ends here.
pub(crate) async fn handle(State(server): State<Arc<Server>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let answer = match axum::body::to_bytes(body, BODY_BYTES_MAX).await {
        Ok(body) => server.answer(&parts, &body).await,
        Err(_) => Err(Refusal::too_large(BODY_BYTES_MAX)),
    };
    answer.unwrap_or_else(|refusal| {
        tracing::debug!(method = %parts.method, uri = %parts.uri, status = %refusal.status(), "refused");
        refusal.into_response()
    })
}

fn verb(method: &Method, target: &Target, options: &Options) -> Verb {
    match (method.as_str(), target.name.is_some()) {
        ("GET", _) if options.watch => Verb::Watch,
        ("GET", true) => Verb::Get,
        ("GET", false) => Verb::List,
        ("POST", _) => Verb::Create,
        ("PUT", _) => Verb::Update,
        ("PATCH", _) => Verb::Patch,
        (_, true) => Verb::Delete,
        (_, false) => Verb::DeleteCollection,
    }
}

/// Whether the path and method mean something that the model does.
fn check_served(target: &Target, method: &Method) -> Result<(), Refusal> {
    let ty = target.ty;
    let named = target.name.is_some();
    match target.subresource.as_str() {
        "" if ty.rules == Rules::Definition && method != Method::GET => {
            let why = "CustomResourceDefinitions are given when this in-memory server starts; \
                       they can only be read";
            Err(Refusal::method_not_allowed(why))
        }
        "" => match (method.as_str(), named) {
            ("GET" | "DELETE", _) | ("POST", false) | ("PUT" | "PATCH", true) => Ok(()),
            // So does the real server, for whatever reason.
            ("POST", true) if ty.custom.is_some() => Ok(()),
            ("PUT" | "PATCH", false) if ty.custom.is_some() => {
                Err(Refusal::bad_request("name must be provided"))
            }
            _ => Err(wrong_method()),
        },
        "status" if ty.has_status => match method.as_str() {
            "GET" | "PUT" | "PATCH" if ty.rules != Rules::Definition => Ok(()),
            "GET" => Ok(()),
            _ => Err(wrong_method()),
        },
        "binding" if ty.rules == Rules::Pod && method == Method::POST => Ok(()),
        "binding" if ty.rules == Rules::Pod => Err(wrong_method()),
        "attach"
        | "ephemeralcontainers"
        | "eviction"
        | "exec"
        | "finalize"
        | "log"
        | "portforward"
        | "proxy"
        | "resize"
        | "token" => Err(Refusal::not_modelled(&format!("{}/{}", ty.plural, target.subresource))),
        _ => match &target.name {
            Some(name) if ty.custom.is_some() => Err(Refusal::not_found(ty, name)),
            _ => Err(Refusal::no_such_path()),
        },
    }
}

fn wrong_method() -> Refusal {
    Refusal::method_not_allowed("the server does not allow this method on the requested resource")
}

//! What clients ask before they ask for objects: versions, groups, resources, OpenAPI, health.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, Method, StatusCode, header};
use serde_json::{Map, Value, json};

use crate::catalog::{Catalog, ResourceType, Rules};
use crate::refusal::{Refusal, json_response};

/// The answer, if the path is about the server rather than about objects.
pub(crate) fn respond(
    catalog: &Catalog,
    segments: &[String],
    method: &Method,
) -> Option<Result<Response, Refusal>> {
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let document = match parts.as_slice() {
        [] => Some(root(catalog)),
        ["healthz" | "livez" | "readyz", ..] => return Some(Ok(plain("ok"))),
        ["version"] => Some(version()),
        ["api"] => Some(json!({
            "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [],
        })),
        ["apis"] => Some(group_list(catalog)),
        ["apis", group] => group_document(catalog, group),
        ["api", version] => resource_list(catalog, "", version),
        ["apis", group, version] => resource_list(catalog, group, version),
        ["openapi", "v3"] => Some(openapi_index(catalog)),
        ["openapi", "v3", "api", version] => openapi(catalog, "", version),
        ["openapi", "v3", "apis", group, version] => openapi(catalog, group, version),
        ["openapi", ..] => None,
        _ => return None,
    };
    Some(match document {
        _ if method != Method::GET => {
            Err(Refusal::method_not_allowed("this can only be read, with GET"))
        }
        Some(document) => Ok(json_response(StatusCode::OK, &document)),
        None => Err(Refusal::no_such_path()),
    })
}

fn plain(text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": "v1.36.0+corridor.sim",
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none", "compiler": "rustc", "platform": "in-memory",
    })
}

fn root(catalog: &Catalog) -> Value {
    let mut paths = vec!["/api".to_owned(), "/apis".to_owned()];
    paths.extend(catalog.group_versions().iter().map(|(group, version)| path(group, version)));
    let others = ["/healthz", "/livez", "/openapi/v3", "/readyz", "/version"];
    paths.extend(others.map(ToOwned::to_owned));
    json!({ "paths": paths })
}

fn path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

fn group_list(catalog: &Catalog) -> Value {
    let named = catalog.group_versions().into_iter().filter(|(group, _)| !group.is_empty());
    let groups: Vec<Value> = named.map(|(group, version)| group_entry(group, version)).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

fn group_entry(group: &str, version: &str) -> Value {
    let version = json!({ "groupVersion": format!("{group}/{version}"), "version": version });
    json!({ "name": group, "versions": [version], "preferredVersion": version })
}

fn group_document(catalog: &Catalog, group: &str) -> Option<Value> {
    let found = catalog.group_versions().into_iter().find(|(name, _)| *name == group)?;
    let mut document = group_entry(found.0, found.1);
    document["kind"] = json!("APIGroup");
    document["apiVersion"] = json!("v1");
    Some(document)
}

fn types<'a>(
    catalog: &'a Catalog,
    group: &'a str,
    version: &'a str,
) -> impl Iterator<Item = &'a ResourceType> {
    let types = catalog.types.iter().map(AsRef::as_ref);
    types.filter(move |ty: &&ResourceType| ty.group == group && ty.version == version)
}

fn resource_list(catalog: &Catalog, group: &str, version: &str) -> Option<Value> {
    let resources: Vec<Value> = types(catalog, group, version).flat_map(resources).collect();
    let group_version = path(group, version).trim_start_matches("/apis/").to_owned();
    let group_version = group_version.trim_start_matches("/api/");
    (!resources.is_empty()).then(|| {
        json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version,
            "resources": resources,
        })
    })
}

/// A type and its subresources.
fn resources(ty: &ResourceType) -> Vec<Value> {
    let mut resources = vec![json!({
        "name": ty.plural, "singularName": ty.singular, "namespaced": ty.namespaced,
        "kind": ty.kind, "verbs": ty.verbs(), "shortNames": ty.short_names,
        "categories": ty.categories,
    })];
    let mut subresource = |name: &str, kind: &str, verbs: &[&str]| {
        resources.push(json!({
            "name": format!("{}/{name}", ty.plural), "singularName": "",
            "namespaced": ty.namespaced, "kind": kind, "verbs": verbs,
        }));
    };
    if ty.has_status {
        subresource("status", &ty.kind, &["get", "patch", "update"]);
    }
    if ty.rules == Rules::Pod {
        subresource("binding", "Binding", &["create"]);
        resources.push(json!({
            "name": "bindings", "singularName": "binding", "namespaced": true, "kind": "Binding",
            "verbs": ["create"],
        }));
    }
    resources
}

fn openapi_index(catalog: &Catalog) -> Value {
    let entries = catalog.group_versions().into_iter().map(|(group, version)| {
        let path = path(group, version);
        let url = format!("/openapi/v3{path}?hash=0");
        (path.trim_start_matches('/').to_owned(), json!({ "serverRelativeURL": url }))
    });
    json!({ "paths": entries.collect::<Map<_, _>>() })
}

/// The least that kubectl needs: that every type takes a patch with `fieldValidation`, so that it
/// leaves validation to the server; and the schemas of custom types, for `kubectl explain`.
fn openapi(catalog: &Catalog, group: &str, version: &str) -> Option<Value> {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for ty in types(catalog, group, version) {
        let kind = json!({ "group": group, "version": version, "kind": ty.kind });
        let scope = if ty.namespaced { "/namespaces/{namespace}" } else { "" };
        let place = format!("{}{scope}/{}/{{name}}", path(group, version), ty.plural);
        paths.insert(place, patch_operation(&kind));
        if ty.rules == Rules::Pod {
            // There is no patch of a Binding, but kubectl decides by it how to validate one.
            let kind = json!({ "group": group, "version": version, "kind": "Binding" });
            let place = "/api/v1/namespaces/{namespace}/bindings".to_owned();
            paths.insert(place, patch_operation(&kind));
        }
        if let Some(custom) = &ty.custom {
            let mut schema = custom.schema.clone();
            if let Value::Object(schema) = &mut schema {
                schema.insert("x-kubernetes-group-version-kind".to_owned(), json!([kind]));
            }
            schemas.insert(format!("{group}.{version}.{}", ty.kind), schema);
        }
    }
    (!paths.is_empty()).then(|| {
        json!({
            "openapi": "3.0.0",
            "info": { "title": "Kubernetes, modelled in memory", "version": "v1.36.0" },
            "paths": paths,
            "components": { "schemas": schemas },
        })
    })
}

fn patch_operation(kind: &Value) -> Value {
    let query = |name: &str| json!({ "name": name, "in": "query", "schema": { "type": "string" } });
    json!({ "patch": {
        "parameters": [query("dryRun"), query("fieldManager"), query("fieldValidation")],
        "responses": { "200": { "description": "OK" } },
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": kind,
    }})
}

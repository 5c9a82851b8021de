//! What counts as an awaited step, and whose it is.

use std::collections::BTreeMap;
use std::fmt;

use crate::proxy::{Call, Server};

/// One awaited step of a story: the n-th call of its kind, counted from 1. The kinds of one story are
/// made by several tasks at once, so that a number in one common order would not name the same call
/// twice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    pub what: String,
    pub nth: usize,
}

/// Where in a step the process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// The call never reaches the server.
    Before,
    /// The server carries the call out, its answer never arrives.
    ReplyLost,
    /// The answer is delivered, no later call is let through.
    After,
}

pub const MODES: [Mode; 3] = [Mode::Before, Mode::ReplyLost, Mode::After];

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CrashPoint {
    pub step: Step,
    pub mode: Mode,
}

/// Whose step a call is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// Of the story in this namespace; the name of the object if a daemon is asked about it.
    Story(String, Option<String>),
    /// Of no story in particular: a list of a whole kind, the devices.
    Everybody,
    /// Of an object that is not known yet.
    NotKnownYet,
}

/// An object that daemons know by its UID.
#[derive(Debug, Clone)]
pub struct Known {
    pub namespace: String,
    pub name: String,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} #{}", self.what, self.nth)
    }
}

impl fmt::Display for CrashPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.mode {
            Mode::Before => "before",
            Mode::ReplyLost => "reply lost of",
            Mode::After => "after",
        };
        write!(f, "{mode} {}", self.step)
    }
}

/// Leases, Events and questions about health are beside the story. (Watches and long polls are never
/// brought before a gate.)
pub fn is_step(call: &Call) -> bool {
    let path = call.path();
    let is_beside = path.contains("/leases") || path.contains("/events");
    !(call.server == Server::ApiServer && (is_beside || !path.contains('/')))
        && !matches!(path, "/readyz" | "/livez" | "/healthz" | "/version")
}

/// Whose step it is. `stories`: namespaces; `objects`: by UID and by the ids that daemons gave.
pub fn whose(
    call: &Call,
    is_story: impl Fn(&str) -> bool,
    objects: &BTreeMap<String, Known>,
) -> Whose {
    match call.server {
        Server::ApiServer => match namespaced(call.path()) {
            Some((namespace, _)) if is_story(namespace) => Whose::Story(namespace.to_owned(), None),
            _ => Whose::Everybody,
        },
        Server::Daemons if is_about_all(call) => Whose::Everybody,
        Server::Daemons => {
            let text = everything_said(call);
            let known = objects.iter().find(|(id, _)| text.contains(id.as_str()));
            known.map_or(Whose::NotKnownYet, |(_, known)| {
                Whose::Story(known.namespace.clone(), Some(known.name.clone()))
            })
        }
    }
}

/// The kind of the step: the same in every story.
pub fn what(call: &Call, object: Option<&str>) -> String {
    let method = &call.method;
    match call.server {
        Server::ApiServer => {
            let route = namespaced(call.path()).map_or(call.path(), |(_, rest)| rest);
            let manager = call.query().split('&').find_map(|it| it.strip_prefix("fieldManager="));
            let by = manager.map(|manager| format!(" by {manager}")).unwrap_or_default();
            format!("{method} {route}{by}")
        }
        Server::Daemons => {
            let of = object.map(|name| format!(" of {name}")).unwrap_or_default();
            format!("{method} {}{of}", daemon_route(call))
        }
    }
}

/// The namespace, and the path within it. A Namespace itself is not in one.
fn namespaced(path: &str) -> Option<(&str, &str)> {
    path.split_once("/namespaces/").and_then(|(_, rest)| rest.split_once('/'))
}

/// `/v1/corridors/{id}/lease` and the like, without the id.
fn daemon_route(call: &Call) -> String {
    let segments: Vec<&str> = call.path().trim_matches('/').split('/').collect();
    match segments.as_slice() {
        [_, "corridors" | "ffm", id, ..] if *id != "alloc" => {
            let mut segments = segments.clone();
            segments[2] = "{id}";
            format!("/{}", segments.join("/"))
        }
        _ => call.path().to_owned(),
    }
}

/// The inventory, and lists of all that a cluster owns.
fn is_about_all(call: &Call) -> bool {
    let prefix = call.query().split('&').find_map(|it| it.strip_prefix("owner_prefix="));
    let is_whole_cluster =
        |prefix: &str| prefix.trim_end_matches("%2F").trim_end_matches('/').len() <= UID_LEN;
    call.path() == "/v1/devices" || prefix.is_some_and(is_whole_cluster)
}

/// 8-4-4-4-12 hexadecimal digits.
const UID_LEN: usize = 36;

fn everything_said(call: &Call) -> String {
    let headers = call.headers.values().filter_map(|value| value.to_str().ok());
    let mut text: Vec<&str> = headers.collect();
    text.extend([call.path(), call.query()]);
    let body = String::from_utf8_lossy(&call.body);
    text.push(&body);
    text.join("\n")
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use http::{HeaderMap, Method};
    use hyper::body::Bytes;

    use super::*;

    fn call(server: Server, method: Method, uri: &str, body: &str) -> Call {
        Call {
            server,
            method,
            uri: uri.parse().unwrap(),
            headers: HeaderMap::new(),
            body: Bytes::copy_from_slice(body.as_bytes()),
            received: Instant::now(),
        }
    }

    #[test]
    fn the_same_step_of_two_stories_has_the_same_name() {
        let of = |namespace: &str| {
            let uri = format!(
                "/apis/corridoros.io/v1alpha1/namespaces/{namespace}/corridors/c1/status?&fieldManager=x&force=true"
            );
            call(Server::ApiServer, Method::PATCH, &uri, "")
        };
        let (one, two) = (of("s-1"), of("s-2"));
        assert_eq!(what(&one, None), "PATCH corridors/c1/status by x");
        assert_eq!(what(&one, None), what(&two, None));
        let objects = BTreeMap::new();
        assert_eq!(whose(&one, |it| it == "s-1", &objects), Whose::Story("s-1".into(), None));
        assert_eq!(whose(&two, |it| it == "s-1", &objects), Whose::Everybody);
    }

    #[test]
    fn calls_of_daemons_are_told_apart_by_what_they_name() {
        let uid = "11111111-2222-3333-4444-555555555555";
        let known = Known { namespace: "s-1".into(), name: "c1".into() };
        let objects = BTreeMap::from([(uid.to_owned(), known)]);
        let list = |prefix: &str| {
            let uri = format!("/v1/corridors?owner_prefix={prefix}");
            call(Server::Daemons, Method::GET, &uri, "")
        };
        let of_story = Whose::Story("s-1".into(), Some("c1".into()));
        let whose = |call: &Call| whose(call, |_| true, &objects);
        assert_eq!(whose(&list(&format!("{uid}%2F{uid}"))), of_story);
        assert_eq!(whose(&list(&format!("{uid}%2F"))), Whose::Everybody);
        let verify = call(
            Server::Daemons,
            Method::POST,
            "/v1/attest/verify",
            &format!(r#"{{"subject":"{uid}"}}"#),
        );
        assert_eq!(whose(&verify), of_story);
        let delete = call(Server::Daemons, Method::DELETE, "/v1/ffm/ffm-1", "");
        assert_eq!(whose(&delete), Whose::NotKnownYet);
        assert_eq!(what(&delete, Some("b1")), "DELETE /v1/ffm/{id} of b1");
    }

    #[test]
    fn leases_events_and_health_are_no_steps() {
        let is_step = |uri: &str| is_step(&call(Server::ApiServer, Method::POST, uri, ""));
        assert!(!is_step("/api/v1/namespaces/a/events"));
        assert!(!is_step("/apis/coordination.k8s.io/v1/namespaces/corridor-system/leases/x"));
        assert!(!is_step("/readyz"));
        assert!(is_step("/api/v1/namespaces/a/pods/p/binding"));
    }
}

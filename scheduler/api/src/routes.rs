//! Every path under `/api`: the one list from which the OpenAPI document is made.

/// What a request carries, or an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// The schema of this name.
    Json(&'static str),
    /// A Pod of `v1`.
    Pod,
    Gzip,
}

/// One path and method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub operation: &'static str,
    pub method: &'static str,
    /// With `{namespace}` and `{name}`.
    pub path: &'static str,
    pub summary: &'static str,
    pub request: Option<Body>,
    pub answer: Body,
    /// Codes beyond 200 and those of every route, with their meaning.
    pub codes: &'static [(u16, &'static str)],
}

const UNKNOWN_POD: (u16, &str) =
    (404, "no such Pod is known: it does not exist, or names another scheduler");

pub const ROUTES: [Route; 5] = [
    Route {
        operation: "explain",
        method: "get",
        path: "/api/pods/{namespace}/{name}/explain",
        summary: "Why a Pod waits, or where it is",
        request: None,
        answer: Body::Json("Explanation"),
        codes: &[UNKNOWN_POD],
    },
    Route {
        operation: "when",
        method: "get",
        path: "/api/pods/{namespace}/{name}/when",
        summary: "When a Pod could start, as far as other Pods have declared their ends",
        request: None,
        answer: Body::Json("Estimate"),
        codes: &[UNKNOWN_POD],
    },
    Route {
        operation: "whatIf",
        method: "post",
        path: "/api/what-if",
        summary: "Where a Pod would go that does not exist. Changes nothing",
        request: Some(Body::Pod),
        answer: Body::Json("Explanation"),
        codes: &[
            (400, "the body is not a Pod"),
            (408, "the body took more than 30 s"),
            (413, "the body has more than 2 MiB"),
        ],
    },
    Route {
        operation: "shadow",
        method: "get",
        path: "/api/shadow",
        summary: "What shadow mode has compared so far",
        request: None,
        answer: Body::Json("Shadow"),
        codes: &[(404, "the process does not run with --shadow")],
    },
    Route {
        operation: "journal",
        method: "get",
        path: "/api/journal",
        summary: "The events and decisions that are kept, as JSON lines",
        request: None,
        answer: Body::Gzip,
        codes: &[],
    },
];

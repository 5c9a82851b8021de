//! Lists: which state they show, and how they are cut into pages.
//!
//! A continue token says where the next page begins and which version all pages show. So a list in
//! pages is as consistent as one in a single piece, for as long as that version is remembered.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::catalog::{ResourceType, Rules};
use crate::refusal::Refusal;
use crate::request::Options;
use crate::selector::Filter;
use crate::store::Store;
use crate::stored::Stored;

/// One page of a list, which may be all of it.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub objects: Vec<Arc<Stored>>,
    pub revision: u64,
    /// Where the next page begins; empty if this is the last.
    pub next: String,
    /// How many objects come after this page, where the real server says so too.
    pub remaining: Option<usize>,
}

/// What a continue token says, in the words of the real server.
#[derive(Debug, Serialize, Deserialize)]
struct Token {
    #[serde(default, rename = "v")]
    format: String,
    /// Negative: whatever is the latest when the token is used.
    #[serde(default, rename = "rv")]
    revision: i64,
    /// The least place in the order of the list that has not been shown.
    #[serde(default)]
    start: String,
}

const TOKEN_FORMAT: &str = "meta.k8s.io/v1";
const LATEST: i64 = -1;

/// Which state a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Latest { not_older_than: u64 },
    Exactly(u64),
}

/// The part of a list that a request asks for.
pub(crate) fn page(
    store: &Store,
    ty: &ResourceType,
    filter: &Filter,
    options: &Options,
) -> Result<Page, Refusal> {
    let single = filter.is_single(ty);
    let token = match options.continue_token.as_str() {
        "" => None,
        text => Some(Token::decode(text)?).filter(|_| !single),
    };
    let at = match &token {
        Some(token) => {
            if !["", "0"].contains(&options.resource_version.as_str()) {
                let why = "specifying resource version is not allowed when using continue";
                return Err(Refusal::bad_request(why));
            }
            token.at()
        }
        None => asked(options, single)?,
    };
    let start = token.as_ref().map_or("", |token| token.start.as_str());
    let (objects, revision) = match at {
        At::Latest { not_older_than } => {
            let (mut objects, revision) = store.list(ty, filter.namespace.as_deref());
            // What an index leaves out is not there for the question whether more is to come.
            if let Some(indexed) = filter.indexed(ty).filter(|_| token.is_none()) {
                objects.retain(|object| indexed.matches(object));
            }
            if not_older_than > revision {
                return Err(Refusal::resource_version_too_large(not_older_than, revision));
            }
            (objects, revision)
        }
        At::Exactly(revision) => {
            let then = store.list_at(ty, filter.namespace.as_deref(), revision)?;
            (then.ok_or_else(|| expired(token.as_ref()))?, revision)
        }
    };
    // Like the real server, which takes such lists whole from its cache. It caches no Events.
    let cached = !matches!(ty.rules, Rules::Event | Rules::NewEvent);
    let whole = single || (cached && options.resource_version == "0");
    let limit = if whole { None } else { options.limit };
    Ok(cut(ty, filter, objects, revision, start, limit))
}

fn asked(options: &Options, single: bool) -> Result<At, Refusal> {
    let Some(revision) = options.revision()? else {
        return Ok(At::Latest { not_older_than: 0 });
    };
    Ok(match options.version_match.as_str() {
        "Exact" => At::Exactly(revision),
        // Without a word about it, a version and a limit together mean this very version.
        "" if options.limit.is_some() && !single => At::Exactly(revision),
        _ => At::Latest { not_older_than: revision },
    })
}

fn cut(
    ty: &ResourceType,
    filter: &Filter,
    objects: Vec<Arc<Stored>>,
    revision: u64,
    start: &str,
    limit: Option<usize>,
) -> Page {
    let mut page = Page { revision, ..Page::default() };
    let first = objects.partition_point(|object| place(ty, filter, object).as_str() < start);
    let count = objects.len() - first;
    for (index, object) in objects.into_iter().skip(first).enumerate() {
        if !filter.matches(&object) {
            continue;
        }
        if limit.is_some_and(|limit| page.objects.len() + 1 == limit) && index + 1 < count {
            let start = place(ty, filter, &object) + "\0";
            page.next = Token::new(i64::try_from(revision).unwrap_or(i64::MAX), start).encode();
            // What comes after is counted before it is selected, so a count would be wrong.
            let uncounted = filter.selects();
            page.remaining = limit.filter(|_| !uncounted).map(|limit| count - limit);
            page.objects.push(object);
            break;
        }
        page.objects.push(object);
    }
    page
}

/// Where an object stands in the order of a list: its key without what all of the list share.
fn place(ty: &ResourceType, filter: &Filter, object: &Stored) -> String {
    if ty.namespaced && filter.namespace.is_none() {
        format!("{}/{}", object.key.namespace, object.key.name)
    } else {
        object.key.name.clone()
    }
}

fn expired(token: Option<&Token>) -> Refusal {
    match token {
        Some(token) => {
            let fresh = Token::new(LATEST, token.start.clone());
            let why = "The provided continue parameter is too old to display a consistent list \
                       result. You can start a new list without the continue parameter, or use \
                       the continue token in this response to retrieve the remainder of the \
                       results. Continuing with the provided token results in an inconsistent \
                       list - objects that were created, modified, or deleted between the time \
                       the first chunk was returned and now may show up in the list.";
            Refusal::expired(why).continued_by(fresh.encode())
        }
        None => Refusal::expired("The resourceVersion for the provided list is too old."),
    }
}

impl Token {
    fn new(revision: i64, start: String) -> Self {
        Self { format: TOKEN_FORMAT.to_owned(), revision, start }
    }

    fn encode(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    fn decode(text: &str) -> Result<Self, Refusal> {
        let bad = |why: &str| {
            let why = format!("invalid continue token: continue key is not valid{why}");
            Refusal::bad_request(why)
        };
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text);
        let bytes = bytes.map_err(|err| bad(&format!(": {err}")))?;
        let token: Self = serde_json::from_slice(&bytes).map_err(|err| bad(&format!(": {err}")))?;
        if token.format != TOKEN_FORMAT {
            let why = format!(": server does not recognize this encoded version {}", token.format);
            return Err(bad(&why));
        }
        if token.revision == 0 {
            let why = ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)";
            return Err(bad(why));
        }
        if token.start.is_empty() {
            return Err(bad(": encoded start key empty (version meta.k8s.io/v1)"));
        }
        let mut parts = token.start.trim_start_matches('/').split('/');
        if parts.any(|part| ["", ".", ".."].contains(&part)) {
            return Err(bad(&format!(": {}", token.start)));
        }
        Ok(token)
    }

    fn at(&self) -> At {
        u64::try_from(self.revision).map_or(At::Latest { not_older_than: 0 }, At::Exactly)
    }
}

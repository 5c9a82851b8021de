//! Authentication and authorization of requests: the reviews that the API server has to make, and a cache of
//! its answers. Nothing here knows a clock or a connection.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};
use sha2::{Digest as _, Sha256};

/// Open without a token, as in kube-scheduler: kubelets have none.
pub const OPEN_PATHS: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// Roles for this one are there already: `system:monitoring`, and what people made for kube-scheduler.
const SHARED_PATH: &str = "/metrics";
/// All else is asked about with this before it. A role does not say of which server a path is, and the
/// built-in `system:discovery` lets every account of the cluster get `/api/*`: of the API server, where
/// that gives nothing away.
const OWN_PREFIX: &str = "/corridor";

/// How long an answer is believed, yes and no alike. As in kube-scheduler: a token that was revoked
/// is good for so long, and a scraper does not cost two calls each time.
const BELIEVED_FOR: Duration = Duration::from_secs(10);
/// Tokens and rights that are remembered: more clients than this at a time cost calls, not memory.
const REMEMBERED_MAX: usize = 1_024;
/// The API server's own tokens have 1 to 2 KB.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// The user of a token, by its TokenReview. All of it is part of the SubjectAccessReview.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: Option<String>,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

/// What a request wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action<'a> {
    /// The method of HTTP in lower case: what roles say of URLs.
    pub verb: &'a str,
    /// As roles name it.
    pub path: &'a str,
}

/// What roles call a path of ours. Raw, as it is routed: no other spelling of it leads anywhere.
pub fn name_in_roles(path: &str) -> String {
    if path == SHARED_PATH { path.to_owned() } else { format!("{OWN_PREFIX}{path}") }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessDecision {
    Allowed(Arc<User>),
    /// The request names no user.
    NoToken(&'static str),
    /// The API server does not know the token.
    BadToken,
    Forbidden(String),
    /// The API server cannot be reached, so the request is denied.
    Unavailable(String),
}

/// What stands in for a token in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key([u8; 32]);

/// The source of authentication and authorization: the API server, or a test.
pub trait Authority {
    /// The user of the token; `None` = of no user.
    async fn identify(&self, token: &str) -> Result<Option<User>, String>;
    async fn permits(&self, user: &User, action: Action<'_>) -> Result<bool, String>;
}

/// The bearer token of a request, or why there is none.
pub fn bearer(headers: &HeaderMap) -> Result<&str, &'static str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let value = all.next().ok_or("a bearer token is needed")?;
    if all.next().is_some() {
        return Err("there are several Authorization headers; send one");
    }
    let readable = value.to_str().map_err(|_| "the Authorization header is not readable")?;
    let (scheme, token) = readable.trim().split_once(' ').unwrap_or((readable, ""));
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Err("the Authorization header must be `Bearer` and a token");
    }
    if token.len() > TOKEN_BYTES_MAX {
        return Err("the token is longer than any of the API server's");
    }
    Ok(token)
}

/// What the API server said lately.
#[derive(Debug)]
pub struct CachedAuthority {
    users: Memory<Option<Arc<User>>>,
    rights: Memory<bool>,
}

impl Default for CachedAuthority {
    fn default() -> Self {
        Self { users: Memory::new(REMEMBERED_MAX), rights: Memory::new(REMEMBERED_MAX) }
    }
}

/// Asks the authority what is not remembered. Failures are not remembered.
pub async fn judge(
    answers: &parking_lot::Mutex<CachedAuthority>,
    authority: &impl Authority,
    token: &str,
    action: Action<'_>,
    now: Instant,
) -> AccessDecision {
    let who = Key::of(&[token.as_bytes()]);
    let remembered = answers.lock().users.get(who, now);
    let user = match remembered {
        Some(user) => user,
        None => match authority.identify(token).await {
            Ok(user) => {
                let user = user.map(Arc::new);
                answers.lock().users.put(who, user.clone(), now);
                user
            }
            Err(why) => return AccessDecision::Unavailable(why),
        },
    };
    let Some(user) = user else { return AccessDecision::BadToken };
    // By token and not by name: what is remembered of one token says nothing about another.
    let what = Key::of(&[&who.0, action.verb.as_bytes(), action.path.as_bytes()]);
    let remembered = answers.lock().rights.get(what, now);
    let is_permitted = match remembered {
        Some(is_permitted) => is_permitted,
        None => match authority.permits(&user, action).await {
            Ok(is_permitted) => {
                answers.lock().rights.put(what, is_permitted, now);
                is_permitted
            }
            Err(why) => return AccessDecision::Unavailable(why),
        },
    };
    if is_permitted {
        AccessDecision::Allowed(user)
    } else {
        AccessDecision::Forbidden(user.name.clone())
    }
}

impl Key {
    fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

/// Values that are good for a time, the oldest forgotten first. All live equally long, so the order
/// in which they came is the order in which they end.
#[derive(Debug)]
struct Memory<V> {
    values: HashMap<Key, (V, Instant)>,
    oldest_first: VecDeque<(Key, Instant)>,
    max: usize,
}

impl<V: Clone> Memory<V> {
    fn new(max: usize) -> Self {
        Self { values: HashMap::new(), oldest_first: VecDeque::new(), max }
    }

    fn get(&self, key: Key, now: Instant) -> Option<V> {
        let (value, until) = self.values.get(&key)?;
        (now < *until).then(|| value.clone())
    }

    fn put(&mut self, key: Key, value: V, now: Instant) {
        let until = now + BELIEVED_FOR;
        self.values.insert(key, (value, until));
        self.oldest_first.push_back((key, until));
        while let Some((oldest, end)) = self.oldest_first.front().copied() {
            if now < end && self.oldest_first.len() <= self.max {
                break;
            }
            self.oldest_first.pop_front();
            // It may have been stored anew since.
            if self.values.get(&oldest).is_some_and(|(_, until)| *until == end) {
                self.values.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests;

use std::cell::Cell;

use axum::http::HeaderValue;
use parking_lot::Mutex;

use super::*;

const METRICS: Action<'static> = Action { verb: "get", path: "/metrics" };

/// Knows the token `good`, whose owner may get /metrics.
#[derive(Default)]
struct Fake {
    is_away: Cell<bool>,
    is_revoked: Cell<bool>,
    identified: Cell<usize>,
    permitted: Cell<usize>,
}

impl Authority for Fake {
    async fn identify(&self, token: &str) -> Result<Option<User>, String> {
        self.identified.set(self.identified.get() + 1);
        if self.is_away.get() {
            return Err("it is away".to_owned());
        }
        let is_known = token.starts_with("good") && !self.is_revoked.get();
        Ok(is_known.then(|| User { name: "prometheus".to_owned(), ..User::default() }))
    }

    async fn permits(&self, user: &User, action: Action<'_>) -> Result<bool, String> {
        self.permitted.set(self.permitted.get() + 1);
        if self.is_away.get() {
            return Err("it is away".to_owned());
        }
        Ok(user.name == "prometheus" && action == METRICS)
    }
}

fn allowed() -> AccessDecision {
    AccessDecision::Allowed(Arc::new(User { name: "prometheus".to_owned(), ..User::default() }))
}

struct World {
    fake: Fake,
    answers: Mutex<CachedAuthority>,
    start: Instant,
}

impl World {
    fn new() -> Self {
        let answers = Mutex::new(CachedAuthority::default());
        Self { fake: Fake::default(), answers, start: Instant::now() }
    }

    async fn judge(&self, token: &str, action: Action<'_>, second: u64) -> AccessDecision {
        let now = self.start + Duration::from_secs(second);
        judge(&self.answers, &self.fake, token, action, now).await
    }

    fn asked(&self) -> (usize, usize) {
        (self.fake.identified.get(), self.fake.permitted.get())
    }
}

#[tokio::test]
async fn answers_are_believed_for_ten_seconds() {
    let world = World::new();
    for second in [0, 3, 9] {
        assert_eq!(world.judge("good", METRICS, second).await, allowed());
    }
    assert_eq!(world.asked(), (1, 1));
    world.fake.is_revoked.set(true);
    assert_eq!(world.judge("good", METRICS, 9).await, allowed());
    assert_eq!(world.judge("good", METRICS, 10).await, AccessDecision::BadToken);
    assert_eq!(world.judge("good", METRICS, 11).await, AccessDecision::BadToken);
    assert_eq!(world.asked(), (2, 1));
}

#[tokio::test]
async fn each_path_verb_and_token_is_asked_about() {
    let world = World::new();
    let forbidden = AccessDecision::Forbidden("prometheus".to_owned());
    assert_eq!(world.judge("good", METRICS, 0).await, allowed());
    let cases = [("post", "/metrics"), ("get", "/metrics/"), ("get", "/api/what-if"), ("ge", "t")];
    for (verb, path) in cases {
        assert_eq!(world.judge("good", Action { verb, path }, 1).await, forbidden, "{verb} {path}");
    }
    assert_eq!(world.asked(), (1, 5));
    assert_eq!(world.judge("good too", METRICS, 1).await, allowed());
    assert_eq!(world.judge("bad", METRICS, 1).await, AccessDecision::BadToken);
    assert_eq!(world.asked(), (3, 6));
}

#[tokio::test]
async fn no_request_passes_while_the_api_server_cannot_be_asked() {
    let world = World::new();
    world.fake.is_away.set(true);
    let away = AccessDecision::Unavailable("it is away".to_owned());
    assert_eq!(world.judge("good", METRICS, 0).await, away);
    world.fake.is_away.set(false);
    assert_eq!(world.judge("good", METRICS, 0).await, allowed(), "failures are not kept");
    world.fake.is_away.set(true);
    assert_eq!(world.judge("good", METRICS, 9).await, allowed());
    assert_eq!(world.judge("good", METRICS, 10).await, away);
}

#[tokio::test]
async fn a_flood_of_tokens_costs_no_memory() {
    let world = World::new();
    for number in 0..REMEMBERED_MAX * 3 {
        world.judge(&format!("good {number}"), METRICS, 0).await;
        // The same one again and again must not fill the order with itself either.
        world.judge("good", METRICS, number as u64 * 10).await;
    }
    let answers = world.answers.lock();
    assert!(answers.users.values.len() <= REMEMBERED_MAX);
    assert!(answers.users.oldest_first.len() <= REMEMBERED_MAX);
    assert!(answers.rights.values.len() <= REMEMBERED_MAX);
    assert!(answers.rights.oldest_first.len() <= REMEMBERED_MAX);
}

#[test]
fn an_answer_told_anew_outlives_its_first() {
    let (mut memory, start) = (Memory::new(2), Instant::now());
    let [a, b, c] = ["a", "b", "c"].map(|name| Key::of(&[name.as_bytes()]));
    memory.put(a, 1, start);
    let later = start + BELIEVED_FOR;
    memory.put(a, 2, later);
    memory.put(b, 3, later);
    assert_eq!((memory.get(a, later), memory.get(b, later)), (Some(2), Some(3)));
    memory.put(c, 4, later);
    assert_eq!((memory.get(a, later), memory.get(c, later)), (None, Some(4)), "the oldest goes");
}

#[test]
fn keys_do_not_run_into_each_other() {
    assert_ne!(Key::of(&[b"ab", b"c"]), Key::of(&[b"a", b"bc"]));
}

#[test]
fn no_role_for_the_api_server_is_one_for_us() {
    assert_eq!(name_in_roles("/metrics"), "/metrics");
    for path in ["/api", "/api/what-if", "/version", "/metrics/", "/", "//metrics"] {
        assert_eq!(name_in_roles(path), format!("/corridor{path}"));
    }
}

#[test]
fn a_token_is_read_from_one_header_only() {
    let read = |values: &[&str]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        bearer(&headers).map(str::to_owned)
    };
    assert_eq!(read(&["Bearer abc"]).unwrap(), "abc");
    assert_eq!(read(&["bearer  abc "]).unwrap(), "abc");
    for (values, why) in [
        (&[][..], "needed"),
        (&["Bearer"], "`Bearer`"),
        (&["Bearer "], "`Bearer`"),
        (&["Basic YTpi"], "`Bearer`"),
        (&["Bearer a", "Bearer b"], "several"),
        (&[&format!("Bearer {}", "a".repeat(TOKEN_BYTES_MAX + 1))], "longer"),
    ] {
        let refused = read(values).unwrap_err();
        assert!(refused.contains(why), "{values:?}: {refused}");
    }
}

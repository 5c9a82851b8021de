//! The long poll.

use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use super::Served;
use super::reply::{Refused, malformed};
use crate::limits::WAIT_SECONDS_MAX;
use crate::telemetry::{Revision, TelemetryPage};

#[derive(Deserialize)]
pub(super) struct FeedQuery {
    since: Option<Revision>,
    wait: Option<String>,
    only: Option<Only>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Only {
    Corridors,
    Bundles,
}

impl Only {
    fn of(only: Option<Self>, mut page: TelemetryPage) -> TelemetryPage {
        match only {
            None => {}
            Some(Self::Corridors) => page.bundles.clear(),
            Some(Self::Bundles) => page.corridors.clear(),
        }
        page
    }
}

/// Answers as soon as there is something new; when `wait` is over, that there is nothing.
pub(super) async fn telemetry(
    State(daemon): Served,
    Query(FeedQuery { since, wait, only }): Query<FeedQuery>,
) -> Result<Json<TelemetryPage>, Refused> {
    let wait = wait.as_deref().map_or(Ok(Duration::ZERO), parse_wait)?;
    let deadline = Instant::now() + wait;
    let mut news = daemon.listen();
    loop {
        if let Some(page) = daemon.news_since(since.as_ref()) {
            return Ok(Json(Only::of(only, page)));
        }
        if !matches!(timeout_at(deadline, news.changed()).await, Ok(Ok(()))) {
            return Ok(Json(daemon.nothing_new()));
        }
    }
}

/// `25s`, also with a fraction; longer than the contract allows is cut.
fn parse_wait(text: &str) -> Result<Duration, Refused> {
    let seconds = text.strip_suffix('s').and_then(|number| number.parse::<f64>().ok());
    let longest = Duration::from_secs(WAIT_SECONDS_MAX);
    match seconds {
        Some(seconds) if seconds >= 0.0 => {
            Ok(Duration::try_from_secs_f64(seconds).unwrap_or(longest).min(longest))
        }
        _ => Err(malformed(format!("wait must be seconds as in 25s, is {text:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_seconds_and_bounded() {
        assert_eq!(parse_wait("25s").unwrap(), Duration::from_secs(25));
        assert_eq!(parse_wait("0.5s").unwrap(), Duration::from_millis(500));
        assert_eq!(parse_wait("1e300s").unwrap(), Duration::from_secs(WAIT_SECONDS_MAX));
        for text in ["", "s", "25", "-1s", "NaNs", "soon"] {
            assert!(parse_wait(text).is_err(), "{text:?}");
        }
    }
}

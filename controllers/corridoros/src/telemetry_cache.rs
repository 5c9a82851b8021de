//! The latest telemetry of one daemon, read by every reconcile.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;

/// The latest sample of every allocation of one daemon, and whether samples flow.
#[derive(Debug)]
pub(crate) struct TelemetryCache<S> {
    state: RwLock<CacheState<S>>,
}

#[derive(Debug)]
struct CacheState<S> {
    /// Shared, because a sample has an array for every wavelength and several readers.
    samples: HashMap<String, Arc<S>>,
    /// Counts restarts and losses, each of which makes earlier lists of allocations doubtful.
    invalidations: u64,
    /// When telemetry stopped; `None` while it flows.
    silent_since: Option<Instant>,
    why_silent: String,
}

/// Whether the telemetry of a daemon flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Flowing,
    /// For how long it has not, and why.
    Silent(Duration, String),
}

impl<S> TelemetryCache<S> {
    pub fn new(now: Instant) -> Self {
        let state = CacheState {
            samples: HashMap::new(),
            invalidations: 0,
            silent_since: Some(now),
            why_silent: "no telemetry yet".to_owned(),
        };
        Self { state: RwLock::new(state) }
    }

    pub fn sample(&self, id: &str) -> Option<Arc<S>> {
        self.state.read().samples.get(id).cloned()
    }

    /// A sample that was asked for. One that the feed has brought meanwhile is newer and stays.
    pub fn add(&self, id: &str, sample: S) {
        self.state.write().samples.entry(id.to_owned()).or_insert_with(|| Arc::new(sample));
    }

    pub fn invalidations(&self) -> u64 {
        self.state.read().invalidations
    }

    pub fn flow(&self, now: Instant) -> Flow {
        let state = self.state.read();
        match state.silent_since {
            None => Flow::Flowing,
            Some(since) => Flow::Silent(now.duration_since(since), state.why_silent.clone()),
        }
    }

    /// Applies a page. `full`: an allocation that is not in it does not exist.
    /// Returns whether the daemon was silent before, and the samples of allocations that are gone.
    pub fn apply(
        &self,
        samples: Vec<(String, S)>,
        gone: &[String],
        full: bool,
    ) -> (bool, Vec<Arc<S>>) {
        let mut state = self.state.write();
        let was_silent = state.silent_since.take().is_some();
        let mut lost: Vec<Arc<S>> = if full {
            state.samples.drain().map(|(_, sample)| sample).collect()
        } else {
            gone.iter().filter_map(|id| state.samples.remove(id)).collect()
        };
        if full || !lost.is_empty() {
            state.invalidations += 1;
        }
        state.samples.extend(samples.into_iter().map(|(id, sample)| (id, Arc::new(sample))));
        if full {
            lost.clear();
        }
        (was_silent, lost)
    }

    pub fn mark_silent(&self, now: Instant, why: String) {
        let mut state = self.state.write();
        state.silent_since.get_or_insert(now);
        state.why_silent = why;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_page_replaces_everything_and_invalidates_lists() {
        let now = Instant::now();
        let cache = TelemetryCache::new(now);
        assert!(matches!(cache.flow(now), Flow::Silent(..)));
        assert_eq!(cache.apply(vec![("a".into(), 1), ("b".into(), 2)], &[], true), (true, vec![]));
        assert_eq!(cache.invalidations(), 1);
        let lost = cache.apply(vec![("a".into(), 3)], &["b".into()], false);
        assert_eq!(lost, (false, vec![Arc::new(2)]));
        assert_eq!((cache.sample("a"), cache.sample("b")), (Some(Arc::new(3)), None));
        assert_eq!(cache.invalidations(), 2);
        cache.apply(vec![("a".into(), 4)], &[], false);
        assert_eq!(cache.invalidations(), 2, "samples alone change no list");
    }

    #[test]
    fn silence_counts_from_its_beginning() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let cache: TelemetryCache<u8> = TelemetryCache::new(start);
        cache.apply(vec![], &[], true);
        cache.mark_silent(start, "x".into());
        cache.mark_silent(start + second, "y".into());
        assert_eq!(cache.flow(start + 2 * second), Flow::Silent(2 * second, "y".into()));
    }
}

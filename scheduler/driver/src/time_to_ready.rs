//! How long objects take from their creation to their first Ready.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use model::{Instant, ObjectKind, ObjectUid};

use crate::clock::age;
use crate::kinds::WatchState;

/// An object that is not Ready by then is counted as late.
const READY_WITHIN: Duration = Duration::from_mins(1);
/// A creationTimestamp is cut to a whole second.
const CREATION_PRECISION: Duration = Duration::from_secs(1);

/// An object that has become Ready, or has not in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ReadySample {
    pub kind: ObjectKind,
    pub took: Duration,
}

/// Objects that are younger than a minute and were not Ready yet. They leave by then at the latest.
#[derive(Debug, Default)]
pub(crate) struct TimeToReady {
    /// Since when, on our own clock: the wall clock may step.
    unready: BTreeMap<ObjectUid, (ObjectKind, Instant)>,
}

impl TimeToReady {
    pub fn sees(
        &mut self,
        kind: ObjectKind,
        uid: &ObjectUid,
        created: Option<Timestamp>,
        is_ready: bool,
        now: Instant,
    ) -> Option<ReadySample> {
        if is_ready {
            let (kind, created) = self.unready.remove(uid)?;
            return Some(ReadySample { kind, took: now.saturating_since(created) });
        }
        let old = age(created?).saturating_sub(CREATION_PRECISION);
        if old < READY_WITHIN && !self.unready.contains_key(uid) {
            let created = Instant::from_start(now.since_start().saturating_sub(old));
            self.unready.insert(uid.clone(), (kind, created));
        }
        None
    }

    pub fn forget(&mut self, uid: &ObjectUid) {
        self.unready.remove(uid);
    }

    /// Those whose time is over, each once, but for those that their owner keeps from being Ready.
    pub fn overdue(
        &mut self,
        now: Instant,
        is_refused: impl Fn(&ObjectUid) -> bool,
    ) -> Vec<ReadySample> {
        let is_over = |since: Instant| now.saturating_since(since) > READY_WITHIN;
        let over = self.unready.extract_if(.., |_, (_, since)| is_over(*since));
        over.filter(|(uid, _)| !is_refused(uid))
            .map(|(_, (kind, since))| ReadySample { kind, took: now.saturating_since(since) })
            .collect()
    }
}

impl WatchState {
    /// How long an object takes to be Ready is not the site's matter once its owner has refused it.
    pub(crate) fn note_readiness(
        &mut self,
        kind: ObjectKind,
        uid: &ObjectUid,
        created: Option<Timestamp>,
        is_ready: bool,
    ) {
        if self.own_writes.was_refused(uid.as_str()) {
            self.time_to_ready.forget(uid);
        } else {
            self.became_ready
                .extend(self.time_to_ready.sees(kind, uid, created, is_ready, self.now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::wall_clock;
    use crate::kinds::corridor::WireCorridor;
    use crate::kinds::seen;
    use serde_json::json;

    const START: Instant = Instant::from_start(Duration::from_secs(1_000));

    fn sees(time_to_ready: &mut TimeToReady, is_ready: bool, after: u64) -> Option<ReadySample> {
        let now = START + Duration::from_secs(after);
        time_to_ready.sees(ObjectKind::Corridor, &"u".into(), Some(wall_clock()), is_ready, now)
    }

    fn none_refused(_: &ObjectUid) -> bool {
        false
    }

    #[test]
    fn the_first_ready_counts_from_the_creation() {
        let mut time_to_ready = TimeToReady::default();
        assert_eq!(sees(&mut time_to_ready, false, 0), None);
        assert_eq!(sees(&mut time_to_ready, false, 1), None);
        let took = Duration::from_secs(3);
        assert_eq!(
            sees(&mut time_to_ready, true, 3),
            Some(ReadySample { kind: ObjectKind::Corridor, took })
        );
        assert_eq!(sees(&mut time_to_ready, true, 4), None, "once");
    }

    #[test]
    fn one_that_is_late_counts_once_and_above_a_minute() {
        let mut time_to_ready = TimeToReady::default();
        sees(&mut time_to_ready, false, 0);
        assert_eq!(time_to_ready.overdue(START + Duration::from_mins(1), none_refused), []);
        let late = time_to_ready.overdue(START + Duration::from_secs(61), none_refused);
        assert!(late.len() == 1 && late[0].took > READY_WITHIN);
        assert_eq!(time_to_ready.overdue(START + Duration::from_secs(99), none_refused), []);
        assert_eq!(sees(&mut time_to_ready, true, 99), None);
    }

    #[test]
    fn what_was_there_before_us_is_not_counted() {
        let mut time_to_ready = TimeToReady::default();
        assert_eq!(sees(&mut time_to_ready, true, 0), None);
        let long_ago = wall_clock() - jiff::SignedDuration::from_mins(5);
        let seen =
            time_to_ready.sees(ObjectKind::Corridor, &"o".into(), Some(long_ago), false, START);
        assert!(seen.is_none() && time_to_ready.unready.is_empty());
        sees(&mut time_to_ready, false, 0);
        time_to_ready.forget(&"u".into());
        assert_eq!(time_to_ready.overdue(START + Duration::from_mins(9), none_refused), []);
    }

    #[test]
    fn an_object_refused_by_its_own_tenant_is_not_counted_as_late() {
        let mut time_to_ready = TimeToReady::default();
        sees(&mut time_to_ready, false, 0);
        assert_eq!(
            time_to_ready.overdue(START + Duration::from_mins(9), |uid| *uid == "u".into()),
            []
        );
        assert_eq!(
            time_to_ready.overdue(START + Duration::from_mins(9), none_refused),
            [],
            "nor later"
        );
    }

    #[test]
    fn an_object_that_its_own_tenant_refuses_does_not_count_as_slow_to_be_ready() {
        let watched = &mut WatchState::default();
        let corridor = |uid: &str, phase: &str| {
            json!({
                "metadata": {"namespace": "a", "name": uid, "uid": uid,
                             "creationTimestamp": wall_clock().to_string()},
                "status": {"phase": phase},
            })
        };
        for uid in ["refused", "slow"] {
            seen::<WireCorridor>(watched, corridor(uid, "Pending"));
        }
        watched.own_writes.record_refusal("refused");
        for uid in ["refused", "slow"] {
            seen::<WireCorridor>(watched, corridor(uid, "Failed"));
            seen::<WireCorridor>(watched, corridor(uid, "Ready"));
        }
        assert_eq!(
            watched.became_ready.len(),
            1,
            "its owner took his time: {:?}",
            watched.became_ready
        );
    }
}

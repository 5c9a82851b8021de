//! How long objects take from their creation to their first Ready.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use model::{Instant, ObjectKind, ObjectUid};

use crate::clock::age;
use crate::followed::Noted;

/// Whoever is not Ready by then is counted as one that never was.
const READY_WITHIN: Duration = Duration::from_mins(1);
/// A creationTimestamp is cut to a whole second.
const CREATION_PRECISION: Duration = Duration::from_secs(1);

/// An object that has become Ready, or has not in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Birth {
    pub kind: ObjectKind,
    pub took: Duration,
}

/// Objects that are younger than a minute and were not Ready yet. They leave by then at the latest.
#[derive(Debug, Default)]
pub(crate) struct Births {
    /// Since when, on our own clock: the wall clock may step.
    unready: BTreeMap<ObjectUid, (ObjectKind, Instant)>,
}

impl Births {
    pub fn sees(
        &mut self,
        kind: ObjectKind,
        uid: &ObjectUid,
        created: Option<Timestamp>,
        is_ready: bool,
        now: Instant,
    ) -> Option<Birth> {
        if is_ready {
            let (kind, created) = self.unready.remove(uid)?;
            return Some(Birth { kind, took: now.saturating_since(created) });
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
    pub fn overdue(&mut self, now: Instant, is_refused: impl Fn(&ObjectUid) -> bool) -> Vec<Birth> {
        let is_over = |since: Instant| now.saturating_since(since) > READY_WITHIN;
        let over = self.unready.extract_if(.., |_, (_, since)| is_over(*since));
        over.filter(|(uid, _)| !is_refused(uid))
            .map(|(_, (kind, since))| Birth { kind, took: now.saturating_since(since) })
            .collect()
    }
}

impl Noted {
    /// How long an object takes to be Ready is not the site's matter once its owner has refused it.
    pub(crate) fn birth(
        &mut self,
        kind: ObjectKind,
        uid: &ObjectUid,
        created: Option<Timestamp>,
        is_ready: bool,
    ) {
        if self.own_writes.was_refused(uid.as_str()) {
            self.births.forget(uid);
        } else {
            self.born.extend(self.births.sees(kind, uid, created, is_ready, self.now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::wall_clock;
    use crate::followed::Followed as _;
    use crate::wire::WireCorridor;
    use serde_json::json;

    const START: Instant = Instant::from_start(Duration::from_secs(1_000));

    fn sees(births: &mut Births, is_ready: bool, after: u64) -> Option<Birth> {
        let now = START + Duration::from_secs(after);
        births.sees(ObjectKind::Corridor, &"u".into(), Some(wall_clock()), is_ready, now)
    }

    fn seen(noted: &mut Noted, object: serde_json::Value) {
        serde_json::from_value::<WireCorridor>(object).unwrap().seen(noted);
    }

    fn nobody(_: &ObjectUid) -> bool {
        false
    }

    #[test]
    fn the_first_ready_counts_from_the_creation() {
        let mut births = Births::default();
        assert_eq!(sees(&mut births, false, 0), None);
        assert_eq!(sees(&mut births, false, 1), None);
        let took = Duration::from_secs(3);
        assert_eq!(sees(&mut births, true, 3), Some(Birth { kind: ObjectKind::Corridor, took }));
        assert_eq!(sees(&mut births, true, 4), None, "once");
    }

    #[test]
    fn one_that_is_late_counts_once_and_above_a_minute() {
        let mut births = Births::default();
        sees(&mut births, false, 0);
        assert_eq!(births.overdue(START + Duration::from_mins(1), nobody), []);
        let late = births.overdue(START + Duration::from_secs(61), nobody);
        assert!(late.len() == 1 && late[0].took > READY_WITHIN);
        assert_eq!(births.overdue(START + Duration::from_secs(99), nobody), []);
        assert_eq!(sees(&mut births, true, 99), None);
    }

    #[test]
    fn what_was_there_before_us_is_not_counted() {
        let mut births = Births::default();
        assert_eq!(sees(&mut births, true, 0), None);
        let long_ago = wall_clock() - jiff::SignedDuration::from_mins(5);
        let seen = births.sees(ObjectKind::Corridor, &"o".into(), Some(long_ago), false, START);
        assert!(seen.is_none() && births.unready.is_empty());
        sees(&mut births, false, 0);
        births.forget(&"u".into());
        assert_eq!(births.overdue(START + Duration::from_mins(9), nobody), []);
    }

    #[test]
    fn who_is_refused_by_its_own_tenant_is_not_counted_as_slow() {
        let mut births = Births::default();
        sees(&mut births, false, 0);
        assert_eq!(births.overdue(START + Duration::from_mins(9), |uid| *uid == "u".into()), []);
        assert_eq!(births.overdue(START + Duration::from_mins(9), nobody), [], "nor later");
    }

    #[test]
    fn an_object_that_its_own_tenant_refuses_does_not_count_as_slow_to_be_ready() {
        let noted = &mut Noted::default();
        let corridor = |uid: &str, phase: &str| {
            json!({
                "metadata": {"namespace": "a", "name": uid, "uid": uid,
                             "creationTimestamp": wall_clock().to_string()},
                "status": {"phase": phase},
            })
        };
        for uid in ["refused", "slow"] {
            seen(noted, corridor(uid, "Pending"));
        }
        noted.own_writes.record_refusal("refused");
        for uid in ["refused", "slow"] {
            seen(noted, corridor(uid, "Failed"));
            seen(noted, corridor(uid, "Ready"));
        }
        assert_eq!(noted.born.len(), 1, "its owner took his time: {:?}", noted.born);
    }
}

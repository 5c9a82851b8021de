//! The users of each object, reported in its status: at most once a second, and only when they have changed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use model::{Amount, Instant, ObjectKey, ObjectRef, ObjectUid, Phase, PodUid};
use priority_queue::PriorityQueue;

use crate::decision::{ObjectUsed, Report};
use crate::engine::Engine;

/// The status of one object is written no more often than this.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// As many users as the status names; the count includes the rest.
const USERS_NAMED_MAX: usize = 32;

/// What was written about each object, and what may be new.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Uses {
    changed: BTreeSet<ObjectRef>,
    #[serde(with = "model::pairs")]
    written: BTreeMap<ObjectRef, Written>,
    #[serde(with = "crate::serde_due")]
    later: PriorityQueue<ObjectRef, Reverse<Instant>>,
    /// Those whose sum of reservations has changed since the metrics were published.
    unmetered: BTreeSet<ObjectRef>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Written {
    uid: ObjectUid,
    facts: Facts,
    at: Instant,
}

/// What the status says of an object's use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    pub generation: i64,
    pub in_use: usize,
    pub in_use_by: Vec<(ObjectKey, PodUid)>,
    /// Set while the object is being released: whether no Pod uses it any more.
    pub drained: Option<bool>,
    /// More is reserved than the object has, fresh or not.
    pub oversubscribed: bool,
}

impl Uses {
    pub fn changed(&mut self, object: &ObjectRef) {
        self.changed.insert(object.clone());
        self.unmetered.insert(object.clone());
    }

    pub fn forget(&mut self, object: &ObjectRef) {
        self.changed.remove(object);
        self.written.remove(object);
        self.later.remove(object);
        self.unmetered.insert(object.clone());
    }

    /// Another leader may have reported something else meanwhile.
    pub fn report_anew(&mut self, objects: impl Iterator<Item = ObjectRef>) {
        self.written.clear();
        self.changed.extend(objects);
    }

    /// The last report did not arrive.
    pub fn lost(&mut self, object: &ObjectRef) {
        if let Some(written) = self.written.get_mut(object) {
            written.facts.generation = -1;
        }
        self.changed.insert(object.clone());
    }

    pub fn advance(&mut self, now: Instant) {
        while self.next_due().is_some_and(|due| due <= now) {
            if let Some((object, _)) = self.later.pop() {
                self.changed.insert(object);
            }
        }
    }

    pub fn next_due(&self) -> Option<Instant> {
        self.later.peek().map(|(_, Reverse(at))| *at)
    }

    pub fn is_empty(&self) -> bool {
        self.changed.is_empty()
    }
}

impl Engine {
    /// The next object whose reservations may have changed, with their sum; `None` when it is gone.
    pub fn poll_reserved(&mut self) -> Option<(ObjectRef, Option<Amount>)> {
        let object = self.outbox.uses.unmetered.pop_first()?;
        let reserved =
            self.observed.objects.get(&object).map(|seen| self.ledger.reserved(&seen.uid));
        Some((object, reserved))
    }

    /// The next object of whose use there is something new to report.
    pub(crate) fn use_report(&mut self) -> Option<Report> {
        while let Some(object) = self.outbox.uses.changed.pop_first() {
            let report = self.use_report_of(&object);
            if report.is_some() {
                return report;
            }
        }
        None
    }

    fn use_report_of(&mut self, object: &ObjectRef) -> Option<Report> {
        let (now, seen) = (self.now, self.observed.objects.get(object)?);
        let facts = self.facts(object)?;
        // Its deletion alone is no news: the answer to `Releasing` follows, and says it all.
        if seen.deleting && facts.drained.is_none() {
            return None;
        }
        let written =
            self.outbox.uses.written.get(object).filter(|written| written.uid == seen.uid);
        match written {
            Some(written) if written.facts == facts => return None,
            Some(written) if written.at + WRITE_INTERVAL > now => {
                self.outbox.uses.later.push(object.clone(), Reverse(written.at + WRITE_INTERVAL));
                return None;
            }
            // No Pod uses it, and its status never said otherwise.
            None if !seen.use_told && facts.says_nothing() => return None,
            _ => {}
        }
        let uid = seen.uid.clone();
        let entry = Written { uid: uid.clone(), facts: facts.clone(), at: now };
        self.outbox.uses.written.insert(object.clone(), entry);
        Some(Report::Used(ObjectUsed { object: object.clone(), uid, facts }))
    }

    fn facts(&self, object: &ObjectRef) -> Option<Facts> {
        let seen = self.observed.objects.get(object)?;
        let used = self.ledger.object(&seen.uid);
        let users = used.into_iter().flat_map(|used| &used.users);
        let in_use = used.map_or(0, |used| used.users.len());
        Some(Facts {
            generation: seen.generation,
            in_use,
            in_use_by: users
                .take(USERS_NAMED_MAX)
                .map(|(uid, key)| (key.clone(), uid.clone()))
                .collect(),
            drained: (seen.phase == Phase::Releasing).then_some(in_use == 0),
            oversubscribed: self.ledger.reserved(&seen.uid) > seen.floor().min(seen.measured),
        })
    }
}

impl Facts {
    fn says_nothing(&self) -> bool {
        self.in_use == 0 && self.drained.is_none() && !self.oversubscribed
    }
}

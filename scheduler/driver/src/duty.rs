//! What this replica does: follow, get ready, or decide. Without I/O.
//!
//! ```text
//!  Following ──term──▶ Settling ──1 s──▶ Resyncing ──complete──▶ Deciding
//!      ▲                                                             │
//!      └─────────────────────── the term ends ──────────────────────┘
//! ```
//!
//! Following, it sees all and writes nothing. A warm cache alone cannot prove that it has seen the former
//! leader's last Binding. So a new leader waits until no late Binding can pass any more, then lists the
//! Pods anew from the source, and only then decides.

use std::time::Duration;

use model::Instant;

use crate::election::Term;

/// By then the API server's own view of the Lease, by which it refuses a late leader, is up to date.
const SETTLE: Duration = Duration::from_secs(1);
/// A list that failed is tried again after this long.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub(crate) struct Duty {
    term: Option<Term>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Following,
    Settling {
        until: Instant,
    },
    /// A list is under way, begun while the watch was in its `lists`th one.
    Resyncing {
        lists: u64,
    },
    Deciding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TermChange {
    Began,
    Ended,
}

impl Duty {
    /// The term that the election has given us, if any. Renewals are no change.
    pub fn set_term(&mut self, term: Option<Term>, now: Instant) -> Option<TermChange> {
        let is_same = match (&self.term, &term) {
            (Some(before), Some(after)) => before.is_same(after),
            (None, None) => true,
            _ => false,
        };
        let began = term.as_ref().map(|term| (term.name.is_some(), term.began));
        self.term = term;
        if is_same {
            return None;
        }
        self.stage = match began {
            None => Stage::Following,
            // Unopposed: there is no other replica whose Bindings it could have missed.
            Some((false, _)) => Stage::Deciding,
            Some((true, began)) => Stage::Settling { until: began.max(now) + SETTLE },
        };
        Some(if self.term.is_some() { TermChange::Began } else { TermChange::Ended })
    }

    pub fn term(&self) -> Option<&Term> {
        self.term.as_ref()
    }

    pub fn decides(&self) -> bool {
        self.stage == Stage::Deciding
    }

    /// When to look again though nothing has happened.
    pub fn due(&self) -> Option<Instant> {
        match self.stage {
            Stage::Settling { until } => Some(until),
            Stage::Following | Stage::Resyncing { .. } | Stage::Deciding => None,
        }
    }

    /// Whether the Pods are to be listed now. `lists`: how many lists the watch of the Pods has begun,
    /// if it is in the middle of none.
    pub fn wants_resync(&mut self, now: Instant, lists: Option<u64>) -> bool {
        let (Stage::Settling { until }, Some(lists)) = (self.stage, lists) else { return false };
        if now < until {
            return false;
        }
        self.stage = Stage::Resyncing { lists };
        true
    }

    /// Whether what that list shows is to be taken in: not if the watch has begun a list of
    /// its own meanwhile, because the two cannot be told apart then.
    pub fn accepts_resync(&self, lists: Option<u64>) -> bool {
        matches!(self.stage, Stage::Resyncing { lists: begun } if lists == Some(begun))
    }

    /// The whole list has come, or failed. Whether it was taken in.
    pub fn resync_ended(&mut self, came: bool, lists: Option<u64>, now: Instant) -> bool {
        let Stage::Resyncing { .. } = self.stage else { return false };
        let usable = came && self.accepts_resync(lists);
        let pause = if came { Duration::ZERO } else { PAUSE };
        self.stage = if usable { Stage::Deciding } else { Stage::Settling { until: now + pause } };
        usable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_start(Duration::from_millis(millis))
    }

    #[expect(clippy::unnecessary_wraps, reason = "as the election tells it")]
    fn term(name: &str) -> Option<Term> {
        Some(Term { name: Some(name.into()), began: at(0), until: Some(at(10_000)) })
    }

    #[test]
    fn a_new_leader_settles_lists_and_then_decides() {
        let mut duty = Duty::default();
        assert_eq!(duty.set_term(term("a/1"), at(0)), Some(TermChange::Began));
        assert_eq!(duty.set_term(term("a/1"), at(500)), None, "a renewal");
        assert!(!duty.wants_resync(at(999), Some(1)));
        assert_eq!(duty.due(), Some(at(1_000)));
        assert!(!duty.wants_resync(at(1_000), None), "its watch has not listed yet");
        assert!(duty.wants_resync(at(1_000), Some(1)) && !duty.decides());
        assert!(!duty.wants_resync(at(1_100), Some(1)), "once");
        assert!(duty.resync_ended(true, Some(1), at(1_200)) && duty.decides());
        assert_eq!(duty.set_term(None, at(2_000)), Some(TermChange::Ended));
        assert!(!duty.decides());
    }

    #[test]
    fn a_list_that_failed_or_crossed_another_is_made_again() {
        let mut duty = Duty::default();
        duty.set_term(term("a/1"), at(0));
        assert!(duty.wants_resync(at(1_000), Some(1)));
        assert!(!duty.resync_ended(false, Some(1), at(1_100)) && !duty.decides());
        assert!(!duty.wants_resync(at(1_200), Some(1)));
        assert!(duty.wants_resync(at(1_600), Some(1)));
        for meanwhile in [None, Some(3)] {
            assert!(!duty.resync_ended(true, meanwhile, at(1_700)));
            assert!(duty.wants_resync(at(1_700), Some(2)));
        }
        assert!(duty.resync_ended(true, Some(2), at(1_800)) && duty.decides());
    }

    #[test]
    fn a_list_of_an_earlier_term_counts_for_nothing() {
        let mut duty = Duty::default();
        duty.set_term(term("a/1"), at(0));
        assert!(duty.wants_resync(at(1_000), Some(1)));
        duty.set_term(None, at(1_100));
        duty.set_term(term("b/3"), at(1_200));
        assert!(!duty.resync_ended(true, Some(1), at(1_300)) && !duty.decides());
    }

    #[test]
    fn a_single_replica_decides_at_once() {
        let mut duty = Duty::default();
        let alone = Term { name: None, began: at(0), until: None };
        assert_eq!(duty.set_term(Some(alone), at(0)), Some(TermChange::Began));
        assert!(duty.decides());
    }
}

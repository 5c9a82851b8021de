//! Whether this replica leads, for the rest of the process.

use std::fmt;
use std::sync::Arc;

use model::Instant;
use tokio::sync::{Notify, watch};
use tokio::time::sleep_until;

use crate::clock::Clock;

/// One uninterrupted time of leading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// `<holderIdentity>/<leaseTransitions>`; none without an election.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) began: Instant,
    /// When it ends unless it is renewed; never without an election.
    pub(crate) until: Option<Instant>,
}

impl Term {
    /// Whether both are the same time of leading, at different moments of it.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeadershipState {
    /// By holder identity, as far as it is known.
    Following {
        leader: Option<Arc<str>>,
    },
    Leading(Term),
}

/// Says whether this replica leads. Cheap to clone; all clones see the same.
#[derive(Clone)]
pub struct Tenure {
    clock: Clock,
    leadership: Arc<watch::Sender<LeadershipState>>,
    doubt: Arc<Notify>,
    /// It looks on while others lead, and is no candidate.
    looks_on: bool,
}

impl fmt::Debug for Tenure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tenure").field(&*self.leadership.borrow()).finish()
    }
}

impl Tenure {
    /// Of a single replica, which leads without an election.
    pub fn unopposed() -> Self {
        Self::starting_as(LeadershipState::Leading(Term {
            name: None,
            began: Instant::START,
            until: None,
        }))
    }

    /// Of a replica that never leads and never writes.
    pub fn onlooker() -> Self {
        Self { looks_on: true, ..Self::following() }
    }

    pub(crate) fn following() -> Self {
        Self::starting_as(LeadershipState::Following { leader: None })
    }

    fn starting_as(leadership: LeadershipState) -> Self {
        let (leadership, doubt) = (watch::Sender::new(leadership), Arc::default());
        Self { clock: Clock::start(), leadership: Arc::new(leadership), doubt, looks_on: false }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn publish(&self, leadership: LeadershipState) {
        self.leadership.send_if_modified(|current| {
            let is_new = *current != leadership;
            *current = leadership;
            is_new
        });
    }

    /// The present term, if this replica leads right now: by the clock, also if the change was not published yet.
    pub(crate) fn term(&self) -> Option<Term> {
        match &*self.leadership.borrow() {
            LeadershipState::Leading(term)
                if term.until.is_none_or(|until| self.clock.now() < until) =>
            {
                Some(term.clone())
            }
            LeadershipState::Leading(_) | LeadershipState::Following { .. } => None,
        }
    }

    pub(crate) fn holds(&self, term: &Term) -> bool {
        self.term().is_some_and(|current| current.is_same(term))
    }

    pub fn leads(&self) -> bool {
        self.term().is_some()
    }

    /// The other leader, by holder identity, as far as it is known. None while this replica leads, and for
    /// one that only looks on: no other replica has its state.
    pub fn leader_elsewhere(&self) -> Option<Option<Arc<str>>> {
        if self.leads() || self.looks_on {
            return None;
        }
        match &*self.leadership.borrow() {
            LeadershipState::Following { leader } => Some(leader.clone()),
            LeadershipState::Leading(_) => Some(None),
        }
    }

    /// Ready when this replica leads; at once if it does.
    pub async fn begun(&self) -> Term {
        let mut changes = self.leadership.subscribe();
        loop {
            if let Some(term) = self.term() {
                return term;
            }
            // The sender lives as long as `self`.
            let _ = changes.changed().await;
        }
    }

    /// Ready when the term is over; at once if it is.
    pub async fn ended(&self, term: &Term) {
        let mut changes = self.leadership.subscribe();
        while let Some(current) = self.term().filter(|current| current.is_same(term)) {
            match current.until {
                Some(until) => tokio::select! {
                    _ = changes.changed() => {}
                    () = sleep_until(self.clock.deadline(until)) => {}
                },
                None => std::future::pending().await,
            }
        }
    }

    /// Ready when a term begins, ends, or is renewed.
    pub(crate) fn changes(&self) -> watch::Receiver<LeadershipState> {
        self.leadership.subscribe()
    }

    /// The API server took us for a former leader: the election should look again.
    pub(crate) fn doubt(&self) {
        self.doubt.notify_one();
    }

    pub(crate) async fn doubted(&self) {
        self.doubt.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn leading(name: &str, until_s: u64) -> LeadershipState {
        let until = Some(Instant::from_start(Duration::from_secs(until_s)));
        LeadershipState::Leading(Term { name: Some(name.into()), began: Instant::START, until })
    }

    #[tokio::test(start_paused = true)]
    async fn a_term_ends_by_the_clock_alone() {
        let tenure = Tenure::following();
        tenure.publish(leading("a/1", 10));
        let term = tenure.begun().await;
        assert!(tenure.holds(&term));
        tenure.publish(leading("a/1", 12));
        assert!(tenure.holds(&term), "a renewal is the same term");
        tenure.ended(&term).await;
        assert_eq!(tenure.clock.now(), Instant::from_start(Duration::from_secs(12)));
        assert!(!tenure.leads() && tenure.leader_elsewhere().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_term_is_another() {
        let tenure = Tenure::following();
        tenure.publish(leading("a/1", 10));
        let term = tenure.begun().await;
        tenure.publish(leading("b/3", 20));
        tenure.ended(&term).await;
        assert!(tenure.leads() && !tenure.holds(&term));
    }

    #[test]
    fn without_an_election_it_leads_for_ever() {
        assert!(Tenure::unopposed().leads());
        assert_eq!(Tenure::unopposed().leader_elsewhere(), None);
    }
}

//! One replica's part in the election, without I/O.
//!
//! ```text
//!             expired, free, or none              renewal refused, or none in time
//!  Following ────────────────────────▶ Leading ──────────────────────────────────▶ Following
//!      ▲  look every retry period         ▲ │ renew every retry period             (new identity)
//!      └────────────── taken by another ──┘ └── clear answer
//! ```

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use model::Instant;

use super::lease;
use super::settings::ElectionSettings;
use super::tenure::{LeadershipState, Term};

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Read,
    /// It was not there.
    Create(Box<Lease>),
    /// The resourceVersion in it is a precondition.
    Replace(Box<Lease>),
    Wait(Instant),
}

/// What the API server said.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    Found(Box<Lease>),
    NotFound,
    /// Another writer was faster.
    Conflict,
    /// No answer, or one that says nothing about the Lease.
    Failed,
}

#[derive(Debug)]
pub(super) struct Candidate {
    settings: ElectionSettings,
    identity: String,
    role: Role,
    seen: Option<Seen>,
    /// When the next step is due, and whether it must be a look: what was last seen may not be true
    /// any more.
    due: Instant,
    look_first: bool,
    /// When the call that is under way, or the last one, was sent.
    sent_at: Instant,
    /// When the Lease was first asked for under this identity, with no clear answer so far.
    asked_at: Option<Instant>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    Following,
    Leading { began: Instant, renewed_at: Instant },
}

/// The Lease, and since when it has been so by the local clock: no other clock is trusted.
#[derive(Debug)]
struct Seen {
    lease: Lease,
    since: Instant,
}

impl Candidate {
    pub fn new(settings: ElectionSettings, identity: String, now: Instant) -> Self {
        Self {
            settings,
            identity,
            role: Role::Following,
            seen: None,
            due: now,
            look_first: true,
            sent_at: now,
            asked_at: None,
        }
    }

    /// The state to publish now.
    pub fn leadership(&self) -> LeadershipState {
        let lease = self.seen.as_ref().map(|seen| &seen.lease);
        match self.role {
            Role::Following => {
                LeadershipState::Following { leader: lease.and_then(lease::holder).map(Into::into) }
            }
            Role::Leading { began, renewed_at } => {
                let transitions = lease.map_or(0, lease::transitions);
                LeadershipState::Leading(Term {
                    name: Some(format!("{}/{transitions}", self.identity).into()),
                    began,
                    until: Some(self.deadline(renewed_at)),
                })
            }
        }
    }

    /// Something says that another leads: look at once.
    pub fn doubt(&mut self) {
        (self.due, self.look_first) = (Instant::START, true);
    }

    /// Gives up a term that has run out. `fresh` makes the identity of the next one.
    pub fn note_time(&mut self, now: Instant, fresh: impl FnOnce() -> String) {
        if let Role::Leading { renewed_at, .. } = self.role
            && now >= self.deadline(renewed_at)
        {
            self.lose(fresh());
            (self.due, self.look_first) = (now, true);
        }
    }

    fn lose(&mut self, identity: String) {
        (self.role, self.identity, self.asked_at) = (Role::Following, identity, None);
    }

    fn deadline(&self, renewed_at: Instant) -> Instant {
        renewed_at + self.settings.renew_deadline
    }

    /// The next step. Call [`Self::note_time`] first.
    pub fn next(&mut self, now: Instant, wall: Timestamp) -> Step {
        if now < self.due {
            return Step::Wait(self.wake_at());
        }
        self.sent_at = now;
        if std::mem::take(&mut self.look_first) {
            return Step::Read;
        }
        match (&self.role, &self.seen) {
            (Role::Leading { .. }, Some(seen)) => {
                Step::Replace(Box::new(lease::renewed(&seen.lease, wall)))
            }
            (Role::Following, None) => {
                self.asked_at.get_or_insert(now);
                Step::Create(Box::new(self.taken(wall)))
            }
            (Role::Following, Some(seen)) if self.is_free(seen, now) => {
                self.asked_at.get_or_insert(now);
                Step::Replace(Box::new(self.taken(wall)))
            }
            _ => Step::Read,
        }
    }

    fn taken(&self, wall: Timestamp) -> Lease {
        let before = self.seen.as_ref().map(|seen| &seen.lease);
        lease::taken(before, &self.settings, &self.identity, wall)
    }

    fn is_free(&self, seen: &Seen, now: Instant) -> bool {
        now >= self.free_at(seen)
    }

    fn free_at(&self, seen: &Seen) -> Instant {
        match lease::holder(&seen.lease) {
            None => seen.since,
            Some(_) => seen.since + lease::duration(&seen.lease, self.settings.lease_duration),
        }
    }

    fn wake_at(&self) -> Instant {
        match self.role {
            Role::Leading { renewed_at, .. } => self.due.min(self.deadline(renewed_at)),
            Role::Following => self.due,
        }
    }

    /// `chance` is in 0..1 and spreads replicas that look at the same time.
    pub fn after_read(
        &mut self,
        now: Instant,
        reply: Reply,
        chance: f64,
        fresh: impl FnOnce() -> String,
    ) {
        match reply {
            Reply::Found(lease) => self.found(now, *lease, chance, fresh),
            Reply::NotFound => {
                self.seen = None;
                if matches!(self.role, Role::Leading { .. }) {
                    self.lose(fresh());
                }
                self.due = now;
            }
            Reply::Conflict | Reply::Failed => {
                self.look_first = true;
                self.pause(now, chance);
            }
        }
    }

    fn found(&mut self, now: Instant, found: Lease, chance: f64, fresh: impl FnOnce() -> String) {
        let is_ours = lease::holder(&found) == Some(&self.identity);
        let since = match &self.seen {
            Some(seen) if !lease::is_written(&seen.lease, &found) => seen.since,
            _ => now,
        };
        self.seen = Some(Seen { lease: found, since });
        match (&self.role, self.asked_at, is_ours) {
            // It was edited, or the reply to a renewal was lost: renew on top of it.
            (Role::Leading { .. }, _, true) => self.due = now,
            // The answer to taking it was lost. Others count from later than we asked.
            (Role::Following, Some(asked_at), true) if now < self.deadline(asked_at) => {
                self.role = Role::Leading { began: now, renewed_at: asked_at };
                self.due = now;
            }
            (Role::Leading { .. }, ..) | (Role::Following, _, true) => {
                self.lose(fresh());
                self.look_again(now, chance);
            }
            (Role::Following, _, false) => self.look_again(now, chance),
        }
    }

    /// Sooner if it can be taken sooner.
    fn look_again(&mut self, now: Instant, chance: f64) {
        self.pause(now, chance);
        if let Some(seen) = &self.seen {
            self.due = self.due.min(self.free_at(seen).max(now));
        }
    }

    fn pause(&mut self, now: Instant, chance: f64) {
        /// As client-go spreads its candidates.
        const JITTER: f64 = 0.2;
        let period = self.settings.retry_period;
        self.due = now + period + period.mul_f64(JITTER * chance.clamp(0.0, 1.0));
    }

    /// After `Create` or `Replace`.
    pub fn after_write(&mut self, now: Instant, reply: Reply, chance: f64) {
        match reply {
            Reply::Found(lease) => {
                let began = match self.role {
                    Role::Leading { began, .. } => began,
                    Role::Following => now,
                };
                self.seen = Some(Seen { lease: *lease, since: now });
                self.role = Role::Leading { began, renewed_at: self.sent_at };
                self.due = self.sent_at + self.settings.retry_period;
            }
            Reply::NotFound | Reply::Conflict => (self.due, self.look_first) = (now, true),
            // Whether it was written is not known: the next attempt begins with a look.
            Reply::Failed => {
                self.look_first = true;
                self.pause(now, chance);
            }
        }
    }

    /// The same for a Lease that was read just now.
    pub fn release_found(&self, found: &Lease, wall: Timestamp) -> Option<Lease> {
        (lease::holder(found) == Some(&self.identity)).then(|| lease::released(found, wall))
    }

    /// For an orderly end: the Lease without us, if we hold it.
    pub fn release(&self, wall: Timestamp) -> Option<Lease> {
        match self.role {
            Role::Leading { .. } => {
                self.seen.as_ref().map(|seen| lease::released(&seen.lease, wall))
            }
            Role::Following => None,
        }
    }
}

#[cfg(test)]
mod tests;

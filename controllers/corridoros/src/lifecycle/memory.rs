//! What is remembered of an object between reconciles.

use controller_runtime::EventBudget;
use jiff::Timestamp;

use super::allocated_kind::AllocatedKind;
use super::guard::Guard;
use super::observe::Listing;
use super::plan::{Op, Step};
use super::readiness::StepError;
use super::steady::Steady;
use crate::attestation::{DeviceFailure, KnownTicket};

pub(crate) struct Memory<K: AllocatedKind> {
    pub listing: Option<Listing<K::Allocation>>,
    pub signals: K::Signals,
    /// Set while no operation is due.
    pub steady: Option<Steady>,
    pub ticket: Option<KnownTicket>,
    /// The operation that failed last and has not succeeded since.
    pub last_error: Option<StepError>,
    /// The generation that `last_error` is about.
    generation: i64,
    /// What the last reconcile did: the same operation twice in a row had no effect.
    pub last_op: Option<Op<K::Change>>,
    /// Readings are not written before.
    pub readings_due_at: Option<Timestamp>,
    /// What was written, so that writes by other accounts are noticed.
    pub guard: Guard<K::Status>,
    pub events: EventBudget,
    /// Failed attestations that were counted.
    pub failures: Vec<DeviceFailure>,
    /// The allocation whose first reading was asked for.
    pub first_reading_of: Option<String>,
}

impl<K: AllocatedKind> Default for Memory<K> {
    fn default() -> Self {
        Self {
            listing: None,
            signals: K::Signals::default(),
            steady: None,
            ticket: None,
            last_error: None,
            generation: 0,
            last_op: None,
            readings_due_at: None,
            guard: Guard::default(),
            events: EventBudget::default(),
            failures: Vec::new(),
            first_reading_of: None,
        }
    }
}

impl<K: AllocatedKind> Memory<K> {
    /// Errors and operations of an earlier spec do not count.
    pub fn begin(&mut self, generation: i64) {
        if self.generation != generation {
            (self.generation, self.last_error, self.last_op) = (generation, None, None);
        }
    }

    /// Whether the daemon could be asked what it holds.
    pub fn note_listing(&mut self, error: Option<StepError>) {
        let is_over = self.last_error.as_ref().is_some_and(|it| it.step == Step::List);
        if error.is_some() || is_over {
            self.last_error = error;
        }
    }
}

//! Publishes the state of the engine as metrics, at intervals: a scrape comes every 15 s or so.

use std::time::{Duration, Instant};

use model::ObjectUid;
use tokio::time::Instant as Deadline;

use crate::run::Driver;

/// The summary takes a look at every Pod.
pub(crate) const SUMMARY_INTERVAL: Duration = Duration::from_secs(5);
/// Short enough for every scrape; a loop that binds at full speed turns some thousand times a second.
const INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Publishing {
    next: Instant,
    summary_next: Instant,
    /// Something may have changed since the last time.
    is_owed: bool,
}

impl Default for Publishing {
    fn default() -> Self {
        let now = Instant::now();
        Self { next: now, summary_next: now, is_owed: false }
    }
}

impl Publishing {
    /// When to publish though nothing else is to be done.
    pub fn due(&self) -> Option<Deadline> {
        self.is_owed.then(|| Deadline::from_std(self.next))
    }
}

impl Driver {
    pub(crate) fn publish(&mut self) {
        let now = Instant::now();
        self.publishing.is_owed = now < self.publishing.next;
        if self.publishing.is_owed {
            return;
        }
        self.publishing.next = now + INTERVAL;
        let leads = self.duty.decides();
        self.metrics.publish(&self.engine, leads);
        self.metrics.publish_journal_files_lost(self.engine.files_lost());
        self.engine.tend_twin(now);
        self.metrics.publish_twin_divergences(self.engine.twin_divergences());
        while let Some((object, reserved)) = self.engine.poll_reserved() {
            self.metrics.objects.reserved(&object, reserved);
        }
        for (backend, renewed) in self.watched.renewals.all() {
            self.metrics.objects.lease_renewed(backend.name(), renewed);
        }
        let own_writes = &self.watched.own_writes;
        let is_refused = |uid: &ObjectUid| own_writes.was_refused(uid.as_str());
        let overdue = self.watched.time_to_ready.overdue(self.clock.now(), is_refused);
        for sample in self.watched.became_ready.drain(..).chain(overdue).filter(|_| leads) {
            self.metrics.objects.became_ready(&sample);
        }
        for (of, counts) in self.watched.phases.changed() {
            self.metrics.objects.phases(of.kind, &of.namespace, counts);
        }
        if now >= self.publishing.summary_next {
            self.publishing.summary_next = now + SUMMARY_INTERVAL;
            let summary = leads.then(|| self.engine.pending_summary());
            self.metrics.publish_summary(summary.as_ref(), &self.clock);
        }
    }
}

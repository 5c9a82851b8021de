//! What the metrics show of the engine, now and then: nobody reads them a thousand times a second.

use std::time::{Duration, Instant};

use model::ObjectUid;
use tokio::time::Instant as Deadline;

use crate::run::Driver;

/// To count who waits for what takes a look at every Pod; a scrape comes every 15 s or so.
pub(crate) const CENSUS_INTERVAL: Duration = Duration::from_secs(5);
/// Shorter than anybody notices; a loop that binds at full speed comes round some thousand times a second.
const INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Publishing {
    next: Instant,
    census_next: Instant,
    /// Something may have changed since the last time.
    is_owed: bool,
}

impl Default for Publishing {
    fn default() -> Self {
        let now = Instant::now();
        Self { next: now, census_next: now, is_owed: false }
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
        while let Some((object, reserved)) = self.engine.poll_reserved() {
            self.metrics.objects.reserved(&object, reserved);
        }
        for (backend, renewed) in self.noted.renewals.all() {
            self.metrics.objects.lease_renewed(backend.name(), renewed);
        }
        let own_writes = &self.noted.own_writes;
        let is_refused = |uid: &ObjectUid| own_writes.was_refused(uid.as_str());
        let overdue = self.noted.births.overdue(self.clock.now(), is_refused);
        for birth in self.noted.born.drain(..).chain(overdue).filter(|_| leads) {
            self.metrics.objects.became_ready(&birth);
        }
        for (of, counts) in self.noted.phases.changed() {
            self.metrics.objects.phases(of.kind, &of.namespace, counts);
        }
        if now >= self.publishing.census_next {
            self.publishing.census_next = now + CENSUS_INTERVAL;
            let census = leads.then(|| self.engine.census());
            self.metrics.publish_census(census.as_ref(), &self.clock);
        }
    }
}

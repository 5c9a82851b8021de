//! Everything that happens by time alone.

use model::Instant;

use crate::engine::Engine;
use crate::queue_metrics::QueuedBy;
use crate::record::Stage;

struct Timer {
    /// When there is something to do next.
    due: fn(&Engine) -> Option<Instant>,
    /// Does what is due now, if anything is.
    fire: fn(&mut Engine),
    /// Why Pods that it queues are queued.
    cause: QueuedBy,
}

/// In the order in which they fire.
const TIMERS: [Timer; 11] = [
    Timer {
        due: |engine| engine.queues.backoff.next_due(),
        fire: Engine::end_backoffs,
        cause: QueuedBy::BackoffComplete,
    },
    Timer {
        due: |engine| engine.outbox.reports.next_due(),
        fire: |engine| engine.outbox.reports.advance(engine.now),
        cause: QueuedBy::BackoffComplete,
    },
    Timer {
        due: |engine| engine.outbox.uses.next_due(),
        fire: |engine| engine.outbox.uses.advance(engine.now),
        cause: QueuedBy::BackoffComplete,
    },
    // What a daemon said is too old to be believed.
    Timer {
        due: |engine| engine.observed.objects.next_stale(engine.now),
        fire: Engine::note_freshness,
        cause: QueuedBy::Object,
    },
    // A floor that follows the clock.
    Timer {
        due: |engine| engine.observed.objects.next_window(),
        fire: Engine::turn_windows,
        cause: QueuedBy::Object,
    },
    Timer {
        due: |engine| engine.observed.foreign.next_due(engine.now),
        fire: Engine::age_foreign,
        cause: QueuedBy::NodeUpdate,
    },
    Timer {
        due: |engine| engine.queues.awaited.next_due(),
        fire: Engine::end_overdue_claims,
        cause: QueuedBy::AttemptFailure,
    },
    Timer {
        due: |engine| engine.outbox.evictions.next_due(),
        fire: |engine| engine.outbox.evictions.advance(engine.now),
        cause: QueuedBy::NodeUpdate,
    },
    Timer {
        due: |engine| engine.nominations.next_due(),
        fire: Engine::end_overdue_nominations,
        cause: QueuedBy::NodeUpdate,
    },
    Timer {
        due: |engine| engine.observed.excluded.next_due(),
        fire: |engine| {
            engine.readmit_due();
            engine.reconsider_nominations();
        },
        cause: QueuedBy::NodeUpdate,
    },
    Timer {
        due: |engine| Some(engine.queues.sweep_at).filter(|_| !engine.queues.parked.is_empty()),
        fire: Engine::sweep,
        cause: QueuedBy::Sweep,
    },
];

impl Engine {
    /// When to poll again though no event has come.
    pub fn poll_timeout(&self) -> Option<Instant> {
        TIMERS.iter().filter_map(|timer| (timer.due)(self)).min()
    }

    /// Lets time pass, up to now.
    pub(crate) fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        for timer in &TIMERS {
            self.queue_metrics.because_of(timer.cause);
            (timer.fire)(self);
        }
    }

    fn end_backoffs(&mut self) {
        while let Some(pod) = self.queues.backoff.pop_due(self.now) {
            self.move_to(&pod, Stage::Active);
        }
    }
}

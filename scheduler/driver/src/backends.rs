//! The Leases of the daemons behind objects: how long ago each was renewed.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use model::ObjectKind;
use tokio::time::Instant;

/// A daemon that renews a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Backend {
    Corrd,
    Memqosd,
    Attestd,
}

impl Backend {
    pub fn of_lease(lease: &str) -> Option<Self> {
        match lease {
            crds::backend_lease::CORRD => Some(Self::Corrd),
            crds::backend_lease::MEMQOSD => Some(Self::Memqosd),
            crds::backend_lease::ATTESTD => Some(Self::Attestd),
            _ => None,
        }
    }

    /// Which objects it speaks for.
    pub fn objects(self) -> Option<ObjectKind> {
        match self {
            Self::Corrd => Some(ObjectKind::Corridor),
            Self::Memqosd => Some(ObjectKind::MemoryBundle),
            Self::Attestd => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Corrd => "corrd",
            Self::Memqosd => "memqosd",
            Self::Attestd => "attestd",
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Renewals {
    last: BTreeMap<Backend, Renewal>,
}

#[derive(Clone, Copy, Debug)]
struct Renewal {
    /// By the clock of its holder.
    stamp: Timestamp,
    seen: Instant,
    renewed: Instant,
}

impl Renewals {
    /// How long ago it was renewed, if this tells of a renewal: seen again, it is not fresher than it was.
    ///
    /// By the wall clocks it was `age` ago, and they may step or disagree. But it was renewed after the one before was
    /// seen, so at most as long ago as that.
    pub fn sees(
        &mut self,
        backend: Backend,
        stamp: Timestamp,
        age: Duration,
        now: Instant,
    ) -> Option<Duration> {
        let before = self.last.get(&backend);
        if before.is_some_and(|before| before.stamp == stamp) {
            return None;
        }
        let age = before.map_or(age, |before| age.min(now.saturating_duration_since(before.seen)));
        let renewed = now.checked_sub(age).unwrap_or(now);
        self.last.insert(backend, Renewal { stamp, seen: now, renewed });
        Some(age)
    }

    pub fn gone(&mut self, backend: Backend) {
        self.last.remove(&backend);
    }

    /// When each was renewed last.
    pub fn all(&self) -> impl Iterator<Item = (Backend, Instant)> {
        self.last.iter().map(|(backend, renewal)| (*backend, renewal.renewed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);
    const TURN: Duration = Duration::from_secs(5);

    fn stamp(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_renewal_makes_a_lease_fresher() {
        let (mut renewals, now) = (Renewals::default(), Instant::now());
        let mut sees = |second, now| renewals.sees(Backend::Corrd, stamp(second), TURN, now);
        assert_eq!(sees(0, now), Some(TURN));
        assert_eq!(sees(0, now + TURN), None);
        assert_eq!(sees(5, now + HOUR), Some(TURN));
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_steps_makes_no_renewed_lease_stale() {
        let (mut renewals, now) = (Renewals::default(), Instant::now());
        let first = renewals.sees(Backend::Corrd, stamp(7_200), Duration::ZERO, now);
        assert_eq!(first, Some(Duration::ZERO));
        // Ours steps ahead: every renewal looks an hour old.
        let next = renewals.sees(Backend::Corrd, stamp(7_205), HOUR, now + TURN);
        assert_eq!(next, Some(TURN));
        // Theirs steps back.
        let next = renewals.sees(Backend::Corrd, stamp(3_610), HOUR, now + 2 * TURN);
        assert_eq!(next, Some(TURN));
        // After a long absence, the clocks are all there is.
        let away = now + 2 * TURN + HOUR;
        let next = renewals.sees(Backend::Corrd, stamp(9_000), HOUR / 2, away);
        assert_eq!(next, Some(HOUR / 2));
    }
}

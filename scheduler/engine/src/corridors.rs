//! The Corridors, whether their figures can be trusted, and the lines in front of them.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{Corridor, CorridorPhase, CorridorUid, Gbps, Instant, ObjectKey};

use crate::line::Line;
use crate::rejection::CorridorCause;

/// A Corridor's status counts while corrd's Lease, renewed every 5 s, is younger than this.
pub const BACKEND_FRESH_FOR: Duration = Duration::from_secs(15);

#[derive(Debug, Default)]
pub(crate) struct Corridors {
    by_key: BTreeMap<ObjectKey, Corridor>,
    keys_by_uid: BTreeMap<CorridorUid, ObjectKey>,
    /// By key, not UID: Pods may wait for a Corridor that does not exist yet.
    lines: BTreeMap<ObjectKey, Line>,
    pub not_installed: bool,
    fresh_until: Option<Instant>,
}

/// What a Corridor can promise to Pods, all together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promise<'a> {
    pub corridor: &'a Corridor,
    pub reservable: Gbps,
}

impl Corridors {
    pub fn insert(&mut self, corridor: Corridor) -> Option<Corridor> {
        let before = self.remove(&corridor.key.clone());
        self.keys_by_uid.insert(corridor.uid.clone(), corridor.key.clone());
        self.by_key.insert(corridor.key.clone(), corridor);
        before
    }

    pub fn remove(&mut self, key: &ObjectKey) -> Option<Corridor> {
        let before = self.by_key.remove(key)?;
        self.keys_by_uid.remove(&before.uid);
        Some(before)
    }

    /// The same knowledge with nobody in line.
    pub fn without_lines(self) -> Self {
        Self { lines: BTreeMap::new(), ..self }
    }

    pub fn get(&self, key: &ObjectKey) -> Option<&Corridor> {
        self.by_key.get(key)
    }

    pub fn key_of(&self, uid: &CorridorUid) -> Option<&ObjectKey> {
        self.keys_by_uid.get(uid)
    }

    pub fn keys_with_lines(&self) -> Vec<ObjectKey> {
        self.lines.keys().cloned().collect()
    }

    pub fn line(&self, key: &ObjectKey) -> Option<&Line> {
        self.lines.get(key)
    }

    /// Changes the line; one that is empty afterwards is dropped.
    pub fn with_line<R>(&mut self, key: &ObjectKey, change: impl FnOnce(&mut Line) -> R) -> R {
        let line = self.lines.entry(key.clone()).or_default();
        let result = change(line);
        if line.is_empty() {
            self.lines.remove(key);
        }
        result
    }

    pub fn backend_seen(&mut self, now: Instant, age: Duration) {
        self.fresh_until = Some(now + BACKEND_FRESH_FOR.saturating_sub(age));
    }

    pub fn backend_gone(&mut self) {
        self.fresh_until = None;
    }

    pub fn fresh_until(&self) -> Option<Instant> {
        self.fresh_until
    }

    pub fn is_fresh(&self, now: Instant) -> bool {
        self.fresh_until.is_some_and(|until| now < until)
    }

    /// What the Corridor promises now, or why it promises nothing.
    ///
    /// It is the whole floor or nothing: what corrd measures above the floor is noise,
    /// and below it the floor is not met for anybody.
    pub fn promise(&self, key: &ObjectKey, now: Instant) -> Result<Promise<'_>, CorridorCause> {
        if self.not_installed {
            return Err(CorridorCause::NotInstalled);
        }
        let corridor = self.by_key.get(key).ok_or(CorridorCause::NotFound)?;
        if corridor.deleting || corridor.phase == CorridorPhase::Releasing {
            return Err(CorridorCause::Releasing);
        }
        if !self.is_fresh(now) {
            return Err(CorridorCause::Stale);
        }
        if corridor.achievable < corridor.floor() {
            return Err(CorridorCause::BelowFloor);
        }
        if corridor.phase != CorridorPhase::Ready {
            return Err(CorridorCause::NotReady);
        }
        Ok(Promise { corridor, reservable: corridor.floor() })
    }
}

/// Who may use whose corridor. Other namespaces are refused until an AttestationPolicy of the
/// owner can let them in.
pub(crate) fn may_use(pod_namespace: &str, corridor: &ObjectKey) -> bool {
    *corridor.namespace == *pod_namespace
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::CorridorBuilder;

    fn cause(corridor: Corridor, age: Duration) -> Result<Gbps, CorridorCause> {
        let mut corridors = Corridors::default();
        let key = corridor.key.clone();
        corridors.insert(corridor);
        corridors.backend_seen(Instant::START, age);
        corridors.promise(&key, Instant::START).map(|promise| promise.reservable)
    }

    #[test]
    fn promises_the_floor_or_nothing() {
        let ready = || CorridorBuilder::new("a/c1", 100);
        let now = Duration::ZERO;
        assert_eq!(cause(ready().achievable(140.0).build(), now), Ok(Gbps::from_whole(100)));
        assert_eq!(cause(ready().achievable(99.9).build(), now), Err(CorridorCause::BelowFloor));
        assert_eq!(cause(ready().deleting().build(), now), Err(CorridorCause::Releasing));
        assert_eq!(
            cause(ready().phase(CorridorPhase::Degraded).build(), now),
            Err(CorridorCause::NotReady)
        );
        assert_eq!(cause(ready().build(), Duration::from_secs(15)), Err(CorridorCause::Stale));
    }

    #[test]
    fn a_raised_floor_promises_nothing_more_until_corrd_confirms_it() {
        let raised = CorridorBuilder::new("a/c1", 200).confirmed(100.0).achievable(150.0).build();
        assert_eq!(cause(raised, Duration::ZERO), Ok(Gbps::from_whole(100)));
    }
}

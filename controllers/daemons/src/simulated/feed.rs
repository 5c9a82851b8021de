//! The telemetry of all objects as one feed with revisions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;

use super::ledger::Ledger;
use super::records::Change;
use super::{memory, photonics};
use crate::corrd::CorridorTelemetry;
use crate::memqosd::BundleTelemetry;
use crate::telemetry::{Revision, TelemetryPage};

/// One sample per object in this time, unless a floor is crossed.
const SAMPLE_PERIOD_S: i64 = 10;
/// A reader that missed more releases than these gets everything anew.
const GONE_MAX: usize = 4096;

/// What was last told about every object.
#[derive(Debug, Default)]
pub(super) struct Feed {
    /// Differs from that of every other start, so that old revisions are recognised.
    epoch: String,
    revision: u64,
    seed: u64,
    corridors: BTreeMap<String, Told<CorridorTelemetry>>,
    bundles: BTreeMap<String, Told<BundleTelemetry>>,
    violations: BTreeMap<String, u64>,
    gone: VecDeque<(u64, String)>,
    /// Readers before this revision cannot be told what is gone.
    complete_from: u64,
    /// Changed since they were last looked at.
    touched: BTreeSet<String>,
    period: i64,
}

#[derive(Debug)]
struct Told<T> {
    revision: u64,
    below_floor: bool,
    sample: T,
}

impl Feed {
    pub(super) fn new(epoch: String, seed: u64) -> Self {
        Self { epoch, seed, period: i64::MIN, ..Self::default() }
    }

    /// Notes that an object has changed; [`Feed::look`] decides whether that is news.
    pub(super) fn touch(&mut self, change: &Change) {
        let id = match change {
            Change::PutCorridor(record) => &record.id,
            Change::PutBundle(record) => &record.handle,
            Change::DropCorridor(id) | Change::DropBundle(id) => id,
            _ => return,
        };
        self.touched.insert(id.clone());
    }

    pub(super) fn touch_ids<'a>(&mut self, ids: impl Iterator<Item = &'a String>) {
        self.touched.extend(ids.cloned());
    }

    /// Samples what is due. Returns whether readers have something new to see.
    pub(super) fn look(&mut self, ledger: &Ledger, now: Timestamp) -> bool {
        let period = now.as_second().div_euclid(SAMPLE_PERIOD_S);
        let everything = period != self.period;
        if !everything && self.touched.is_empty() {
            return false;
        }
        self.period = period;
        let next = self.revision + 1;
        let touched = std::mem::take(&mut self.touched);
        let mut news = self.drop_gone(ledger, &touched, next);
        if everything {
            for id in ledger.corridors.keys() {
                news |= self.look_at_corridor(ledger, id, now, next, true);
            }
            for handle in ledger.bundles.keys() {
                news |= self.look_at_bundle(ledger, handle, now, next, true);
            }
        } else {
            for id in &touched {
                news |= self.look_at_corridor(ledger, id, now, next, false);
                news |= self.look_at_bundle(ledger, id, now, next, false);
            }
        }
        if news {
            self.revision = next;
        }
        news
    }

    fn drop_gone(&mut self, ledger: &Ledger, touched: &BTreeSet<String>, next: u64) -> bool {
        let mut news = false;
        for id in touched {
            let kept = ledger.corridors.contains_key(id) || ledger.bundles.contains_key(id);
            let told = self.corridors.contains_key(id) || self.bundles.contains_key(id);
            if kept || !told {
                continue;
            }
            self.corridors.remove(id);
            self.bundles.remove(id);
            self.violations.remove(id);
            self.gone.push_back((next, id.clone()));
            news = true;
        }
        while self.gone.len() > GONE_MAX {
            let dropped = self.gone.pop_front();
            self.complete_from = dropped.map_or(self.complete_from, |(revision, _)| revision);
        }
        news
    }

    fn look_at_corridor(
        &mut self,
        ledger: &Ledger,
        id: &str,
        now: Timestamp,
        next: u64,
        due: bool,
    ) -> bool {
        let Some(record) = ledger.corridors.get(id) else { return false };
        let sample = photonics::sample(self.seed, record, now);
        let below_floor = sample.is_below_floor();
        let crossed = self.corridors.get(id).is_none_or(|told| told.below_floor != below_floor);
        if !due && !crossed {
            return false;
        }
        self.corridors.insert(id.to_owned(), Told { revision: next, below_floor, sample });
        true
    }

    fn look_at_bundle(
        &mut self,
        ledger: &Ledger,
        handle: &str,
        now: Timestamp,
        next: u64,
        due: bool,
    ) -> bool {
        let Some(record) = ledger.bundles.get(handle) else { return false };
        let mut sample = memory::sample(self.seed, record, 0, now);
        let below_floor = sample.is_below_floor();
        let before = self.bundles.get(handle).map(|told| told.below_floor);
        if below_floor && before != Some(true) {
            *self.violations.entry(handle.to_owned()).or_default() += 1;
        }
        if !due && before == Some(below_floor) {
            return false;
        }
        sample.qos_violations = self.violations(handle);
        self.bundles.insert(handle.to_owned(), Told { revision: next, below_floor, sample });
        true
    }

    pub(super) fn violations(&self, handle: &str) -> u64 {
        self.violations.get(handle).copied().unwrap_or_default()
    }

    /// What is new to a reader. `None`: nothing.
    pub(super) fn news_since(&self, since: Option<&Revision>) -> Option<TelemetryPage> {
        let known = since.and_then(|since| self.known(since));
        let known = known.filter(|revision| *revision >= self.complete_from);
        match known {
            None => Some(self.page(None)),
            Some(revision) if revision < self.revision => Some(self.page(Some(revision))),
            Some(_) => None,
        }
    }

    /// A page that says that nothing is new.
    pub(super) fn nothing_new(&self) -> TelemetryPage {
        TelemetryPage { revision: self.now(), ..TelemetryPage::default() }
    }

    /// The number in a revision of this epoch that was really given out.
    fn known(&self, since: &Revision) -> Option<u64> {
        let (epoch, number) = since.0.rsplit_once('-')?;
        let number = number.parse().ok()?;
        (epoch == self.epoch && number <= self.revision).then_some(number)
    }

    fn now(&self) -> Revision {
        Revision(format!("{}-{}", self.epoch, self.revision))
    }

    fn page(&self, since: Option<u64>) -> TelemetryPage {
        let is_new = |revision: u64| since.is_none_or(|since| revision > since);
        let gone = self.gone.iter().filter(|(revision, _)| since.is_some() && is_new(*revision));
        TelemetryPage {
            revision: self.now(),
            full: since.is_none(),
            corridors: fresh(&self.corridors, is_new),
            bundles: fresh(&self.bundles, is_new),
            gone: gone.map(|(_, id)| id.clone()).collect(),
        }
    }
}

fn fresh<T: Clone>(told: &BTreeMap<String, Told<T>>, is_new: impl Fn(u64) -> bool) -> Vec<T> {
    told.values().filter(|told| is_new(told.revision)).map(|told| told.sample.clone()).collect()
}

#[cfg(test)]
mod tests;

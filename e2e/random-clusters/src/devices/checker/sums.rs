//! What claims may have together.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::{items, milli, text};
use super::amounts::consumed;
use super::{Id, Judge, Rule, has_admin_access, id, is_shared};

/// Who has a device.
#[derive(Debug, Default)]
struct Uses<'a> {
    /// Results of claims that were allocated before.
    before: Vec<&'a Value>,
    /// Of these claims, with their places.
    now: Vec<(usize, &'a Value)>,
}

impl Uses<'_> {
    fn takes_now(&self) -> bool {
        self.now.iter().any(|(_, it)| !has_admin_access(it))
    }
}

impl Judge<'_> {
    pub(super) fn sums(&mut self, allocations: &[Value]) {
        let mut uses: BTreeMap<Id, Uses> = BTreeMap::new();
        for claim in items(&self.case["allocated"]) {
            for result in items(&claim["status"]["allocation"]["devices"]["results"]) {
                if !has_admin_access(result) {
                    uses.entry(id(result)).or_default().before.push(result);
                }
            }
        }
        for (place, allocation) in allocations.iter().enumerate() {
            for result in items(&allocation["devices"]["results"]) {
                uses.entry(id(result)).or_default().now.push((place, result));
            }
        }
        for (id, uses) in &uses {
            if let Some((_, device)) = self.view.devices.get(id).copied() {
                self.device(id, device, uses);
            }
        }
        self.counters(&uses);
    }

    fn device(&mut self, id: &Id, device: &Value, uses: &Uses) {
        let taking: Vec<&Value> =
            uses.now.iter().map(|(_, it)| *it).filter(|it| !has_admin_access(it)).collect();
        let shown = || format!("{id:?}");
        if !is_shared(device) {
            let holders = uses.before.len() + taking.len();
            self.require(taking.is_empty() || holders == 1, Rule::InUse, shown);
            let is_once = |(claim, _): &(usize, &Value)| {
                uses.now.iter().filter(|it| it.0 == *claim).count() == 1
            };
            return self.require(uses.now.iter().all(is_once), Rule::Repeated, shown);
        }
        let is_whole = uses.before.iter().any(|it| it["shareID"].is_null());
        self.require(taking.is_empty() || !is_whole, Rule::InUse, shown);
        for (name, capacity) in device["capacity"].as_object().into_iter().flatten() {
            let shares = uses.before.iter().copied().chain(taking.iter().copied());
            let sum: i128 = shares.filter_map(|it| consumed(it).get(name.as_str()).copied()).sum();
            let value = milli(text(&capacity["value"])).unwrap_or_default();
            self.require(taking.is_empty() || sum <= value, Rule::Capacity, || {
                format!("{id:?} {name}")
            });
        }
    }

    /// No counter that a device draws from only now is overdrawn.
    fn counters(&mut self, uses: &BTreeMap<Id, Uses>) {
        let mut overdrawn = vec![];
        for slices in &self.view.published {
            let mut left: BTreeMap<[&str; 2], i128> = BTreeMap::new();
            for set in slices.iter().flat_map(|it| items(&it["sharedCounters"])) {
                for (counter, it) in set["counters"].as_object().into_iter().flatten() {
                    let total = milli(text(&it["value"])).unwrap_or_default();
                    left.insert([text(&set["name"]), counter], total);
                }
            }
            let in_use = |it: &Id| uses.get(it).is_some_and(|it| !it.before.is_empty());
            for spec in slices {
                for device in items(&spec["devices"]) {
                    let id = [&spec["driver"], &spec["pool"]["name"], &device["name"]].map(text);
                    let before = drawn(device).filter(|_| in_use(&id));
                    before
                        .for_each(|(counter, amount)| *left.entry(counter).or_default() -= amount);
                }
            }
            let mut newly = vec![];
            let of_pool = |it: &Id| {
                slices
                    .iter()
                    .any(|spec| [&spec["driver"], &spec["pool"]["name"]].map(text) == it[..2])
            };
            for (id, _) in
                uses.iter().filter(|(id, it)| it.takes_now() && !in_use(id) && of_pool(id))
            {
                let device = self.view.devices.get(id).map(|(_, device)| *device);
                for (counter, amount) in device.into_iter().flat_map(drawn) {
                    *left.entry(counter).or_default() -= amount;
                    newly.push(counter);
                }
            }
            overdrawn.extend(
                newly.into_iter().filter(|it| left.get(it) < Some(&0)).map(|it| format!("{it:?}")),
            );
        }
        self.require(overdrawn.is_empty(), Rule::Counters, || overdrawn.join(", "));
    }
}

/// Counter sets and counters with amounts.
fn drawn(device: &Value) -> impl Iterator<Item = ([&str; 2], i128)> {
    items(&device["consumesCounters"]).iter().flat_map(|drawn| {
        let counters = drawn["counters"].as_object().into_iter().flatten();
        counters.map(|(counter, it)| {
            let amount = milli(text(&it["value"])).unwrap_or_default();
            ([text(&drawn["counterSet"]), counter.as_str()], amount)
        })
    })
}

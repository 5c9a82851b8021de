//! Counters that the devices of a pool draw from together.

use std::collections::BTreeMap;

use model::{CounterUse, DeviceId, Quantity};

use super::TakenDevices;
use super::ask::Ask;
use super::chosen::Chosen;
use super::node_pools::{NodeDevice, NodePools};

/// By counter sets and counters.
type Drawn<'a> = BTreeMap<(&'a str, &'a str), Quantity>;

/// Whether the counters that the device draws from have enough left.
///
/// What allocated devices draw is read from the slices: those that are no longer published draw nothing.
pub(super) fn has_left(
    taken: &TakenDevices,
    pools: &NodePools,
    chosen: &Chosen,
    ask: &Ask,
    device: &NodeDevice,
) -> bool {
    let wanted = &device.device.consumes_counters;
    if wanted.is_empty() || ask.has_admin_access {
        return true;
    }
    let newly_drawing = chosen.newly_drawing(taken, pools, device.pool);
    // Several claims share a device that draws once.
    let is_charged =
        taken.device(&device.id).is_some() || newly_drawing.iter().any(|it| it.id == device.id);
    if is_charged {
        return true;
    }
    let mut drawn = drawn_before(taken, pools, device.pool);
    for it in &newly_drawing {
        add(&mut drawn, &it.device.consumes_counters);
    }
    add(&mut drawn, wanted);
    wanted.iter().all(|of_set| {
        of_set.counters.keys().all(|counter| {
            let set = of_set.counter_set.as_ref();
            let in_all = drawn.get(&(set, counter.as_ref())).copied().unwrap_or_default();
            in_all <= device.counter(pools, set, counter)
        })
    })
}

/// What the devices of a pool draw that claims have.
fn drawn_before<'a>(taken: &TakenDevices, pools: &NodePools<'a>, pool: usize) -> Drawn<'a> {
    let mut drawn = Drawn::new();
    for slice in pools.published(pool) {
        for device in slice.devices.iter().filter(|it| !it.consumes_counters.is_empty()) {
            let (driver, pool) = (slice.driver.clone(), slice.pool.clone());
            let id = DeviceId { driver, pool, device: device.name.clone() };
            if taken.device(&id).is_some() {
                add(&mut drawn, &device.consumes_counters);
            }
        }
    }
    drawn
}

fn add<'a>(drawn: &mut Drawn<'a>, uses: &'a [CounterUse]) {
    for of_set in uses {
        for (counter, amount) in &of_set.counters {
            let sum = drawn.entry((of_set.counter_set.as_ref(), counter.as_ref())).or_default();
            *sum = sum.saturating_add(*amount);
        }
    }
}

//! Faults on demand: what networks and daemons do on bad days.

use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;

/// More orders than this at once are a mistake of the test.
const ORDERS_MAX: usize = 1024;
const SLOW_DEFAULT: Duration = Duration::from_secs(30);

/// Body of `POST /admin/faults`: the next `count` calls of `route` go wrong.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FaultOrder {
    pub kind: FaultKind,
    /// `POST /v1/corridors`, or `/v1/corridors` for every method, or `*`. With the contract's
    /// placeholders: `DELETE /v1/corridors/{id}`.
    pub route: String,
    #[serde(default = "once")]
    pub count: u32,
    /// For `slow`.
    #[serde(default)]
    pub delay_ms: Option<u64>,
}

const fn once() -> u32 {
    1
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FaultKind {
    /// The call is carried out, then the connection breaks.
    LostReply,
    /// The call is carried out late.
    Slow,
    /// The call is not carried out.
    #[serde(rename = "http_5xx")]
    Http5xx,
    /// The call is carried out, the reply is nonsense with status 200.
    Garbage,
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    orders: Mutex<Vec<FaultOrder>>,
}

impl Faults {
    /// Whether there was room for it.
    pub(super) fn order(&self, order: FaultOrder) -> bool {
        let mut orders = self.orders.lock();
        let room = orders.len() < ORDERS_MAX;
        if room {
            orders.push(order);
        }
        room
    }

    pub(super) fn clear(&self) {
        self.orders.lock().clear();
    }

    /// What the oldest matching order makes of this call, and for a slow one how slow.
    pub(super) fn strike(&self, method: &str, path: &str) -> Option<(FaultKind, Duration)> {
        let mut orders = self.orders.lock();
        orders.retain(|order| order.count > 0);
        let order = orders.iter_mut().find(|order| matches(&order.route, method, path))?;
        order.count -= 1;
        Some((order.kind, order.delay_ms.map_or(SLOW_DEFAULT, Duration::from_millis)))
    }
}

fn matches(route: &str, method: &str, path: &str) -> bool {
    match route.split_once(' ') {
        Some((wanted, rest)) => wanted.eq_ignore_ascii_case(method) && rest == path,
        None => route == "*" || route == path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(kind: FaultKind, route: &str, count: u32) -> FaultOrder {
        FaultOrder { kind, route: route.into(), count, delay_ms: None }
    }

    #[test]
    fn a_fault_strikes_as_often_as_ordered_and_only_its_route() {
        let faults = Faults::default();
        faults.order(order(FaultKind::LostReply, "POST /v1/corridors", 2));
        let strike = |method| faults.strike(method, "/v1/corridors").map(|(kind, _)| kind);
        assert_eq!(strike("GET"), None);
        assert_eq!(strike("POST"), Some(FaultKind::LostReply));
        assert_eq!(strike("POST"), Some(FaultKind::LostReply));
        assert_eq!(strike("POST"), None);
    }

    #[test]
    fn orders_are_bounded_and_can_be_cleared() {
        let faults = Faults::default();
        for _ in 0..ORDERS_MAX {
            assert!(faults.order(order(FaultKind::Http5xx, "*", 1)));
        }
        assert!(!faults.order(order(FaultKind::Http5xx, "*", 1)));
        faults.clear();
        assert_eq!(faults.strike("GET", "/v1/devices"), None);
    }
}

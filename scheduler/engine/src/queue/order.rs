use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

/// A Pod's place among all others: the more important first, then the earlier.
///
/// `first_seen` is unique in the process, so this order is total: no two runs can differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Order {
    priority: Reverse<i32>,
    created_at_unix_s: i64,
    first_seen: u64,
}

impl Order {
    pub fn new(priority: i32, created_at_unix_s: i64, first_seen: u64) -> Self {
        Self { priority: Reverse(priority), created_at_unix_s, first_seen }
    }

    pub fn priority(self) -> i32 {
        self.priority.0
    }

    /// The same arrival under another priority.
    pub fn with_priority(self, priority: i32) -> Self {
        Self { priority: Reverse(priority), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priority_comes_before_age_and_age_before_first_sight() {
        let mut order =
            [Order::new(0, 10, 1), Order::new(0, 5, 2), Order::new(9, 20, 3), Order::new(0, 5, 0)];
        order.sort();
        let seen: Vec<u64> = order.iter().map(|order| order.first_seen).collect();
        assert_eq!(seen, [3, 0, 2, 1]);
    }
}

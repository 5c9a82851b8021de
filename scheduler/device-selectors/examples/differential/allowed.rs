//! The differences that we know of and keep. Everything else is a fault of ours.

use crate::compare::Difference;

pub struct Allowed {
    pub name: &'static str,
    /// Why we do not follow.
    #[expect(dead_code, reason = "for whoever reads this list")]
    pub why: &'static str,
    covers: fn(&Difference<'_>) -> bool,
}

/// The API server accepts no expression that it estimates at more.
const COST_MAX: u64 = 1_000_000;

/// Types are checked by the API server, with the compiler that refuses here.
pub const REFUSED_BY_API_SERVER: &str = "refused by the API server, accepted here";

pub const ALLOWED: [Allowed; 5] = [
    Allowed {
        name: "kube-scheduler's verdict changes from run to run",
        why: "Maps of Go have no order. Ours are sorted by their keys.",
        covers: |it| it.unstable,
    },
    Allowed {
        name: "kube-scheduler changes a Quantity of the device",
        why: "add() and sub() write their result also into their object, if that is held in the \
              slow form, as fractions of binary units are. What is read of it later depends on \
              what was evaluated before, even for another Pod.",
        covers: |it| it.changed,
    },
    Allowed {
        name: "kube-scheduler panics in sort(), sortBy() or distinct()",
        why: "They take the cost of a list that could not be computed, and the panic ends the \
              evaluation. Here the failure of the list is like any other, which `||` can absorb.",
        covers: |it| it.theirs.contains("interface conversion: *types.Err is not traits.Lister"),
    },
    Allowed {
        name: "too expensive for both the API server and us",
        why: "kube-scheduler makes no estimate: such an expression never gets to it.",
        covers: |it| it.cost > COST_MAX && it.ours.contains("exceeds cost limit"),
    },
    Allowed {
        name: "kube-scheduler appends to a bound list",
        why: "cel-go takes an empty list that cel.bind() names for the accumulator of a loop: \
              `x + [1]` changes x. Here it does not.",
        covers: |it| adds_to_bound(it.expression),
    },
];

/// Whether a variable of `cel.bind()` is the left side of a sum.
fn adds_to_bound(expression: &str) -> bool {
    let bound = expression.split("cel.bind(").skip(1).filter_map(|it| it.split_once(','));
    let mut names = bound.map(|(name, _)| name);
    names.any(|name| expression.contains(&format!("({name} + ")))
}

pub fn find(difference: &Difference<'_>) -> Option<&'static Allowed> {
    ALLOWED.iter().find(|entry| (entry.covers)(difference))
}

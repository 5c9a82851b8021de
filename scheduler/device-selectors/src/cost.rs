//! What an expression can cost at most, estimated before it is evaluated.

use crate::budget::COST_MAX;
use crate::functions::Function;
use crate::node::{Fold, Node};
use crate::value::Value;

/// Maps of a device have at most 32 entries; names and values have at most 64 characters.
const DEVICE: Size = Size { own: 32, inside: 64, lists: 0, is_list: false };
/// What nothing is known of.
const UNKNOWN: Size = Size { own: 64, inside: 64, lists: 0, is_list: false };

/// Elements, entries or characters of a value.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    own: u64,
    /// Of the largest value in it.
    inside: u64,
    /// Of the largest list in it.
    lists: u64,
    is_list: bool,
}

impl Size {
    /// Of what has no parts that count.
    fn flat(own: u64) -> Self {
        Self { own, ..Self::default() }
    }

    fn list(own: u64, inside: Self) -> Self {
        Self { own, is_list: true, ..inside }
    }

    fn element(self) -> Self {
        Self { own: self.inside, is_list: self.lists > 0, ..self }
    }

    fn join(self, other: Self) -> Self {
        Self {
            own: self.own.max(other.own),
            inside: self.inside.max(other.inside),
            lists: self.lists.max(other.lists),
            is_list: self.is_list || other.is_list,
        }
    }

    /// One element more.
    fn containing(self, element: Self) -> Self {
        let list = if element.is_list { element.own } else { 0 };
        Self {
            own: self.own.saturating_add(1),
            inside: self.inside.max(element.own).max(element.inside),
            lists: self.lists.max(element.lists).max(list),
            is_list: self.is_list,
        }
    }
}

/// A list with nothing in it yet.
const LIST: Size = Size { own: 0, inside: 0, lists: 0, is_list: true };

/// Refuses what could cost more than an evaluation may.
pub(crate) fn check(root: &Node, registers: usize) -> Result<(), String> {
    let mut estimate = Estimate { sizes: vec![Size::default(); registers], cost: 0 };
    estimate.visit(root);
    if estimate.cost > COST_MAX {
        return Err(format!("too complex, exceeds cost limit of {COST_MAX}"));
    }
    Ok(())
}

struct Estimate {
    /// By register.
    sizes: Vec<Size>,
    cost: u64,
}

impl Estimate {
    fn spend(&mut self, steps: u64) {
        self.cost = self.cost.saturating_add(steps);
    }

    fn set(&mut self, register: usize, size: Size) {
        if let Some(place) = self.sizes.get_mut(register) {
            *place = size;
        }
    }

    fn all<'a>(&mut self, nodes: impl IntoIterator<Item = &'a Node>) -> Vec<Size> {
        nodes.into_iter().map(|it| self.visit(it)).collect()
    }

    fn visit(&mut self, node: &Node) -> Size {
        self.spend(1);
        match node {
            Node::Constant(value) => of_value(value),
            Node::Device => DEVICE,
            Node::Variable(register) | Node::Temporary(register) => {
                self.sizes.get(*register).copied().unwrap_or(UNKNOWN)
            }
            Node::Path(path) => {
                let base = self.visit(&path.base);
                self.all(path.steps.iter().map(|it| &it.key));
                base.element().join(base)
            }
            Node::And(sides) | Node::Or(sides) | Node::Ordered(_, sides) => {
                self.all(&**sides);
                Size::default()
            }
            Node::Not(inner) | Node::NotStrictlyFalse(inner) | Node::Negate(inner) => {
                self.visit(inner);
                Size::default()
            }
            Node::Conditional(parts) => {
                let [condition, one, other] = &**parts;
                self.visit(condition);
                self.visit(one).join(self.visit(other))
            }
            Node::Equal(sides) | Node::NotEqual(sides) | Node::In(sides) => {
                let least = self.all(&**sides).iter().map(|it| it.own).min().unwrap_or(0);
                self.spend(least);
                Size::default()
            }
            Node::InConstants(needle, _) => {
                self.visit(needle);
                Size::default()
            }
            Node::List(elements) => {
                let sizes = self.all(elements.iter().map(|it| &it.value));
                sizes.into_iter().fold(LIST, Size::containing)
            }
            Node::Map(entries) => {
                let sizes = self.all(entries.iter().flat_map(|it| [&it.key, &it.value]));
                sizes.into_iter().fold(Size::default(), Size::containing)
            }
            Node::Arithmetic(_, sides)
            | Node::OptionalOr(sides)
            | Node::OptionalOrValue(sides)
            | Node::InsertEntries(sides) => self.sum(&**sides),
            Node::Call(function, args) => self.call(*function, args),
            Node::MatchConstant(text, _, _) => {
                let text = self.visit(text);
                self.spend(text.own);
                text.element().join(text)
            }
            Node::Bind(bind) => {
                let value = self.visit(&bind.value);
                self.set(bind.register, value);
                self.visit(&bind.result)
            }
            Node::Fold(fold) => self.fold(fold),
            Node::InsertEntry(parts) => self.sum(&**parts),
        }
    }

    /// Of parts that are put together.
    fn sum(&mut self, parts: &[Node]) -> Size {
        let sizes = self.all(parts);
        let own = sizes.iter().fold(0_u64, |sum, it| sum.saturating_add(it.own));
        self.spend(own / 10);
        let joined = sizes.into_iter().fold(Size::default(), Size::join);
        Size { own, ..joined }
    }

    fn call(&mut self, function: Function, args: &[Node]) -> Size {
        let sizes = self.all(args);
        let joined = sizes.iter().copied().fold(Size::default(), Size::join);
        let product = sizes.iter().fold(1_u64, |all, it| all.saturating_mul(it.own.max(1)));
        let size_at = |at: usize| sizes.get(at).copied().unwrap_or_default();
        let (steps, size) = match function {
            Function::Range => {
                let length = match args {
                    [Node::Constant(Value::Int(it))] => u64::try_from(*it).unwrap_or(0),
                    _ => u64::MAX,
                };
                (length, Size::list(length, Size::default()))
            }
            Function::SetContains | Function::SetEquivalent | Function::SetIntersects => {
                (product.saturating_mul(2), Size::default())
            }
            Function::Distinct => {
                let list = size_at(0);
                (list.own.saturating_mul(list.own), list)
            }
            Function::Join => {
                let (list, separator) = (size_at(0), size_at(1));
                let own = list.own.saturating_mul(list.inside.saturating_add(separator.own));
                (own / 10, Size::flat(own))
            }
            Function::Flatten => {
                let list = size_at(0);
                let own = list.own.saturating_mul(list.lists.max(1));
                (own, Size { own, ..list })
            }
            Function::Replace => {
                let (this, new) = (size_at(0), size_at(2));
                let own = this.own.saturating_add(1).saturating_mul(new.own.max(1));
                (own / 10, Size::flat(own))
            }
            Function::Split | Function::FindAll => {
                (joined.own, Size { inside: joined.own, ..Size::list(joined.own, Size::default()) })
            }
            Function::Slice | Function::Sort | Function::SortByKeys | Function::Reverse => {
                let list = size_at(0);
                (list.own.saturating_mul(u64::from(list.own.max(2).ilog2())), list)
            }
            _ if function.is_scalar() => (joined.own / 10 + 1, Size::default()),
            _ => (joined.own / 10 + 1, joined.element().join(joined)),
        };
        self.spend(steps);
        size
    }

    fn fold(&mut self, fold: &Fold) -> Size {
        let range = self.visit(&fold.range);
        let initial = self.visit(&fold.initial);
        self.set(fold.accumulator, initial);
        self.set(fold.first, range.element());
        if let Some(register) = fold.second {
            self.set(register, range.element());
        }
        let before = self.cost;
        self.visit(&fold.condition);
        let step = self.visit(&fold.step);
        let turn = self.cost.saturating_sub(before);
        self.cost = before.saturating_add(turn.saturating_mul(range.own));
        let growth = step.own.saturating_sub(initial.own);
        let own = initial.own.saturating_add(growth.saturating_mul(range.own));
        self.set(fold.accumulator, Size { own, ..step });
        self.visit(&fold.result)
    }
}

fn of_value(value: &Value) -> Size {
    let own = |len: usize| u64::try_from(len).unwrap_or(u64::MAX);
    match value {
        Value::String(it) => Size::flat(own(it.len())),
        Value::Bytes(it) => Size::flat(own(it.len())),
        Value::List(it) => it.iter().map(of_value).fold(LIST, Size::containing),
        Value::Map(it) => it.entries.values().map(of_value).fold(UNKNOWN, Size::containing),
        _ => Size::default(),
    }
}

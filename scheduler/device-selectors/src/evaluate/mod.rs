//! The value of an expression for a type of device.

mod folds;
mod paths;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::arithmetic;
use crate::budget::Budget;
use crate::functions;
use crate::functions::contains;
use crate::node::{Comparison, Element, Entry, Node, Register};
use crate::order;
use crate::value::{Failure, Key, Map, Origin, Outcome, Value};

/// The value of a variable.
#[derive(Debug)]
enum Slot<'a> {
    Unset,
    /// To be computed by who reads it first.
    Pending(&'a Node),
    Ready(Outcome),
}

#[derive(Debug)]
pub(crate) struct Evaluation<'a> {
    device: &'a Value,
    slots: Vec<Slot<'a>>,
    budget: &'a mut Budget,
}

pub(crate) fn evaluate<'a>(
    node: &'a Node,
    registers: usize,
    device: &'a Value,
    budget: &'a mut Budget,
) -> Outcome {
    let slots = (0..registers).map(|_| Slot::Unset).collect();
    Evaluation { device, slots, budget }.eval(node)
}

/// Of what depends on no variable.
pub(crate) fn constant(node: &Node, budget: &mut Budget) -> Outcome {
    evaluate(node, 0, &Value::Null, budget)
}

impl<'a> Evaluation<'a> {
    fn eval(&mut self, node: &'a Node) -> Outcome {
        self.budget.spend(1)?;
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Device => Ok(self.device.clone()),
            Node::Variable(register) => Ok(paths::as_attribute(self.read(*register)?)),
            Node::Temporary(register) => self.read(*register),
            Node::Path(path) => self.path(path),
            Node::And(sides) => self.logical(sides, false),
            Node::Or(sides) => self.logical(sides, true),
            Node::Not(inner) => match self.eval(inner)? {
                Value::Bool(it) => Ok(Value::Bool(!it)),
                _ => Err(Failure::no_such_overload("!_")),
            },
            Node::NotStrictlyFalse(inner) => self.not_strictly_false(inner),
            Node::Conditional(parts) => self.conditional(parts),
            Node::Equal(sides) => {
                let (one, other) = self.both(sides)?;
                order::equal(&one, &other, self.budget).map(Value::Bool)
            }
            Node::NotEqual(sides) => self.not_equal(sides),
            Node::Ordered(comparison, sides) => self.ordered(*comparison, sides),
            Node::Arithmetic(operator, sides) => {
                let (one, other) = self.both(sides)?;
                arithmetic::calculate(*operator, &one, &other, self.budget)
            }
            Node::Negate(inner) => arithmetic::negate(&self.eval(inner)?),
            Node::In(sides) => self.membership(sides),
            Node::InConstants(needle, list) => self.among_constants(needle, list),
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::OptionalOr(sides) => self.optional_or(sides),
            Node::OptionalOrValue(sides) => self.optional_or_value(sides),
            Node::Call(function, args) => {
                let args: Result<Vec<Value>, Failure> =
                    args.iter().map(|it| self.eval(it)).collect();
                functions::call(*function, &args?, self.budget)
            }
            Node::MatchConstant(text, used, regex) => {
                let text = self.eval(text)?;
                functions::matched(&text, *used, regex, -1, self.budget)
            }
            Node::Bind(bind) => {
                self.write(bind.register, Slot::Pending(&bind.value));
                self.eval(&bind.result)
            }
            Node::Fold(fold) => self.fold(fold),
            Node::InsertEntry(parts) => self.insert_entry(parts),
            Node::InsertEntries(sides) => self.insert_entries(sides),
        }
    }

    fn both(&mut self, sides: &'a [Node; 2]) -> Result<(Value, Value), Failure> {
        let [one, other] = sides;
        let one = self.eval(one);
        if let Err(why) = &one
            && why.fatal
        {
            return Err(why.clone());
        }
        // Also if the first side failed: what ends the evaluation ends it from the second side, too.
        match (one, self.eval(other)) {
            (_, Err(why)) if why.fatal => Err(why),
            (one, other) => Ok((one?, other?)),
        }
    }

    fn write(&mut self, register: Register, slot: Slot<'a>) {
        if let Some(place) = self.slots.get_mut(register) {
            *place = slot;
        }
    }

    fn read(&mut self, register: Register) -> Outcome {
        let unset = || Failure::new("no such attribute");
        let pending = match self.slots.get(register).ok_or_else(unset)? {
            Slot::Ready(outcome) => return outcome.clone(),
            Slot::Unset => return Err(unset()),
            Slot::Pending(node) => *node,
        };
        let mut outcome = self.eval(pending);
        // A variable with an empty map forgets that the map finds any key.
        if let Ok(Value::Map(map)) = &outcome
            && map.entries.is_empty()
        {
            let empty = Map { origin: Origin::Expression, ..Map::default() };
            outcome = Ok(Value::Map(Arc::new(empty)));
        }
        self.write(register, Slot::Ready(outcome.clone()));
        outcome
    }

    /// `&&` and `||`: the side that decides counts, even if the other one fails.
    fn logical(&mut self, sides: &'a [Node; 2], deciding: bool) -> Outcome {
        let mut failure = None;
        for side in sides {
            match self.eval(side) {
                Ok(Value::Bool(it)) if it == deciding => return Ok(Value::Bool(deciding)),
                Ok(Value::Bool(_)) => {}
                Err(why) if why.fatal => return Err(why),
                Err(why) => failure = failure.or(Some(why)),
                Ok(_) => {
                    let name = if deciding { "_||_" } else { "_&&_" };
                    failure = failure.or_else(|| Some(Failure::no_such_overload(name)));
                }
            }
        }
        failure.map_or(Ok(Value::Bool(!deciding)), Err)
    }

    fn not_strictly_false(&mut self, inner: &'a Node) -> Outcome {
        match self.eval(inner) {
            Err(why) if why.fatal => Err(why),
            Ok(Value::Bool(false)) => Ok(Value::Bool(false)),
            _ => Ok(Value::Bool(true)),
        }
    }

    fn conditional(&mut self, parts: &'a [Node; 3]) -> Outcome {
        let [condition, one, other] = parts;
        let chosen = match self.eval(condition)? {
            Value::Bool(true) => one,
            Value::Bool(false) => other,
            _ => return Err(Failure::no_such_overload("_?_:_")),
        };
        match chosen {
            // A test is not taken as one here, as in cel-go: with an optional step its value is an optional.
            Node::Path(path) => self.resolve(path),
            Node::Variable(_) | Node::Conditional(_) => self.eval(chosen),
            _ => Ok(paths::as_attribute(self.eval(chosen)?)),
        }
    }

    /// What cannot be compared is not equal.
    fn not_equal(&mut self, sides: &'a [Node; 2]) -> Outcome {
        let (one, other) = self.both(sides)?;
        match order::equal(&one, &other, self.budget) {
            Err(why) if why.fatal => Err(why),
            equal => Ok(Value::Bool(equal != Ok(true))),
        }
    }

    fn ordered(&mut self, comparison: Comparison, sides: &'a [Node; 2]) -> Outcome {
        let (one, other) = self.both(sides)?;
        let order = order::compare(&one, &other, self.budget)?;
        Ok(Value::Bool(match comparison {
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }))
    }

    fn membership(&mut self, sides: &'a [Node; 2]) -> Outcome {
        let (needle, container) = self.both(sides)?;
        match &container {
            Value::List(list) => contains(list, &needle, self.budget).map(Value::Bool),
            Value::Map(map) if map.origin == Origin::Expression => {
                has_hash(&needle)?;
                Ok(Value::Bool(map.contains(&needle)))
            }
            Value::Map(map) => Ok(Value::Bool(map.contains(&needle))),
            _ => Err(Failure::no_such_overload("@in")),
        }
    }

    fn among_constants(&mut self, needle: &'a Node, list: &[Value]) -> Outcome {
        let needle = self.eval(needle)?;
        self.budget.spend(list.len() / 10)?;
        has_hash(&needle)?;
        Ok(Value::Bool(list.iter().any(|it| is_exactly(&needle, it))))
    }

    fn list(&mut self, elements: &'a [Element]) -> Outcome {
        let mut list = Vec::with_capacity(elements.len());
        for element in elements {
            match self.eval(&element.value)? {
                value if !element.optional => list.push(value),
                Value::Optional(None) => {}
                Value::Optional(Some(inside)) => list.push(Value::carried(&inside)),
                other => return Err(not_optional(&other)),
            }
        }
        Ok(Value::list(list))
    }

    fn map(&mut self, entries: &'a [Entry]) -> Outcome {
        let mut map = BTreeMap::new();
        for entry in entries {
            let (key, value) = (self.eval(&entry.key)?, self.eval(&entry.value)?);
            has_hash(&key)?;
            let key = Key::of(&key).ok_or_else(|| unsupported_key(&key))?;
            match value {
                value if !entry.optional => map.insert(key, value),
                Value::Optional(None) => map.remove(&key),
                Value::Optional(Some(inside)) => map.insert(key, Value::carried(&inside)),
                other => return Err(not_optional(&other)),
            };
        }
        Ok(Value::Map(Arc::new(Map { entries: map, origin: Origin::Expression })))
    }

    fn optional_or(&mut self, sides: &'a [Node; 2]) -> Outcome {
        let [one, other] = sides;
        match self.eval(one)? {
            Value::Optional(None) => self.eval(other),
            found => Ok(found),
        }
    }

    fn optional_or_value(&mut self, sides: &'a [Node; 2]) -> Outcome {
        let [one, other] = sides;
        match self.eval(one)? {
            Value::Optional(None) => self.eval(other),
            Value::Optional(Some(inside)) => (*inside).clone(),
            found => Ok(found),
        }
    }
}

fn not_optional(value: &Value) -> Failure {
    let name = value.type_name();
    Failure::new(format!("cannot initialize an optional entry from a value of type {name}"))
}

fn unsupported_key(value: &Value) -> Failure {
    Failure::new(format!("unsupported key type: {}", value.type_name()))
}

/// kube-scheduler looks the value up by its hash, which some types have none of: a panic that ends the evaluation.
fn has_hash(value: &Value) -> Result<(), Failure> {
    match value {
        Value::Semver(_) | Value::Bytes(_) => {
            let name = value.type_name();
            Err(Failure::fatal(format!("a value of type {name} cannot be a key or looked up")))
        }
        _ => Ok(()),
    }
}

/// Equal, and for numbers of two types without a loss.
#[expect(
    clippy::float_cmp,
    clippy::cast_precision_loss,
    reason = "a look-up by value, with the conversions of kube-scheduler"
)]
fn is_exactly(needle: &Value, constant: &Value) -> bool {
    use crate::number::{int_of_double, uint_of_double};
    match (needle, constant) {
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Uint(a), Value::Uint(b)) => a == b,
        (Value::Double(a), Value::Double(b)) => a == b,
        (Value::Int(a), Value::Uint(b)) => u64::try_from(*a) == Ok(*b),
        (Value::Uint(a), Value::Int(b)) => u64::try_from(*b) == Ok(*a),
        (Value::Double(a), Value::Int(b)) => *a == *b as f64,
        (Value::Double(a), Value::Uint(b)) => *a == *b as f64,
        (Value::Int(a), Value::Double(b)) => int_of_double(*b) == Some(*a) && *a as f64 == *b,
        (Value::Uint(a), Value::Double(b)) => uint_of_double(*b) == Some(*a) && *a as f64 == *b,
        _ => false,
    }
}

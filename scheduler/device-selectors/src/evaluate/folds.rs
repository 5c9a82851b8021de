//! Loops of macros.

use std::sync::Arc;

use super::{Evaluation, Slot, has_hash, unsupported_key};
use crate::node::{Fold, Node};
use crate::value::{Failure, Key, Map, Origin, Outcome, Value};

impl<'a> Evaluation<'a> {
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Outcome {
        let range = self.eval(&fold.range)?;
        self.write(fold.accumulator, Slot::Pending(&fold.initial));
        match &range {
            Value::List(list) => {
                for (at, element) in list.iter().enumerate() {
                    let index = || Value::Int(i64::try_from(at).unwrap_or(i64::MAX));
                    let first = if fold.second.is_some() { index() } else { element.clone() };
                    if !self.turn(fold, first, element)? {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                for (key, value) in &map.entries {
                    if !self.turn(fold, key.value(), value)? {
                        break;
                    }
                }
            }
            other => {
                let text = format!("got '{}', expected iterable type", other.type_name());
                return Err(Failure::new(text));
            }
        }
        self.eval(&fold.result)
    }

    /// Whether the loop goes on.
    fn turn(&mut self, fold: &'a Fold, first: Value, second: &Value) -> Result<bool, Failure> {
        self.write(fold.first, Slot::Ready(first.read()));
        if let Some(register) = fold.second {
            self.write(register, Slot::Ready(second.clone().read()));
        }
        match self.eval(&fold.condition) {
            Err(why) if why.fatal => return Err(why),
            Ok(Value::Bool(false)) => return Ok(false),
            _ => {}
        }
        let step = self.eval(&fold.step);
        if let Err(why) = &step
            && why.fatal
        {
            return Err(why.clone());
        }
        self.write(fold.accumulator, Slot::Ready(step));
        Ok(true)
    }

    pub(super) fn insert_entry(&mut self, parts: &'a [Node; 3]) -> Outcome {
        let [map, key, value] = parts;
        let (map, key, value) = (self.eval(map)?, self.eval(key)?, self.eval(value)?);
        let Value::Map(map) = map else { return Err(Failure::no_such_overload("@mapInsert")) };
        self.budget.spend(map.entries.len())?;
        let mut entries = map.entries.clone();
        insert(&map, &mut entries, &key, value)?;
        Ok(Value::Map(Arc::new(Map { entries, origin: Origin::Expression })))
    }

    pub(super) fn insert_entries(&mut self, sides: &'a [Node; 2]) -> Outcome {
        let (Value::Map(map), Value::Map(more)) = self.both(sides)? else {
            return Err(Failure::no_such_overload("@mapInsert"));
        };
        self.budget.spend(map.entries.len().saturating_add(more.entries.len()))?;
        let mut entries = map.entries.clone();
        for (key, value) in &more.entries {
            insert(&map, &mut entries, &key.value(), value.clone())?;
        }
        Ok(Value::Map(Arc::new(Map { entries, origin: Origin::Expression })))
    }
}

fn insert(
    before: &Map,
    entries: &mut std::collections::BTreeMap<Key, Value>,
    key: &Value,
    value: Value,
) -> Result<(), Failure> {
    has_hash(key)?;
    if before.contains(key) {
        return Err(Failure::new("insert failed: key already exists"));
    }
    entries.insert(Key::of(key).ok_or_else(|| unsupported_key(key))?, value);
    Ok(())
}

//! CEL expressions that select devices.
//!
//! They mean what they mean to kube-scheduler, which evaluates them with cel-go and libraries of Kubernetes. The parser
//! is that of the crate `cel`; names, functions and evaluation are ours, because the verdict has to be the same on the
//! same device in every run: maps here have an order, each evaluation has a limit of steps, and Kubernetes' own types
//! differ from CEL's in what they can be compared with. `examples/differential` compares the two.
//!
//! Types are not checked before the evaluation. The API server has done it when it accepted the expression.

mod arithmetic;
mod budget;
mod cost;
mod device;
mod evaluate;
mod functions;
mod lower;
mod node;
mod number;
mod order;
mod parse;
mod quantity;
mod semver;
mod value;

#[cfg(test)]
mod tests;

use model::{DeviceType, SelectorVerdict};

use crate::budget::Budget;
use crate::lower::Lowering;
use crate::node::Node;
use crate::value::{Failure, Value};

/// Of a selector of devices, compiled.
#[derive(Clone, Debug)]
pub struct Expression {
    root: Node,
    registers: usize,
}

impl Expression {
    /// The error says what is wrong with the text, or what of it is not supported here.
    pub fn compile(text: &str) -> Result<Self, String> {
        let syntax = parse::parse(text)?;
        let mut lowering = Lowering::default();
        let root = lowering.lower(&syntax)?;
        if let Some(name) = root.type_if_never_bool() {
            return Err(format!("must evaluate to bool or the unknown type, not {name}"));
        }
        cost::check(&root, lowering.registers)?;
        Ok(Self { root, registers: lowering.registers })
    }

    pub fn evaluate(&self, device: &DeviceType) -> SelectorVerdict {
        match self.verdict(device) {
            Ok(true) => SelectorVerdict::Matches,
            Ok(false) => SelectorVerdict::DoesNotMatch,
            Err(why) => SelectorVerdict::Fails(format!("CEL runtime error: {}", why.text).into()),
        }
    }

    fn verdict(&self, device: &DeviceType) -> Result<bool, Failure> {
        let device = device::value_of(device)?;
        let mut budget = Budget::default();
        let value = evaluate::evaluate(&self.root, self.registers, &device, &mut budget)?;
        as_bool(value)
    }
}

fn as_bool(value: Value) -> Result<bool, Failure> {
    match value {
        Value::Bool(it) => Ok(it),
        Value::Optional(Some(inside)) => as_bool((*inside).clone()?),
        other => {
            let name = other.type_name();
            let text = format!("CEL result of type {name} could not be converted to bool");
            Err(Failure::new(text))
        }
    }
}

//! An expression with its names resolved, ready to be evaluated.

use std::sync::Arc;

use regex::Regex;

use crate::functions::Function;
use crate::value::Value;

/// Where the value of a variable is kept. Each binding in an expression has its own.
pub(crate) type Register = usize;

#[derive(Clone, Debug)]
pub(crate) enum Node {
    Constant(Value),
    Device,
    Variable(Register),
    /// A variable that nobody wrote: its value is taken as it is.
    Temporary(Register),
    Path(Box<Path>),
    And(Box<[Self; 2]>),
    Or(Box<[Self; 2]>),
    Not(Box<Self>),
    /// The condition of `all` and `exists`: an error goes on with the loop.
    NotStrictlyFalse(Box<Self>),
    Conditional(Box<[Self; 3]>),
    Equal(Box<[Self; 2]>),
    NotEqual(Box<[Self; 2]>),
    Ordered(Comparison, Box<[Self; 2]>),
    Arithmetic(Operator, Box<[Self; 2]>),
    Negate(Box<Self>),
    In(Box<[Self; 2]>),
    /// In a list of constants: equal numbers of other types count only if they are exact.
    InConstants(Box<Self>, Arc<[Value]>),
    List(Vec<Element>),
    Map(Vec<Entry>),
    /// The right side is evaluated only if it is needed.
    OptionalOr(Box<[Self; 2]>),
    OptionalOrValue(Box<[Self; 2]>),
    Call(Function, Vec<Self>),
    MatchConstant(Box<Self>, RegexUse, Regex),
    /// `cel.bind`: the value is computed when the variable is read for the first time.
    Bind(Box<Bind>),
    Fold(Box<Fold>),
    InsertEntry(Box<[Self; 3]>),
    InsertEntries(Box<[Self; 2]>),
}

impl Node {
    /// The type of what can be no condition, whatever the device, as far as that is obvious.
    pub fn type_if_never_bool(&self) -> Option<&'static str> {
        match self {
            Self::Constant(Value::Bool(_)) => None,
            Self::Constant(value) => Some(value.type_name()),
            Self::List(_) => Some("list"),
            Self::Map(_) | Self::Device => Some("map"),
            Self::Arithmetic(..) | Self::Negate(_) => Some("a number"),
            _ => None,
        }
    }
}

/// `base.field[index].?other`: an optional step makes those after it optional too.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub base: Node,
    pub steps: Vec<Step>,
    /// `has()`: whether the last step finds something.
    pub tests: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub key: Node,
    pub optional: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum RegexUse {
    Matches,
    Find,
    FindAll,
}

#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub value: Node,
    pub optional: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: Node,
    pub value: Node,
    pub optional: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Bind {
    pub register: Register,
    pub value: Node,
    pub result: Node,
}

#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub range: Node,
    pub first: Register,
    /// For each entry both the key, or the index, and the value.
    pub second: Option<Register>,
    pub accumulator: Register,
    pub initial: Node,
    pub condition: Node,
    pub step: Node,
    pub result: Node,
}

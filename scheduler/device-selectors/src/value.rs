//! The values of an expression.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::quantity::Quantity;
use crate::semver::Semver;

/// Why an evaluation has no value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub text: Arc<str>,
    /// It ends the whole evaluation: `&&`, `||` and the macros built on them do not absorb it.
    pub fatal: bool,
}

impl Failure {
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), fatal: false }
    }

    pub fn fatal(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), fatal: true }
    }

    pub fn no_such_overload(function: &str) -> Self {
        Self::new(format!("no such overload: {function}"))
    }
}

pub(crate) type Outcome = Result<Value, Failure>;

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
    List(Arc<[Value]>),
    Map(Arc<Map>),
    /// What is inside can be an error, which shows when it is taken out.
    Optional(Option<Arc<Outcome>>),
    Type(&'static str),
    Quantity(Arc<Quantity>),
    Semver(Arc<Semver>),
    /// An element or entry whose value was lost in an optional: it fails who reads it.
    Failed(Arc<Failure>),
}

impl Value {
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Self::String(text.into())
    }

    pub fn list(values: Vec<Self>) -> Self {
        Self::List(values.into())
    }

    pub fn some(value: Self) -> Self {
        Self::Optional(Some(Arc::new(value.read())))
    }

    /// Of what is read from a list or a map.
    pub fn read(self) -> Outcome {
        match self {
            Self::Failed(why) => Err((*why).clone()),
            other => Ok(other),
        }
    }

    /// What is in an optional, to be carried on.
    pub fn carried(inside: &Outcome) -> Self {
        inside.clone().unwrap_or_else(|why| Self::Failed(Arc::new(why)))
    }

    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Failed(_) => "error",
        }
    }
}

/// Keys of different types are different keys, even if they are equal numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// The bits of a double.
    Double(u64),
    String(Arc<str>),
}

impl Key {
    pub fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Bool(it) => Self::Bool(*it),
            Value::Int(it) => Self::Int(*it),
            Value::Uint(it) => Self::Uint(*it),
            // Both zeros are one key.
            Value::Double(it) => Self::Double((*it + 0.0).to_bits()),
            Value::String(it) => Self::String(it.clone()),
            _ => return None,
        })
    }

    pub fn value(&self) -> Value {
        match self {
            Self::Bool(it) => Value::Bool(*it),
            Self::Int(it) => Value::Int(*it),
            Self::Uint(it) => Value::Uint(*it),
            Self::Double(bits) => Value::Double(f64::from_bits(*bits)),
            Self::String(it) => Value::String(it.clone()),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(it) => write!(f, "{it}"),
            Self::Int(it) => write!(f, "{it}"),
            Self::Uint(it) => write!(f, "{it}"),
            Self::Double(bits) => write!(f, "{}", f64::from_bits(*bits)),
            Self::String(it) => f.write_str(it),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Map {
    pub entries: BTreeMap<Key, Value>,
    pub origin: Origin,
}

/// Where a map comes from decides how keys are looked up in kube-scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The domains of a device. The look-up of a key that is not there finds an empty map.
    Domains,
    /// Another map of the device.
    #[default]
    Device,
    /// The expression. Keys are hashed, and Semver has no hash.
    Expression,
}

impl Map {
    pub fn get(&self, key: &Value) -> Option<Value> {
        let found = Key::of(key).and_then(|exact| {
            self.entries
                .get(&exact)
                .or_else(|| self.entries.get(&equal_key(&exact, false)?))
                .or_else(|| self.entries.get(&equal_key(&exact, true)?))
        });
        let finds_any = self.origin == Origin::Domains;
        let default = || finds_any.then(|| Value::Map(Arc::default()));
        found.cloned().or_else(default)
    }

    /// Whether it is one of the real keys.
    pub fn contains(&self, key: &Value) -> bool {
        Key::of(key).is_some_and(|exact| {
            self.entries.contains_key(&exact)
                || [false, true].into_iter().any(|signed| {
                    equal_key(&exact, signed).is_some_and(|it| self.entries.contains_key(&it))
                })
        })
    }
}

/// The same number as a key of another type.
fn equal_key(key: &Key, to_uint: bool) -> Option<Key> {
    match (key, to_uint) {
        (Key::Double(bits), false) => crate::number::exact_int(f64::from_bits(*bits)).map(Key::Int),
        (Key::Double(bits), true) => {
            crate::number::exact_uint(f64::from_bits(*bits)).map(Key::Uint)
        }
        (Key::Int(it), true) => u64::try_from(*it).ok().map(Key::Uint),
        (Key::Uint(it), false) => i64::try_from(*it).ok().map(Key::Int),
        _ => None,
    }
}

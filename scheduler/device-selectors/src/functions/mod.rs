//! The functions that expressions can call.

mod conversions;
mod lists;
mod optionals;
mod patterns;
mod quantities;
mod sets;
mod strings;
mod versions;

use std::sync::Arc;

use crate::budget::Budget;
use crate::value::{Failure, Outcome, Value};

pub(crate) use patterns::{compile as compile_pattern, matched};
pub(crate) use sets::contains;

/// Where a name may stand, and with how many arguments; the object of a method counts as one.
struct Signature {
    name: &'static str,
    place: Place,
    args: &'static [usize],
    function: Function,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Global,
    Method,
    Both,
}

macro_rules! functions {
    ($($function:ident $place:ident $name:literal $args:expr;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Function {
            $($function,)*
        }

        const SIGNATURES: &[Signature] = &[$(Signature {
            name: $name,
            place: Place::$place,
            args: &$args,
            function: Function::$function,
        },)*];
    };
}

functions! {
    Size Both "size" [1];
    Type Global "type" [1];
    Dyn Global "dyn" [1];
    Bool Global "bool" [1];
    Bytes Global "bytes" [1];
    Double Global "double" [1];
    Int Global "int" [1];
    String Global "string" [1];
    Uint Global "uint" [1];
    Matches Both "matches" [2];
    Contains Method "contains" [2];
    StartsWith Method "startsWith" [2];
    EndsWith Method "endsWith" [2];
    CharAt Method "charAt" [2];
    IndexOf Method "indexOf" [2, 3];
    LastIndexOf Method "lastIndexOf" [2, 3];
    LowerAscii Method "lowerAscii" [1];
    UpperAscii Method "upperAscii" [1];
    Replace Method "replace" [3, 4];
    Split Method "split" [2, 3];
    Substring Method "substring" [2, 3];
    Trim Method "trim" [1];
    Join Method "join" [1, 2];
    Quote Global "strings.quote" [1];
    Find Method "find" [2];
    FindAll Method "findAll" [2, 3];
    IsSorted Method "isSorted" [1];
    Sum Method "sum" [1];
    Min Method "min" [1];
    Max Method "max" [1];
    First Method "first" [1];
    Last Method "last" [1];
    Slice Method "slice" [3];
    Flatten Method "flatten" [1, 2];
    Sort Method "sort" [1];
    SortByKeys Method "@sortByAssociatedKeys" [2];
    Reverse Method "reverse" [1];
    Distinct Method "distinct" [1];
    Range Global "lists.range" [1];
    Includes Method "includes" [2];
    SetContains Global "sets.contains" [2];
    SetEquivalent Global "sets.equivalent" [2];
    SetIntersects Global "sets.intersects" [2];
    OptionalOf Global "optional.of" [1];
    OptionalOfNonZero Global "optional.ofNonZeroValue" [1];
    OptionalNone Global "optional.none" [0];
    OptionalUnwrap Global "optional.unwrap" [1];
    UnwrapOpt Method "unwrapOpt" [1];
    HasValue Method "hasValue" [1];
    Value Method "value" [1];
    Quantity Global "quantity" [1];
    IsQuantity Global "isQuantity" [1];
    Sign Global "sign" [1];
    IsInteger Method "isInteger" [1];
    AsInteger Method "asInteger" [1];
    AsApproximateFloat Method "asApproximateFloat" [1];
    Add Method "add" [2];
    Sub Method "sub" [2];
    Semver Global "semver" [1, 2];
    IsSemver Global "isSemver" [1, 2];
    Major Method "major" [1];
    Minor Method "minor" [1];
    Patch Method "patch" [1];
    IsLessThan Method "isLessThan" [2];
    IsGreaterThan Method "isGreaterThan" [2];
    CompareTo Method "compareTo" [2];
}

pub(crate) fn is_known(name: &str) -> bool {
    SIGNATURES.iter().any(|it| it.name == name)
}

impl Function {
    pub fn global(name: &str, args: usize) -> Option<Self> {
        Self::find(name, args, Place::Method)
    }

    pub fn method(name: &str, args_beside_object: usize) -> Option<Self> {
        Self::find(name, args_beside_object + 1, Place::Global)
    }

    fn find(name: &str, args: usize, not_at: Place) -> Option<Self> {
        let fits = |it: &&Signature| it.name == name && it.place != not_at;
        let signature = SIGNATURES.iter().find(fits)?;
        signature.args.contains(&args).then_some(signature.function)
    }

    pub fn name(self) -> &'static str {
        SIGNATURES.iter().find(|it| it.function == self).map_or("", |it| it.name)
    }

    /// Whether what it makes is a number or a bool.
    pub fn is_scalar(self) -> bool {
        matches!(
            self,
            Self::Size
                | Self::Bool
                | Self::Double
                | Self::Int
                | Self::Uint
                | Self::Matches
                | Self::Contains
                | Self::StartsWith
                | Self::EndsWith
                | Self::IndexOf
                | Self::LastIndexOf
                | Self::IsSorted
                | Self::Includes
                | Self::HasValue
                | Self::IsQuantity
                | Self::Sign
                | Self::IsInteger
                | Self::AsInteger
                | Self::AsApproximateFloat
                | Self::IsSemver
                | Self::Major
                | Self::Minor
                | Self::Patch
                | Self::IsLessThan
                | Self::IsGreaterThan
                | Self::CompareTo
        )
    }

    /// Conversions of constants are done before the evaluation.
    pub fn is_conversion(self) -> bool {
        matches!(
            self,
            Self::Type
                | Self::Dyn
                | Self::Bool
                | Self::Bytes
                | Self::Double
                | Self::Int
                | Self::String
                | Self::Uint
        )
    }
}

/// `None` if there is no overload for arguments of these types.
type Called = Result<Option<Value>, Failure>;

pub(crate) fn call(function: Function, args: &[Value], budget: &mut Budget) -> Outcome {
    let groups = [
        conversions::call,
        strings::call,
        lists::call,
        sets::call,
        optionals::call,
        quantities::call,
        versions::call,
        patterns::call,
    ];
    for group in groups {
        if let Some(value) = group(function, args, budget)? {
            return Ok(value);
        }
    }
    Err(Failure::no_such_overload(function.name()))
}

/// The length of what was made, for what it costs.
fn text(text: String, budget: &mut Budget) -> Called {
    budget.spend_bytes(text.len())?;
    Ok(Some(Value::string(text)))
}

fn int(int: usize) -> Value {
    Value::Int(i64::try_from(int).unwrap_or(i64::MAX))
}

fn list(values: Vec<Value>, budget: &mut Budget) -> Called {
    budget.spend(values.len())?;
    Ok(Some(Value::List(Arc::from(values))))
}

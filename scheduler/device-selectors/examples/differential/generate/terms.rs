//! Expressions of every type but bool.

use super::Generator;
use super::words::{
    ATTRIBUTES, CAPACITIES, DOMAINS, DOUBLES, DRIVER, INTS, Kind, MISSING, ODD_QUANTITIES,
    ODD_VERSIONS, PATTERNS, QUANTITIES, STRINGS, UINTS, VERSIONS, quoted,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Bool,
    Int,
    Uint,
    Double,
    String,
    Quantity,
    Version,
    Ints,
    Strings,
    /// The attributes of a domain.
    Attributes,
    OptionalInt,
    OptionalString,
    OptionalQuantity,
}

pub const PLAIN: [Type; 7] =
    [Type::Bool, Type::Int, Type::Uint, Type::Double, Type::String, Type::Quantity, Type::Version];

impl Generator {
    pub(super) fn term(&mut self, wanted: Type, depth: usize) -> String {
        if self.random.percent(45)
            && let Some(name) = self.variable(wanted)
        {
            return name;
        }
        let inner = depth.saturating_sub(1);
        match wanted {
            Type::Bool => self.bool(inner),
            Type::Int => self.int(inner),
            Type::Uint => self.uint(inner),
            Type::Double => self.double(inner),
            Type::String => self.string(inner),
            Type::Quantity => self.quantity(inner),
            Type::Version => self.version(inner),
            Type::Ints => self.ints(inner),
            Type::Strings => self.strings(inner),
            Type::Attributes => self.domain("attributes"),
            Type::OptionalInt => self.optional(Type::Int, inner),
            Type::OptionalString => self.optional(Type::String, inner),
            Type::OptionalQuantity => self.optional(Type::Quantity, inner),
        }
    }

    /// A value of any type that hides its type from the checker.
    pub(super) fn hidden(&mut self, depth: usize) -> String {
        if self.random.percent(60) {
            return self.attribute(None);
        }
        let wanted = PLAIN[self.random.below(PLAIN.len())];
        format!("dyn({})", self.term(wanted, depth))
    }

    /// The map of one domain; at times one that the device does not have.
    pub(super) fn domain(&mut self, of: &str) -> String {
        let domain = if self.random.percent(80) { DRIVER } else { self.random.of(&DOMAINS) };
        if self.random.percent(4) {
            return format!("device.{of}[?{}].orValue({{}})", quoted(domain));
        }
        format!("device.{of}[{}]", quoted(domain))
    }

    /// Of the wanted kind, if the device keeps to it.
    pub(super) fn attribute(&mut self, kind: Option<Kind>) -> String {
        let fits: Vec<&str> = ATTRIBUTES
            .iter()
            .filter(|(_, it)| kind.is_none_or(|kind| kind == *it))
            .map(|(name, _)| *name)
            .collect();
        let name = self.random.of(&fits);
        self.entry("attributes", name)
    }

    pub(super) fn entry(&mut self, of: &str, name: &str) -> String {
        let (domain, id) = name.split_once('/').unwrap_or((DRIVER, name));
        let id = if self.random.percent(4) { self.random.of(&MISSING) } else { id };
        let domain = if self.random.percent(3) { self.random.of(&DOMAINS) } else { domain };
        if of == "attributes"
            && domain == DRIVER
            && self.random.percent(50)
            && let Some(own) = self.variable(Type::Attributes)
        {
            return format!("{own}.{id}");
        }
        match self.random.below(4) {
            0 => format!("device.{of}[{}][{}]", quoted(domain), quoted(id)),
            _ => format!("device.{of}[{}].{id}", quoted(domain)),
        }
    }

    fn kind_of(wanted: Type) -> Option<Kind> {
        match wanted {
            Type::Bool => Some(Kind::Bool),
            Type::Int => Some(Kind::Int),
            Type::String => Some(Kind::Text),
            Type::Version => Some(Kind::Version),
            _ => None,
        }
    }

    /// Where the device is asked and where a value is made.
    pub(super) fn of_device(&mut self, wanted: Type) -> String {
        if wanted == Type::Quantity {
            let name = self.random.of(&CAPACITIES);
            return self.entry("capacity", name);
        }
        self.attribute(Self::kind_of(wanted))
    }

    fn int(&mut self, depth: usize) -> String {
        if depth == 0 {
            return match self.random.below(5) {
                0..3 => self.random.of(&INTS).to_owned(),
                _ => self.of_device(Type::Int),
            };
        }
        match self.random.below(13) {
            0..3 => self.of_device(Type::Int),
            3 => {
                let sign = self.random.of(&["+", "-", "*", "/", "%"]);
                format!("({} {sign} {})", self.term(Type::Int, depth), self.term(Type::Int, depth))
            }
            4 => format!("size({})", self.sized(depth)),
            5 => format!("{}.size()", self.sized(depth)),
            6 => {
                let wanted = [Type::Quantity, Type::Version][self.random.below(2)];
                format!("{}.compareTo({})", self.term(wanted, depth), self.term(wanted, depth))
            }
            7 => {
                let part = self.random.of(&["major", "minor", "patch"]);
                format!("{}.{part}()", self.term(Type::Version, depth))
            }
            8 => match self.random.below(3) {
                0 => format!("sign({})", self.term(Type::Quantity, depth)),
                _ => format!("{}.asInteger()", self.term(Type::Quantity, depth)),
            },
            9 => {
                let function = self.random.of(&["indexOf", "lastIndexOf"]);
                let (one, two) = (self.term(Type::String, depth), self.term(Type::String, depth));
                match self.random.below(3) {
                    0 => format!("{one}.{function}({two}, {})", self.small()),
                    _ => format!("{one}.{function}({two})"),
                }
            }
            10 => {
                let function = self.random.of(&["sum", "min", "max"]);
                format!("{}.{function}()", self.term(Type::Ints, depth))
            }
            11 => format!("int({})", self.convertible(depth)),
            _ => format!("{}.orValue({})", self.term(Type::OptionalInt, depth), self.small()),
        }
    }

    pub(super) fn small(&mut self) -> String {
        self.random.of(&["0", "1", "2", "3", "-1"]).to_owned()
    }

    pub(super) fn sized(&mut self, depth: usize) -> String {
        let wanted = [Type::String, Type::Ints, Type::Strings, Type::Attributes];
        let wanted = wanted[self.random.below(4)];
        self.term(wanted, depth)
    }

    fn convertible(&mut self, depth: usize) -> String {
        let wanted = [Type::Int, Type::Uint, Type::Double, Type::String][self.random.below(4)];
        self.term(wanted, depth)
    }

    fn uint(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.percent(60) {
            return self.random.of(&UINTS).to_owned();
        }
        if self.random.below(3) == 0 {
            return format!("uint({})", self.convertible(depth));
        }
        let sign = self.random.of(&["+", "-", "*", "/", "%"]);
        format!("({} {sign} {})", self.term(Type::Uint, depth), self.term(Type::Uint, depth))
    }

    fn double(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.percent(55) {
            return self.random.of(&DOUBLES).to_owned();
        }
        match self.random.below(4) {
            0 => format!("double({})", self.convertible(depth)),
            1 => format!("{}.asApproximateFloat()", self.term(Type::Quantity, depth)),
            2 => format!("-{}", self.term(Type::Double, depth)),
            _ => {
                let sign = self.random.of(&["+", "-", "*", "/"]);
                let (one, two) = (self.term(Type::Double, depth), self.term(Type::Double, depth));
                format!("({one} {sign} {two})")
            }
        }
    }

    fn string(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.percent(25) {
            return match self.random.below(4) {
                0 => self.of_device(Type::String),
                _ => quoted(self.random.of(&STRINGS)),
            };
        }
        let this = self.term(Type::String, depth);
        match self.random.below(15) {
            0..3 => self.of_device(Type::String),
            3 => format!("({this} + {})", self.term(Type::String, depth)),
            4 => format!("{this}.{}()", self.random.of(&["lowerAscii", "upperAscii", "trim"])),
            5 => format!("{this}.charAt({})", self.small()),
            6 => format!("{this}.substring({})", self.small()),
            7 => format!("{this}.substring({}, {})", self.small(), self.small()),
            8 => {
                let (old, new) = (self.term(Type::String, 0), self.term(Type::String, 0));
                match self.random.below(2) {
                    0 => format!("{this}.replace({old}, {new}, {})", self.small()),
                    _ => format!("{this}.replace({old}, {new})"),
                }
            }
            9 => format!("{this}.find({})", self.pattern()),
            10 => match self.random.below(2) {
                0 => format!("{}.join()", self.term(Type::Strings, depth)),
                _ => format!("{}.join({this})", self.term(Type::Strings, depth)),
            },
            11 => format!("string({})", self.convertible(depth)),
            12 => format!("{}.orValue({this})", self.term(Type::OptionalString, depth)),
            13 => format!("strings.quote({this})"),
            _ => "device.driver".to_owned(),
        }
    }

    pub(super) fn pattern(&mut self) -> String {
        if self.random.percent(8) {
            return self.of_device(Type::String);
        }
        format!("\"{}\"", self.random.of(&PATTERNS))
    }

    fn quantity(&mut self, depth: usize) -> String {
        if depth > 0 && self.random.percent(8) {
            let function = self.random.of(&["add", "sub"]);
            let this = self.term(Type::Quantity, depth);
            let with = [Type::Quantity, Type::Int][self.random.below(2)];
            return format!("{this}.{function}({})", self.term(with, depth));
        }
        match self.random.below(20) {
            0..11 => self.of_device(Type::Quantity),
            11 => format!("quantity({})", quoted(self.random.of(&ODD_QUANTITIES))),
            12 => format!("quantity({})", self.term(Type::String, depth)),
            _ => format!("quantity({})", quoted(self.random.of(&QUANTITIES))),
        }
    }

    fn version(&mut self, depth: usize) -> String {
        match self.random.below(20) {
            0..10 => self.of_device(Type::Version),
            10 => format!("semver({})", quoted(self.random.of(&ODD_VERSIONS))),
            11..13 => format!("semver({}, true)", quoted(self.random.of(&ODD_VERSIONS))),
            13 => format!("semver({}, {})", self.term(Type::String, depth), self.bool(0)),
            _ => format!("semver({})", quoted(self.random.of(&VERSIONS))),
        }
    }

    fn ints(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.percent(40) {
            return self.list_of(Type::Int);
        }
        let this = self.term(Type::Ints, depth);
        match self.random.below(8) {
            0 => format!("lists.range({})", self.random.of(&["0", "1", "3", "5", "-2"])),
            1 => self.mapped(&this, Type::Int, Type::Int, depth),
            2 => {
                let name = self.name();
                let test = self.with(&[(&name, Type::Int)], |it| it.bool(depth.min(2)));
                format!("{this}.filter({name}, {test})")
            }
            3 => format!("({this} + {})", self.term(Type::Ints, depth)),
            4 => self.list_function(&this),
            5 => format!("{}.flatten()", self.nested()),
            6 => {
                let (name, other) = (self.name(), "k");
                let variables = [(other, Type::Int), (name.as_str(), Type::Int)];
                let mapped = self.with(&variables, |it| it.term(Type::Int, depth.min(2)));
                format!("{this}.transformList({other}, {name}, {mapped})")
            }
            _ => {
                let name = self.name();
                let key = self.with(&[(&name, Type::Int)], |it| it.term(Type::Int, depth.min(2)));
                format!("{this}.sortBy({name}, {key})")
            }
        }
    }

    /// Either of constants or of attributes: the checker wants lists of one type.
    fn list_of(&mut self, kind: Type) -> String {
        let constant = self.random.percent(70);
        let element = |it: &mut Self| match kind {
            _ if !constant => it.of_device(kind),
            Type::Int => it.random.of(&INTS).to_owned(),
            _ => quoted(it.random.of(&STRINGS)),
        };
        let all: Vec<String> = (0..self.random.below(5)).map(|_| element(self)).collect();
        format!("[{}]", all.join(", "))
    }

    fn nested(&mut self) -> String {
        format!("[{}, {}]", self.term(Type::Ints, 0), self.term(Type::Ints, 0))
    }

    fn mapped(&mut self, list: &str, from: Type, to: Type, depth: usize) -> String {
        let name = self.name();
        let mapped = self.with(&[(&name, from)], |it| it.term(to, depth.min(2)));
        format!("{list}.map({name}, {mapped})")
    }

    fn list_function(&mut self, list: &str) -> String {
        match self.random.below(4) {
            0 => format!("{list}.reverse()"),
            1 => format!("{list}.distinct()"),
            2 => format!("{list}.sort()"),
            _ => format!("{list}.slice({}, {})", self.small(), self.small()),
        }
    }

    fn strings(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.percent(35) {
            return self.list_of(Type::String);
        }
        let this = self.term(Type::String, depth);
        match self.random.below(7) {
            0 => format!("{this}.split({})", self.term(Type::String, 0)),
            1 => format!("{this}.split({}, {})", self.term(Type::String, 0), self.small()),
            2 => format!("{this}.findAll({})", self.pattern()),
            3 => format!("{this}.findAll({}, {})", self.pattern(), self.small()),
            4 => {
                let list = self.term(Type::Ints, depth);
                self.mapped(&list, Type::Int, Type::String, depth)
            }
            5 => {
                let list = self.term(Type::Strings, depth);
                self.list_function(&list)
            }
            _ => format!("[?{}, {this}]", self.term(Type::OptionalString, depth)),
        }
    }
}

//! Conditions, and what is built of optional values.

use super::Generator;
use super::terms::{PLAIN, Type};
use super::words::{
    ATTRIBUTES, CAPACITIES, DOMAINS, DRIVER, Kind, ODD_QUANTITIES, ODD_VERSIONS, QUANTITIES,
    STRINGS, VERSIONS, quoted,
};

const ORDERED: [Type; 5] = [Type::Int, Type::Uint, Type::Double, Type::String, Type::Bool];

impl Generator {
    pub(super) fn bool(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.simple_bool();
        }
        match self.random.below(32) {
            0..4 => {
                let sign = self.random.of(&["&&", "||"]);
                let (one, two) = (self.bool(depth - 1), self.bool(depth - 1));
                match self.random.below(3) {
                    0 => format!("({one} {sign} {two})"),
                    1 => format!("({one} {sign} {two} {sign} {})", self.bool(depth - 1)),
                    // A side that is likely to fail.
                    _ => format!("({one} {sign} {})", self.risky(depth - 1)),
                }
            }
            4 => format!("!{}", self.term(Type::Bool, depth)),
            5..9 => self.equality(depth),
            9..12 => self.comparison(depth),
            12..14 => self.membership(depth),
            14 => self.presence(),
            15..18 => self.quantifier(depth),
            18..20 => self.bound(depth),
            20 => self.string_test(depth),
            21..23 => self.amount_test(depth),
            23 => self.list_test(depth),
            24 => self.optional_test(depth),
            25 => {
                let condition = self.term(Type::Bool, depth);
                let (one, two) = (self.bool(depth - 1), self.bool(depth - 1));
                format!("({condition} ? {one} : {two})")
            }
            26 => self.map_test(depth),
            27..31 => self.mixed(depth),
            _ => self.simple_bool(),
        }
    }

    fn simple_bool(&mut self) -> String {
        match self.random.below(12) {
            0 => "true".to_owned(),
            1 => "false".to_owned(),
            2..4 => "device.allowMultipleAllocations".to_owned(),
            4..7 => self.of_device(Type::Bool),
            7..9 => self.presence(),
            9 => {
                let domain = self.random.of(&DOMAINS);
                let of = self.random.of(&["attributes", "capacity"]);
                format!("({} in device.{of})", quoted(domain))
            }
            10 => format!("({} == {})", self.term(Type::Int, 0), self.term(Type::Int, 0)),
            _ => format!("bool({})", self.random.of(&["'true'", "'0'", "true", "'F'"])),
        }
    }

    fn risky(&mut self, depth: usize) -> String {
        match self.random.below(4) {
            0 => self.hidden(depth),
            1 => format!("{} == 1 / 0", self.term(Type::Int, 0)),
            2 => format!("device.attributes[{}].nope", quoted(self.random.of(&DOMAINS))),
            _ => format!("{} == {}", self.hidden(depth), self.hidden(depth)),
        }
    }

    fn equality(&mut self, depth: usize) -> String {
        let sign = self.random.of(&["==", "==", "!="]);
        let kind = PLAIN[self.random.below(PLAIN.len())];
        let (one, two) = match self.random.below(10) {
            0 => (self.hidden(depth), self.hidden(depth)),
            1 => (self.hidden(depth), self.term(kind, depth)),
            2 => (self.term(kind, depth), self.hidden(depth)),
            3 => (self.term(Type::Ints, depth), self.term(Type::Ints, depth)),
            4 => (self.list_of_anything(), self.list_of_anything()),
            5 => {
                let wanted = [Type::OptionalInt, Type::OptionalQuantity, Type::OptionalString];
                let wanted = wanted[self.random.below(3)];
                (self.term(wanted, depth), self.term(wanted, depth))
            }
            6 => (format!("type({})", self.hidden(depth)), self.type_name()),
            _ => (self.term(kind, depth), self.term(kind, depth)),
        };
        format!("({one} {sign} {two})")
    }

    fn type_name(&mut self) -> String {
        if self.random.percent(40) {
            return format!("type({})", self.hidden(0));
        }
        let names = ["int", "uint", "double", "string", "bool"];
        self.random.of(&names).to_owned()
    }

    fn list_of_anything(&mut self) -> String {
        let all: Vec<String> =
            (0..=self.random.below(2)).map(|_| format!("dyn({})", self.hidden(1))).collect();
        format!("[{}]", all.join(", "))
    }

    fn comparison(&mut self, depth: usize) -> String {
        let sign = self.random.of(&["<", "<=", ">", ">="]);
        let kind = ORDERED[self.random.below(ORDERED.len())];
        let number = |it: &mut Self| [Type::Int, Type::Uint, Type::Double][it.random.below(3)];
        let (one, two) = match self.random.below(8) {
            0 => (self.hidden(depth), self.term(kind, depth)),
            1 => (self.term(kind, depth), self.hidden(depth)),
            2 | 3 => {
                let (one, two) = (number(self), number(self));
                (self.term(one, depth), self.term(two, depth))
            }
            _ => (self.term(kind, depth), self.term(kind, depth)),
        };
        format!("({one} {sign} {two})")
    }

    fn membership(&mut self, depth: usize) -> String {
        match self.random.below(8) {
            7 => {
                let this = if self.random.percent(50) {
                    self.of_device(Type::Int)
                } else {
                    self.term(Type::Ints, depth)
                };
                format!("{this}.includes({})", self.hidden(depth))
            }
            0 => format!("({} in {})", self.term(Type::Int, depth), self.term(Type::Ints, depth)),
            1 => {
                format!(
                    "({} in {})",
                    self.term(Type::String, depth),
                    self.term(Type::Strings, depth)
                )
            }
            2 => format!("({} in [1.0, 2.5, 8.0, 9007199254740992.0])", self.hidden(depth)),
            3 => format!("({} in [0, 1, 2, 7, 9007199254740993])", self.hidden(depth)),
            4 => format!("({} in ['', 'a', 'A100', '7'])", self.hidden(depth)),
            5 => {
                let of = self.random.of(&["attributes", "capacity"]);
                let key = self.id();
                format!("({key} in {})", self.domain(of))
            }
            _ => {
                let wanted = [Type::Quantity, Type::Version][self.random.below(2)];
                let list = [self.term(wanted, depth), self.term(wanted, depth)].join(", ");
                format!("({} in [{list}])", self.term(wanted, depth))
            }
        }
    }

    fn id(&mut self) -> String {
        let all: Vec<&str> = ATTRIBUTES.iter().map(|(name, _)| *name).chain(CAPACITIES).collect();
        let name = self.random.of(&all);
        quoted(name.rsplit('/').next().unwrap_or(name))
    }

    pub(super) fn presence(&mut self) -> String {
        let of = self.random.of(&["attributes", "capacity"]);
        let id = self.id();
        let id = id.trim_matches('"');
        match self.random.below(6) {
            0 => format!("has(device.{of}.nope)"),
            1 => format!("has(device.{of}[?{}].{id})", quoted(self.random.of(&DOMAINS))),
            2 => format!("has({}.{id})", self.of_device(Type::String)),
            _ => format!("has({}.{id})", self.domain(of)),
        }
    }

    fn quantifier(&mut self, depth: usize) -> String {
        let function = self.random.of(&["all", "exists", "exists", "exists_one"]);
        let inner = depth.min(3) - 1;
        match self.random.below(6) {
            0 | 1 => {
                let (list, name) = (self.term(Type::Ints, depth), self.name());
                let test = self.with(&[(&name, Type::Int)], |it| it.bool(inner));
                format!("{list}.{function}({name}, {test})")
            }
            2 => {
                let (list, name) = (self.term(Type::Strings, depth), self.name());
                let test = self.with(&[(&name, Type::String)], |it| it.bool(inner));
                format!("{list}.{function}({name}, {test})")
            }
            3 => {
                let (list, name) = (self.term(Type::Ints, depth), self.name());
                let variables = [("i", Type::Int), (name.as_str(), Type::Int)];
                let test = self.with(&variables, |it| it.bool(inner));
                format!("{list}.{function}(i, {name}, {test})")
            }
            4 => {
                let kind = [Type::Int, Type::String][self.random.below(2)];
                let value = self.term(kind, 0);
                let of = self.domain("attributes");
                format!("{of}.{function}(id, value, value == {value} || id == {})", self.id())
            }
            _ => {
                let of = self.random.of(&["attributes", "capacity"]);
                let test = match self.random.below(3) {
                    0 => format!("domain == {}", quoted(self.random.of(&DOMAINS))),
                    1 => format!("size(device.{of}[domain]) > {}", self.small()),
                    _ => format!("{} in device.{of}[domain]", self.id()),
                };
                format!("device.{of}.{function}(domain, {test})")
            }
        }
    }

    fn bound(&mut self, depth: usize) -> String {
        let all = [
            Type::Attributes,
            Type::Attributes,
            Type::Int,
            Type::String,
            Type::Quantity,
            Type::Version,
            Type::Ints,
            Type::OptionalInt,
            Type::OptionalQuantity,
        ];
        let kind = all[self.random.below(all.len())];
        let (name, value) = (self.name(), self.term(kind, depth));
        let result = self.with(&[(&name, kind)], |it| it.bool(depth));
        format!("cel.bind({name}, {value}, {result})")
    }

    fn string_test(&mut self, depth: usize) -> String {
        let this = self.term(Type::String, depth);
        match self.random.below(7) {
            4 => {
                let (word, length) = (self.random.of(&STRINGS), self.random.below(8));
                format!("(size({}) == {length})", quoted(word))
            }
            5 => {
                let (word, at) = (quoted(self.random.of(&STRINGS)), self.small());
                format!("({word}.charAt({at}) == {word}.substring({at}, {at} + 1))")
            }
            6 => {
                let (word, part) =
                    (self.random.of(&STRINGS), self.random.of(&["a", "é", "y", "😀", "本"]));
                let function = self.random.of(&["indexOf", "lastIndexOf"]);
                format!("({}.{function}({}) > {})", quoted(word), quoted(part), self.small())
            }
            0 => format!("{this}.matches({})", self.pattern()),
            1 => format!("matches({this}, {})", self.pattern()),
            _ => {
                let function = self.random.of(&["contains", "startsWith", "endsWith"]);
                format!("{this}.{function}({})", self.term(Type::String, depth))
            }
        }
    }

    fn amount_test(&mut self, depth: usize) -> String {
        let function = self.random.of(&["isLessThan", "isGreaterThan"]);
        match self.random.below(9) {
            0 => format!("isQuantity({})", quoted(self.random.of(&ODD_QUANTITIES))),
            1 => format!("isSemver({})", quoted(self.random.of(&ODD_VERSIONS))),
            2 => format!("isSemver({}, true)", quoted(self.random.of(&ODD_VERSIONS))),
            3 => format!("{}.isInteger()", self.term(Type::Quantity, depth)),
            4 => format!("isQuantity({})", self.term(Type::String, depth)),
            5 | 6 => {
                let this = self.of_device(Type::Quantity);
                format!("{this}.{function}(quantity({}))", quoted(self.random.of(&QUANTITIES)))
            }
            7 => {
                let this = self.of_device(Type::Version);
                format!("{this}.{function}(semver({}))", quoted(self.random.of(&VERSIONS)))
            }
            _ => {
                let kind = [Type::Quantity, Type::Version][self.random.below(2)];
                format!("{}.{function}({})", self.term(kind, depth), self.term(kind, depth))
            }
        }
    }

    fn list_test(&mut self, depth: usize) -> String {
        let kind = [Type::Ints, Type::Strings][self.random.below(2)];
        match self.random.below(4) {
            0 => format!("{}.isSorted()", self.term(kind, depth)),
            1 => format!(
                "({}.indexOf({}) == {})",
                self.term(Type::Ints, depth),
                self.term(Type::Int, 0),
                self.small()
            ),
            _ => {
                let function = self.random.of(&["contains", "equivalent", "intersects"]);
                format!("sets.{function}({}, {})", self.term(kind, depth), self.term(kind, depth))
            }
        }
    }

    fn optional_test(&mut self, depth: usize) -> String {
        let kinds = [Type::OptionalInt, Type::OptionalString, Type::OptionalQuantity];
        let kind = kinds[self.random.below(3)];
        format!("{}.hasValue()", self.term(kind, depth))
    }

    fn map_test(&mut self, depth: usize) -> String {
        let (one, two) = (self.term(Type::Int, depth), self.term(Type::Int, depth));
        match self.random.below(6) {
            0 => format!("({{'a': {one}, 'b': {two}}}.a == {})", self.term(Type::Int, 0)),
            1 => format!("({one} in {{1: 'a', 2: 'b'}})"),
            2 => format!("({{1: {one}, 2: {two}}}[{}] > 0)", self.small()),
            3 => format!("has({{'a': {one}, ?'b': {}}}.b)", self.term(Type::OptionalInt, depth)),
            4 => {
                let test = format!("{{'a': {one}, 'b': {two}}}.transformMap(k, v, v > 0, v - 1)");
                format!("({test} == {{'a': {}}})", self.small())
            }
            _ => {
                let domain = self.domain("attributes");
                format!("(size({domain}.transformMap(k, v, k != {}, 1)) > 1)", self.id())
            }
        }
    }

    pub(super) fn optional(&mut self, of: Type, depth: usize) -> String {
        match self.random.below(9) {
            0 => format!("optional.of({})", self.term(of, depth)),
            1 => "optional.none()".to_owned(),
            2 if of != Type::Quantity => {
                format!("optional.ofNonZeroValue({})", self.term(of, depth))
            }
            3 if depth > 0 => {
                let (one, two) = (self.optional(of, depth - 1), self.optional(of, depth - 1));
                format!("{one}.or({two})")
            }
            4 if depth > 0 => {
                let function = self.random.of(&["optMap", "optMap", "optFlatMap"]);
                let (this, name) = (self.optional(of, depth - 1), self.name());
                let mapped = self.with(&[(&name, of)], |it| match function {
                    "optMap" => it.term(of, depth - 1),
                    _ => it.optional(of, depth - 1),
                });
                format!("{this}.{function}({name}, {mapped})")
            }
            5 if of == Type::Int => {
                let function = self.random.of(&["first", "last"]);
                format!("{}.{function}()", self.term(Type::Ints, depth))
            }
            6 if of == Type::Int => format!("{}[?{}]", self.term(Type::Ints, depth), self.small()),
            _ => self.optional_of_device(of),
        }
    }

    fn optional_of_device(&mut self, of: Type) -> String {
        let (map, kind) = match of {
            Type::Quantity => ("capacity", None),
            Type::Int => ("attributes", Some(Kind::Int)),
            _ => ("attributes", Some(Kind::Text)),
        };
        let names: Vec<&str> = match kind {
            Some(kind) => {
                ATTRIBUTES.iter().filter(|(_, it)| *it == kind).map(|(name, _)| *name).collect()
            }
            None => CAPACITIES.to_vec(),
        };
        let name = self.random.of(&names);
        let (domain, id) = name.split_once('/').unwrap_or((DRIVER, name));
        match self.random.below(3) {
            0 => format!("device.{map}[{}].?{id}", quoted(domain)),
            1 => format!("device.{map}[?{}].{id}", quoted(domain)),
            _ => format!("device.{map}[{}][?{}]", quoted(domain), quoted(id)),
        }
    }
}

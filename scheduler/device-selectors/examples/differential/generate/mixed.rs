//! Conditions whose types show only when they are evaluated, and forms that are rare elsewhere.

use super::Generator;
use super::terms::{PLAIN, Type};
use super::words::{DOMAINS, DRIVER, QUANTITIES, VERSIONS, quoted};

impl Generator {
    pub(super) fn mixed(&mut self, depth: usize) -> String {
        match self.random.below(6) {
            0 => self.operator_on_hidden(depth),
            1 => self.method_of_hidden(depth),
            2 => self.index_of_anything(depth),
            3 => self.nested_optional(depth),
            4 => self.whole_map(depth),
            _ => self.rare_loop(depth),
        }
    }

    fn operator_on_hidden(&mut self, depth: usize) -> String {
        let kind = PLAIN[self.random.below(PLAIN.len())];
        let (one, two) = (self.hidden(depth), self.term(kind, depth));
        match self.random.below(8) {
            0 => {
                let sign = self.random.of(&["+", "-", "*", "/", "%"]);
                format!("(({one} {sign} {}) == {two})", self.hidden(depth))
            }
            1 => format!("(-{one} == {two})"),
            2 => format!("!{one}"),
            3 => format!("({one} ? {} : {})", self.bool(1), self.bool(1)),
            4 => format!("({one} && {})", self.bool(depth - 1)),
            5 => format!("({one} || {} || {})", self.hidden(depth), self.bool(depth - 1)),
            6 => {
                let sign = self.random.of(&["<", "<=", ">", ">="]);
                format!("({one} {sign} {})", self.hidden(depth))
            }
            _ => format!("({one} in [dyn({two}), dyn({})])", self.hidden(depth)),
        }
    }

    fn method_of_hidden(&mut self, depth: usize) -> String {
        let this = self.hidden(depth);
        let kind = PLAIN[self.random.below(PLAIN.len())];
        let other =
            if self.random.percent(50) { self.hidden(depth) } else { self.term(kind, depth) };
        match self.random.below(10) {
            0 => format!("dyn({this}).size() > {}", self.small()),
            1 => {
                let function = self.random.of(&["contains", "startsWith", "endsWith", "matches"]);
                format!("{this}.{function}({other})")
            }
            2 | 3 => {
                let function = self.random.of(&["isLessThan", "isGreaterThan"]);
                let other = match self.random.below(3) {
                    0 => format!("quantity({})", quoted(self.random.of(&QUANTITIES))),
                    1 => format!("semver({})", quoted(self.random.of(&VERSIONS))),
                    _ => other,
                };
                format!("{this}.{function}({other})")
            }
            4 => format!("({this}.compareTo({other}) <= 0)"),
            5 => format!("({this}.major() > {other})"),
            6 => format!("{this}.lowerAscii() == {other}"),
            7 => {
                let to = self.random.of(&["int", "uint", "double", "string", "bool"]);
                format!("({to}({this}) == {to}({other}))")
            }
            8 => format!("isQuantity({this}) || isSemver({this})"),
            _ => format!("bytes({this}).size() == size(bytes({other}))"),
        }
    }

    fn index_of_anything(&mut self, depth: usize) -> String {
        let index = match self.random.below(6) {
            0 => "1u".to_owned(),
            1 => "1.0".to_owned(),
            2 => "0.5".to_owned(),
            3 => self.hidden(depth),
            _ => self.small(),
        };
        match self.random.below(6) {
            0 => format!("({}[dyn({index})] >= 0)", self.term(Type::Ints, depth)),
            1 => format!("{}[?dyn({index})].hasValue()", self.term(Type::Strings, depth)),
            2 => format!("({{1: 'a', 2: 'b'}}[dyn({index})] == 'a')"),
            3 => format!("(dyn({index}) in {{0: 1, 1: 2}})"),
            4 => {
                let key = self.term(Type::String, depth);
                format!("has({{'a': 1}}.a) == ({key} in {{'a': 1, 'A100': 2}})")
            }
            _ => format!("device.attributes[{}][dyn({index})]", quoted(DRIVER)),
        }
    }

    fn nested_optional(&mut self, depth: usize) -> String {
        let kinds = [Type::Int, Type::String, Type::Quantity];
        let kind = kinds[self.random.below(3)];
        let (one, two) = (self.optional(kind, depth - 1), self.optional(kind, depth - 1));
        let condition = self.bool(1);
        match self.random.below(10) {
            0 => format!("optional.of({one}).value().hasValue()"),
            1 => format!("(optional.of({one}) == optional.of({two}))"),
            2 => format!("({condition} ? {one} : {two}).hasValue()"),
            3 => format!("({one}.value() == {two}.value())"),
            4 => {
                let name = self.name();
                format!(
                    "cel.bind({name}, {one}, {name}.hasValue() && {name}.value() == {two}.value())"
                )
            }
            5 => format!("(({condition} ? {one} : {two}) == {one})"),
            6 => format!("[{one}, {two}].unwrapOpt().size() > 0"),
            7 => {
                let domain = quoted(self.random.of(&DOMAINS));
                format!("device.attributes[?{domain}].?cores.orValue(0) == {}", self.small())
            }
            8 => {
                let domain = quoted(self.random.of(&DOMAINS));
                let test = format!("has(device.attributes[?{domain}].cores)");
                format!("({condition} ? {test} : {})", self.presence())
            }
            _ => format!("{one}.or({two}).optMap(o, o == {}).orValue(true)", self.term(kind, 0)),
        }
    }

    fn whole_map(&mut self, depth: usize) -> String {
        let of = self.random.of(&["attributes", "capacity"]);
        let (one, two) = (self.domain(of), self.domain(of));
        match self.random.below(8) {
            0 => format!("({one} == {two})"),
            1 => format!("(device.{of} == {{{}: {one}}})", quoted(DRIVER)),
            2 => format!("({{'x': {{}}}} == dyn(device.{of}))"),
            3 => "(device.attributes['x'] == device.capacity['y'])".to_owned(),
            4 => {
                let name = self.name();
                let domain = quoted(self.random.of(&DOMAINS));
                format!("cel.bind({name}, device.{of}, size({name}[{domain}]) > {})", self.small())
            }
            5 => {
                let domain = quoted(self.random.of(&DOMAINS));
                format!("optional.of(device.{of})[{domain}].hasValue()")
            }
            6 => format!("({} in {one})", self.term(Type::String, depth)),
            _ => format!("size({one}) < size({two})"),
        }
    }

    fn rare_loop(&mut self, depth: usize) -> String {
        let (list, name) = (self.term(Type::Ints, depth), self.name());
        let inner = depth.min(2) - 1;
        let test = self.with(&[(&name, Type::Int)], |it| it.bool(inner));
        match self.random.below(8) {
            0 => format!("({list}.map({name}, {test}, {name}).size() > 0)"),
            1 => format!("({list}.transformList(i, {name}, {test}, i).size() > 0)"),
            2 => format!("({list}.transformMap(i, {name}, {name}) == {{0: {}}})", self.small()),
            3 => format!("({list}.transformMapEntry(i, {name}, {{{name}: i}}).size() > 1)"),
            4 => format!("({list}.filter({name}, {test}).sum() > {})", self.small()),
            5 => {
                let other = self.hidden(1);
                format!("{list}.exists({name}, {other} == {name} || {test})")
            }
            6 => format!("{list}.all({name}, {list}.exists({name}, {test}) || {test})"),
            _ => format!("({list}.map({name}, [{name}, {name}]).flatten().distinct() == {list})"),
        }
    }
}

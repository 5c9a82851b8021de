//! Syntax tree to [`Node`]: names are resolved, macros expanded, constants folded.

mod calls;
mod macros;

use cel::common::ast::{EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr};
use cel::parser::Expression as Syntax;

use crate::budget::Budget;
use crate::evaluate;
use crate::node::{Element, Entry, Fold, Node, Path, Register, Step};
use crate::value::Value;

/// Names of types that stand for themselves.
const TYPES: [&str; 11] = [
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "optional_type",
    "string",
    "type",
    "uint",
];

#[derive(Debug, Default)]
pub(crate) struct Lowering {
    /// Innermost last.
    scopes: Vec<(String, Register)>,
    pub registers: usize,
}

type Lowered = Result<Node, String>;

impl Lowering {
    pub fn lower(&mut self, syntax: &Syntax) -> Lowered {
        match &syntax.expr {
            Expr::Literal(literal) => Ok(Node::Constant(constant(literal))),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Comprehension(it) => {
                let range = self.lower(&it.iter_range)?;
                let initial = self.lower(&it.accu_init)?;
                let depth = self.scopes.len();
                let accumulator = self.bind(&it.accu_var);
                let result = self.lower(&it.result)?;
                let first = self.bind(&it.iter_var);
                let second = it.iter_var2.as_ref().map(|name| self.bind(name));
                let condition = self.lower(&it.loop_cond)?;
                let step = self.lower(&it.loop_step)?;
                self.scopes.truncate(depth);
                let fold =
                    Fold { range, first, second, accumulator, initial, condition, step, result };
                Ok(Node::Fold(Box::new(fold)))
            }
            Expr::Struct(it) => Err(format!("messages are not supported here: {}", it.type_name)),
            Expr::Unspecified => Err("Syntax error".into()),
        }
    }

    /// A new variable, until the scope is cut back.
    fn bind(&mut self, name: &str) -> Register {
        let register = self.registers;
        self.registers += 1;
        self.scopes.push((name.to_owned(), register));
        register
    }

    fn find(&self, name: &str) -> Option<Register> {
        let named = |(known, _): &&(String, Register)| known == name;
        self.scopes.iter().rev().find(named).map(|(_, register)| *register)
    }

    fn variable(&self, name: &str) -> Lowered {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some(register) = self.find(name) {
            return Ok(Node::Variable(register));
        }
        if name == "device" {
            return Ok(Node::Device);
        }
        let of_type = TYPES.into_iter().find(|it| *it == name);
        of_type
            .map(|it| Node::Constant(Value::Type(it)))
            .ok_or_else(|| format!("undeclared reference to '{name}'"))
    }

    fn select(&mut self, select: &SelectExpr) -> Lowered {
        let base = self.lower(&select.operand)?;
        let key = Node::Constant(Value::string(select.field.as_str()));
        Ok(with_step(base, Step { key, optional: false }, select.test))
    }

    fn list(&mut self, list: &ListExpr) -> Lowered {
        let mut elements = Vec::with_capacity(list.elements.len());
        for (at, element) in list.elements.iter().enumerate() {
            let optional = list.optional_indices.contains(&at);
            elements.push(Element { value: self.lower(element)?, optional });
        }
        let constants: Option<Vec<Value>> = elements
            .iter()
            .map(|it| match &it.value {
                Node::Constant(value) if !it.optional => Some(value.clone()),
                _ => None,
            })
            .collect();
        Ok(constants.map_or(Node::List(elements), |it| Node::Constant(Value::list(it))))
    }

    fn map(&mut self, map: &MapExpr) -> Lowered {
        let mut entries = Vec::with_capacity(map.entries.len());
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                return Err("Syntax error".into());
            };
            let (key, value) = (self.lower(&entry.key)?, self.lower(&entry.value)?);
            entries.push(Entry { key, value, optional: entry.optional });
        }
        let is_constant = |node: &Node| matches!(node, Node::Constant(_));
        let all = entries.iter().all(|it| is_constant(&it.key) && is_constant(&it.value));
        if all && entries.iter().all(|it| !it.optional) {
            return fold_constant(&Node::Map(entries));
        }
        Ok(Node::Map(entries))
    }
}

fn constant(literal: &LiteralValue) -> Value {
    match literal {
        LiteralValue::Boolean(it) => Value::Bool(**it),
        LiteralValue::Bytes(it) => Value::Bytes((**it).into()),
        LiteralValue::Double(it) => Value::Double(**it),
        LiteralValue::Int(it) => Value::Int(**it),
        LiteralValue::Null => Value::Null,
        LiteralValue::String(it) => Value::string(&**it),
        LiteralValue::UInt(it) => Value::Uint(**it),
    }
}

/// A value that does not depend on the device. What fails for all devices is refused at once.
fn fold_constant(node: &Node) -> Lowered {
    let value = evaluate::constant(node, &mut Budget::default());
    value.map(Node::Constant).map_err(|failure| failure.text.to_string())
}

/// Steps are gathered, so that an optional one is known to those after it.
fn with_step(base: Node, step: Step, tests: bool) -> Node {
    match base {
        Node::Path(mut path) if !path.tests => {
            path.steps.push(step);
            path.tests = tests;
            Node::Path(path)
        }
        base => Node::Path(Box::new(Path { base, steps: vec![step], tests })),
    }
}

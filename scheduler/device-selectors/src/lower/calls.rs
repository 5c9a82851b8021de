//! Operators and functions.

use cel::common::ast::{CallExpr, Expr, operators};
use cel::parser::Expression as Syntax;

use super::{Lowered, Lowering, fold_constant, with_step};
use crate::functions::{self, Function};
use crate::node::{Comparison, Node, Operator, RegexUse, Step};
use crate::order;
use crate::value::Value;

/// Names before a function that are no variables.
const NAMESPACES: [&str; 5] = ["cel", "optional", "sets", "lists", "strings"];

/// Libraries that exist in Kubernetes, of which nobody has use for devices.
const NOT_SUPPORTED: [&str; 47] = [
    "authorizer",
    "cidr",
    "containsCIDR",
    "containsIP",
    "duration",
    "errored",
    "error",
    "family",
    "format",
    "format.named",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getEscapedPath",
    "getFullYear",
    "getHost",
    "getHostname",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getPort",
    "getQuery",
    "getScheme",
    "getSeconds",
    "group",
    "ip",
    "ip.isCanonical",
    "isCIDR",
    "isCanonical",
    "isGlobalUnicast",
    "isIP",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isLoopback",
    "isURL",
    "isUnspecified",
    "masked",
    "named",
    "namespace",
    "prefixLength",
    "resource",
    "serviceAccount",
    "timestamp",
    "url",
    "validate",
];

fn not_supported(name: &str) -> String {
    format!("{name}() is not supported here")
}

impl Lowering {
    pub(super) fn call(&mut self, call: &CallExpr) -> Lowered {
        let name = call.func_name.as_str();
        let args = call.args.as_slice();
        if let Some(target) = &call.target {
            return match &target.expr {
                Expr::Ident(space) if self.is_namespace(space) => {
                    self.in_namespace(space, name, args)
                }
                _ => self.method(target, name, args),
            };
        }
        if let Some(node) = self.operator(name, args)? {
            return Ok(node);
        }
        let name = name.strip_prefix('.').unwrap_or(name);
        let function = Function::global(name, args.len());
        let function = function.ok_or_else(|| unknown(name, args.len()))?;
        let args = self.all(args)?;
        called(function, args)
    }

    fn is_namespace(&self, name: &str) -> bool {
        NAMESPACES.contains(&name) && self.find(name).is_none()
    }

    fn all(&mut self, args: &[Syntax]) -> Result<Vec<Node>, String> {
        args.iter().map(|it| self.lower(it)).collect()
    }

    fn in_namespace(&mut self, space: &str, name: &str, args: &[Syntax]) -> Lowered {
        if (space, name) == ("cel", "bind") {
            return self.bind_macro(args);
        }
        let full = format!("{space}.{name}");
        let function = Function::global(&full, args.len());
        let function = function.ok_or_else(|| unknown(&full, args.len()))?;
        let args = self.all(args)?;
        called(function, args)
    }

    fn method(&mut self, target: &Syntax, name: &str, args: &[Syntax]) -> Lowered {
        if let Some(expanded) = self.method_macro(target, name, args)? {
            return Ok(expanded);
        }
        if matches!(name, "or" | "orValue") && args.len() == 1 {
            let sides = [self.lower(target)?, self.lower(&args[0])?].into();
            let or = if name == "or" { Node::OptionalOr } else { Node::OptionalOrValue };
            return Ok(or(sides));
        }
        let function = Function::method(name, args.len());
        let function = function.ok_or_else(|| unknown(name, args.len()))?;
        let mut all = vec![self.lower(target)?];
        all.extend(self.all(args)?);
        called(function, all)
    }

    fn operator(&mut self, name: &str, args: &[Syntax]) -> Result<Option<Node>, String> {
        let args = match args {
            [one] => return self.unary(name, one),
            [one, two] => [one, two],
            [condition, one, two] if name == operators::CONDITIONAL => {
                let all = [self.lower(condition)?, self.lower(one)?, self.lower(two)?];
                return Ok(Some(Node::Conditional(Box::new(all))));
            }
            _ => return Ok(None),
        };
        let [one, two] = args;
        let sides = [self.lower(one)?, self.lower(two)?];
        match name {
            operators::IN => return Ok(Some(membership(sides))),
            operators::INDEX => return Ok(Some(indexed(sides, false))),
            operators::OPT_INDEX | operators::OPT_SELECT => {
                return Ok(Some(indexed(sides, true)));
            }
            _ => {}
        }
        let build: fn(Box<[Node; 2]>) -> Node = match name {
            operators::LOGICAL_AND => Node::And,
            operators::LOGICAL_OR => Node::Or,
            operators::EQUALS => Node::Equal,
            operators::NOT_EQUALS => Node::NotEqual,
            operators::LESS => |it| Node::Ordered(Comparison::Less, it),
            operators::LESS_EQUALS => |it| Node::Ordered(Comparison::LessOrEqual, it),
            operators::GREATER => |it| Node::Ordered(Comparison::Greater, it),
            operators::GREATER_EQUALS => |it| Node::Ordered(Comparison::GreaterOrEqual, it),
            operators::ADD => |it| Node::Arithmetic(Operator::Add, it),
            operators::SUBSTRACT => |it| Node::Arithmetic(Operator::Subtract, it),
            operators::MULTIPLY => |it| Node::Arithmetic(Operator::Multiply, it),
            operators::DIVIDE => |it| Node::Arithmetic(Operator::Divide, it),
            operators::MODULO => |it| Node::Arithmetic(Operator::Remainder, it),
            _ => return Ok(None),
        };
        Ok(Some(build(Box::new(sides))))
    }

    fn unary(&mut self, name: &str, arg: &Syntax) -> Result<Option<Node>, String> {
        Ok(Some(match name {
            operators::LOGICAL_NOT => Node::Not(Box::new(self.lower(arg)?)),
            operators::NEGATE => Node::Negate(Box::new(self.lower(arg)?)),
            operators::NOT_STRICTLY_FALSE => Node::NotStrictlyFalse(Box::new(self.lower(arg)?)),
            _ => return Ok(None),
        }))
    }
}

fn unknown(name: &str, args: usize) -> String {
    let is_known = functions::is_known(name);
    if NOT_SUPPORTED.contains(&name) && !is_known {
        not_supported(name)
    } else if is_known {
        format!("found no matching overload for '{name}' with {args} arguments")
    } else {
        format!("undeclared reference to '{name}'")
    }
}

fn indexed(sides: [Node; 2], optional: bool) -> Node {
    let [base, key] = sides;
    with_step(base, Step { key, optional }, false)
}

/// Among constants of primitive types kube-scheduler looks up the value instead of comparing it.
fn membership(sides: [Node; 2]) -> Node {
    if let Node::Constant(Value::List(list)) = &sides[1] {
        if list.is_empty() {
            return Node::Constant(Value::Bool(false));
        }
        let is_primitive = |it: &Value| order::is_ordered(it) && !matches!(it, Value::Bytes(_));
        if list.iter().all(is_primitive) {
            let list = list.clone();
            let [needle, _] = sides;
            return Node::InConstants(Box::new(needle), list);
        }
    }
    Node::In(Box::new(sides))
}

/// Conversions of constants are done once, and constant patterns compiled.
fn called(function: Function, args: Vec<Node>) -> Lowered {
    if function.is_conversion() && matches!(&args[..], [Node::Constant(_)]) {
        return fold_constant(&Node::Call(function, args));
    }
    let kind = match function {
        Function::Matches => RegexUse::Matches,
        Function::Find => RegexUse::Find,
        Function::FindAll if args.len() == 2 => RegexUse::FindAll,
        _ => return Ok(Node::Call(function, args)),
    };
    match <[Node; 2]>::try_from(args) {
        Ok([text, Node::Constant(Value::String(pattern))]) => {
            let regex =
                functions::compile_pattern(&pattern).map_err(|failure| failure.text.to_string())?;
            Ok(Node::MatchConstant(Box::new(text), kind, regex))
        }
        Ok(args) => Ok(Node::Call(function, args.into())),
        Err(args) => Ok(Node::Call(function, args)),
    }
}

//! Macros that the parser does not expand.

use cel::common::ast::Expr;
use cel::parser::Expression as Syntax;

use super::{Lowered, Lowering};
use crate::functions::Function;
use crate::node::{Bind, Element, Fold, Node, Operator, Register};
use crate::value::Value;

fn name_of(syntax: &Syntax) -> Result<&str, String> {
    match &syntax.expr {
        Expr::Ident(name) => Ok(name),
        _ => Err("argument must be a simple name".into()),
    }
}

fn yes() -> Node {
    Node::Constant(Value::Bool(true))
}

/// `accumulator + [element]`, if the filter lets it through.
fn append(accumulator: Register, element: Node, filter: Option<Node>) -> Node {
    let list = Node::List(vec![Element { value: element, optional: false }]);
    let sum = [Node::Variable(accumulator), list].into();
    filtered(accumulator, Node::Arithmetic(Operator::Add, sum), filter)
}

fn filtered(accumulator: Register, step: Node, filter: Option<Node>) -> Node {
    let Some(filter) = filter else { return step };
    Node::Conditional([filter, step, Node::Variable(accumulator)].into())
}

impl Lowering {
    /// `cel.bind(name, value, result)`.
    pub(super) fn bind_macro(&mut self, args: &[Syntax]) -> Lowered {
        let [name, value, result] = args else {
            return Err("found no matching overload for 'bind'".into());
        };
        let value = self.lower(value)?;
        self.bound(name_of(name)?, value, |this, _| this.lower(result))
    }

    fn bound(
        &mut self,
        name: &str,
        value: Node,
        result: impl FnOnce(&mut Self, Register) -> Lowered,
    ) -> Lowered {
        let depth = self.scopes.len();
        let register = self.bind(name);
        let result = result(self, register);
        self.scopes.truncate(depth);
        Ok(Node::Bind(Box::new(Bind { register, value, result: result? })))
    }

    pub(super) fn method_macro(
        &mut self,
        target: &Syntax,
        name: &str,
        args: &[Syntax],
    ) -> Result<Option<Node>, String> {
        Ok(Some(match (name, args) {
            ("all" | "exists" | "exists_one" | "existsOne", [one, two, test]) => {
                self.quantifier(target, name, [one, two], test)?
            }
            ("transformList" | "transformMap" | "transformMapEntry", [one, two, transform]) => {
                self.transform(target, name, [one, two], None, transform)?
            }
            (
                "transformList" | "transformMap" | "transformMapEntry",
                [one, two, filter, transform],
            ) => self.transform(target, name, [one, two], Some(filter), transform)?,
            ("optMap" | "optFlatMap", [variable, result]) => {
                self.optional_map(target, name, variable, result)?
            }
            ("sortBy", [variable, key]) => self.sort_by(target, variable, key)?,
            _ => return Ok(None),
        }))
    }

    fn quantifier(
        &mut self,
        target: &Syntax,
        name: &str,
        variables: [&Syntax; 2],
        test: &Syntax,
    ) -> Lowered {
        self.fold(target, variables, |this, accumulator| {
            let test = this.lower(test)?;
            let now = || Node::Variable(accumulator);
            Ok(match name {
                "all" => Loop {
                    initial: yes(),
                    condition: Node::NotStrictlyFalse(Box::new(now())),
                    step: Node::And([now(), test].into()),
                    result: now(),
                },
                "exists" => Loop {
                    initial: Node::Constant(Value::Bool(false)),
                    condition: Node::NotStrictlyFalse(Box::new(Node::Not(Box::new(now())))),
                    step: Node::Or([now(), test].into()),
                    result: now(),
                },
                _ => {
                    let one = || Node::Constant(Value::Int(1));
                    let more = Node::Arithmetic(Operator::Add, [now(), one()].into());
                    Loop {
                        initial: Node::Constant(Value::Int(0)),
                        condition: yes(),
                        step: Node::Conditional([test, more, now()].into()),
                        result: Node::Equal([now(), one()].into()),
                    }
                }
            })
        })
    }

    fn transform(
        &mut self,
        target: &Syntax,
        name: &str,
        variables: [&Syntax; 2],
        filter: Option<&Syntax>,
        transform: &Syntax,
    ) -> Lowered {
        let key = name_of(variables[0])?;
        self.fold(target, variables, |this, accumulator| {
            let filter = filter.map(|it| this.lower(it)).transpose()?;
            let transformed = this.lower(transform)?;
            let now = || Node::Variable(accumulator);
            let (initial, step) = match name {
                "transformList" => {
                    let step = append(accumulator, transformed, filter);
                    (Node::Constant(Value::list(Vec::new())), step)
                }
                "transformMap" => {
                    let insert =
                        Node::InsertEntry([now(), this.variable(key)?, transformed].into());
                    (Node::Map(Vec::new()), filtered(accumulator, insert, filter))
                }
                _ => {
                    let insert = Node::InsertEntries([now(), transformed].into());
                    (Node::Map(Vec::new()), filtered(accumulator, insert, filter))
                }
            };
            Ok(Loop { initial, condition: yes(), step, result: now() })
        })
    }

    /// A loop over keys, or indices, and values.
    fn fold(
        &mut self,
        target: &Syntax,
        variables: [&Syntax; 2],
        body: impl FnOnce(&mut Self, Register) -> Result<Loop, String>,
    ) -> Lowered {
        let [one, two] = [name_of(variables[0])?, name_of(variables[1])?];
        if one == two {
            return Err(format!("duplicate variable name: {one}"));
        }
        let range = self.lower(target)?;
        let depth = self.scopes.len();
        let accumulator = self.bind("@result");
        let (first, second) = (self.bind(one), Some(self.bind(two)));
        let body = body(self, accumulator);
        self.scopes.truncate(depth);
        let Loop { initial, condition, step, result } = body?;
        let fold = Fold { range, first, second, accumulator, initial, condition, step, result };
        Ok(Node::Fold(Box::new(fold)))
    }

    /// The value inside an optional, if there is one, through an expression.
    fn optional_map(
        &mut self,
        target: &Syntax,
        name: &str,
        variable: &Syntax,
        result: &Syntax,
    ) -> Lowered {
        let target = self.lower(target)?;
        let variable = name_of(variable)?;
        self.bound("@optional", target, |this, optional| {
            let has_value = Node::Call(Function::HasValue, vec![Node::Temporary(optional)]);
            let value = Node::Call(Function::Value, vec![Node::Temporary(optional)]);
            let mapped = this.bound(variable, value, |this, _| this.lower(result))?;
            let mapped = match name {
                "optMap" => Node::Call(Function::OptionalOf, vec![mapped]),
                _ => mapped,
            };
            let none = Node::Call(Function::OptionalNone, Vec::new());
            Ok(Node::Conditional([has_value, mapped, none].into()))
        })
    }

    /// By the key of each element.
    fn sort_by(&mut self, target: &Syntax, variable: &Syntax, key: &Syntax) -> Lowered {
        let list = self.lower(target)?;
        let variable = name_of(variable)?;
        self.bound("@sortBy", list, |this, list| {
            let depth = this.scopes.len();
            let accumulator = this.bind("@result");
            let first = this.bind(variable);
            let key = this.lower(key);
            this.scopes.truncate(depth);
            let keys = Fold {
                range: Node::Variable(list),
                first,
                second: None,
                accumulator,
                initial: Node::Constant(Value::list(Vec::new())),
                condition: yes(),
                step: append(accumulator, key?, None),
                result: Node::Variable(accumulator),
            };
            let args = vec![Node::Variable(list), Node::Fold(Box::new(keys))];
            Ok(Node::Call(Function::SortByKeys, args))
        })
    }
}

struct Loop {
    initial: Node,
    condition: Node,
    step: Node,
    result: Node,
}

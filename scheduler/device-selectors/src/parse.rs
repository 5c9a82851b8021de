//! Text to syntax tree. The parser is the one of the crate `cel`.

use std::thread;

use cel::parser::{Expression as Syntax, Parser};

/// As the API server has it.
const TEXT_BYTES_MAX: usize = 10 * 1024;
/// How deep the syntax tree can be. Selectors in use are less than 20 deep.
const DEPTH_MAX: usize = 120;
/// The parser takes some KiB of stack for each pair of brackets; this is more than [`DEPTH_MAX`] of them need. The stack
/// of the caller may be smaller.
const STACK_BYTES: usize = 64 << 20;

pub(crate) fn parse(text: &str) -> Result<Syntax, String> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!("too long: must be no more than {TEXT_BYTES_MAX} bytes"));
    }
    if depth(text) > DEPTH_MAX {
        return Err(format!("too deeply nested: no more than {DEPTH_MAX} levels are read"));
    }
    thread::scope(|scope| {
        let parser = || {
            let parser = Parser::new().enable_optional_syntax(true);
            parser.parse(text).map_err(|errors| first_line(&errors.to_string()))
        };
        let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, parser);
        let thread = thread.map_err(|why| format!("cannot be parsed now: {why}"))?;
        thread.join().unwrap_or_else(|_| Err("Syntax error".into()))
    })
}

fn first_line(errors: &str) -> String {
    errors.lines().next().unwrap_or("Syntax error").trim_start_matches("ERROR: ").to_owned()
}

/// What one pair of brackets contributed so far.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Operators since the last `&&`, `||` or comma: the tree of a chain is as deep as the chain is long.
    operators: usize,
    deepest: usize,
    conditionals: usize,
}

impl Level {
    fn end_operand(&mut self) {
        self.deepest = self.deepest.max(self.operators);
        self.operators = 0;
    }

    fn end_element(&mut self) {
        self.end_operand();
        self.conditionals = 0;
    }

    fn depth(self) -> usize {
        1 + self.deepest.max(self.operators) + self.conditionals
    }
}

/// An upper bound of the depth of the syntax tree, found without building it.
fn depth(text: &str) -> usize {
    let mut outer: Vec<Level> = Vec::new();
    let (mut level, mut depth_outside, mut deepest) = (Level::default(), 0, 0);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (token, after) = rest.split_at(token_bytes(rest, first));
        rest = after;
        match token {
            "(" | "[" | "{" => {
                level.operators += 1;
                depth_outside += level.depth();
                outer.push(level);
                level = Level::default();
            }
            ")" | "]" | "}" => {
                deepest = deepest.max(depth_outside + level.depth());
                if let Some(outside) = outer.pop() {
                    depth_outside -= outside.depth();
                    level = outside;
                }
            }
            "&&" | "||" => level.end_operand(),
            "," => level.end_element(),
            "?" => level.conditionals += 1,
            "." | "!" | "-" | "+" | "*" | "/" | "%" | "<" | ">" | "=" | "in" => {
                level.operators += 1;
            }
            _ => {}
        }
        deepest = deepest.max(depth_outside + level.depth());
    }
    deepest
}

/// Literals and comments are one token each, so that what is in them does not count.
fn token_bytes(rest: &str, first: char) -> usize {
    let line = || rest.find('\n').unwrap_or(rest.len());
    match first {
        '"' | '\'' => string_bytes(rest, first),
        '`' => rest[1..].find('`').map_or(rest.len(), |at| at + 2),
        '/' if rest.starts_with("//") => line(),
        '&' if rest.starts_with("&&") => 2,
        '|' if rest.starts_with("||") => 2,
        it if it.is_ascii_alphanumeric() || it == '_' => word_bytes(rest),
        it => it.len_utf8(),
    }
}

/// A word, and the string that it is a prefix of.
fn word_bytes(rest: &str) -> usize {
    let is_part = |it: &u8| it.is_ascii_alphanumeric() || *it == b'_';
    let word = rest.bytes().take_while(is_part).count();
    let raw = rest[..word].contains(['r', 'R']);
    let is_prefix = word <= 2 && rest[..word].bytes().all(|it| b"rRbB".contains(&it));
    match rest[word..].chars().next() {
        Some(quote @ ('"' | '\'')) if is_prefix && raw => {
            word + raw_string_bytes(&rest[word..], quote)
        }
        _ => word,
    }
}

fn closing(rest: &str, quote: char) -> String {
    let triple = quote.to_string().repeat(3);
    if rest.starts_with(&triple) { triple } else { quote.to_string() }
}

fn raw_string_bytes(rest: &str, quote: char) -> usize {
    let closing = closing(rest, quote);
    let inside = rest[closing.len()..].find(&closing);
    inside.map_or(rest.len(), |at| at + 2 * closing.len())
}

fn string_bytes(rest: &str, quote: char) -> usize {
    let closing = closing(rest, quote);
    let mut at = closing.len();
    while let Some(next) = rest[at..].chars().next() {
        if rest[at..].starts_with(&closing) {
            return at + closing.len();
        }
        at += next.len_utf8();
        if next == '\\' {
            at += rest[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    rest.len()
}

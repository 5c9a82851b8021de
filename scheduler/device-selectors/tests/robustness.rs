//! No text ends the program, whatever it is.

use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use device_selectors::Expression;
use model::{Attribute, DeviceType};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn device() -> DeviceType {
    let attributes = [("a", Attribute::Int(1)), ("v", Attribute::Version("1.0.0".into()))];
    DeviceType {
        driver: "d".into(),
        attributes: attributes.into_iter().map(|(name, it)| (name.into(), it)).collect(),
        ..DeviceType::default()
    }
}

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// On any thread: the parser has one of its own, whose panics would only be seen as a refusal.
fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::Relaxed);
            before(info);
        }));
    });
}

fn compile_and_evaluate(text: &str) {
    count_panics();
    if let Ok(expression) = Expression::compile(text) {
        expression.evaluate(&device());
    }
    assert_eq!(PANICS.load(Ordering::Relaxed), 0, "{text}");
}

const TOKENS: [&str; 62] = [
    "device",
    ".",
    "attributes",
    "capacity",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    "'d'",
    "\"a\"",
    "a",
    "v",
    "&&",
    "||",
    "!",
    "-",
    "+",
    "*",
    "/",
    "%",
    "==",
    "!=",
    "<",
    "<=",
    "in",
    "?",
    ":",
    "?.",
    ".?",
    "[?",
    ",",
    "1",
    "0u",
    "1.5",
    "9223372036854775808",
    "-9223372036854775808",
    "1e999",
    "0x",
    "true",
    "null",
    "has",
    "all",
    "exists",
    "map",
    "filter",
    "cel.bind",
    "optMap",
    "sortBy",
    "transformMap",
    "size",
    "lists.range",
    "quantity",
    "semver",
    "matches",
    "b'\\xff'",
    "r'\\'",
    "'\\u00e9'",
    "// c\n",
    "`",
    "😀",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in any::<String>()) {
        compile_and_evaluate(&text);
    }

    #[test]
    fn any_bytes_of_the_language(text in "[a-z.()\\[\\]{}?:,!'\"\\\\0-9 +*/%<>=&|-]{0,80}") {
        compile_and_evaluate(&text);
    }

    #[test]
    fn any_order_of_tokens(tokens in vec(select(&TOKENS[..]), 0..40), blank in any::<bool>()) {
        compile_and_evaluate(&tokens.join(if blank { " " } else { "" }));
    }

    #[test]
    fn any_nesting(opening in select(&NESTS[..]), levels in 1_usize..4_000) {
        let (before, after) = opening;
        compile_and_evaluate(&format!("{}1{}", before.repeat(levels), after.repeat(levels)));
    }
}

const NESTS: [(&str, &str); 22] = [
    ("(", ")"),
    ("[", "]"),
    ("{1: ", "}"),
    ("!", ""),
    ("-", ""),
    ("- ", ""),
    ("!-", ""),
    ("1 + ", ""),
    ("1 * (", ")"),
    ("", " + 1"),
    ("", ".a"),
    ("", "[0]"),
    ("", ".?a"),
    ("", ".size()"),
    ("size(", ")"),
    ("true ? 1 : ", ""),
    ("true ? ", " : 1"),
    ("", " ? 1 : 2"),
    ("1 && ", ""),
    ("1 in [", "]"),
    ("[1].map(x, ", ")"),
    ("cel.bind(x, 1, ", ")"),
];

/// The deepest that are accepted, on the small stack of a thread of tests.
#[test]
fn nesting_is_limited_before_the_stack_ends() {
    for (before, after) in NESTS {
        let mut accepted = 0;
        for levels in 1..=400 {
            let text = format!("{}1{}", before.repeat(levels), after.repeat(levels));
            let compiled = Expression::compile(&text);
            let too_deep = compiled.as_ref().is_err_and(|why| why.contains("too deeply nested"));
            if let Ok(expression) = compiled {
                expression.evaluate(&device());
            }
            accepted = if too_deep { accepted } else { levels };
        }
        assert!(accepted >= 20, "{before}1{after}: only {accepted} levels are accepted");
    }
}

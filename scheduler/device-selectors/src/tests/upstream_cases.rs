//! What the tests of kube-scheduler's evaluator hold, as facts: an expression, what the device has, the verdict.

use model::{Attribute, DeviceCapacity, DeviceType, SelectorVerdict};

use crate::Expression;

const DRIVER: &str = "driver.example.net";

#[derive(Clone, Copy)]
enum Says {
    Yes,
    No,
    /// With this in its text.
    Fails(&'static str),
}

use Says::{Fails, No, Yes};

fn yes() -> Attribute {
    Attribute::Bool(true)
}

fn int(int: i64) -> Attribute {
    Attribute::Int(int)
}

fn text(text: &str) -> Attribute {
    Attribute::Text(text.into())
}

fn version(version: &str) -> Attribute {
    Attribute::Version(version.into())
}

fn device(attributes: &[(&str, Attribute)], capacity: &[(&str, &str)]) -> DeviceType {
    let attributes = attributes.iter().map(|(name, it)| ((*name).into(), it.clone()));
    let capacity = capacity.iter().map(|(name, text)| {
        let text = (*text).into();
        ((*name).into(), DeviceCapacity { text, ..DeviceCapacity::default() })
    });
    DeviceType {
        driver: DRIVER.into(),
        attributes: attributes.collect(),
        capacity: capacity.collect(),
        allow_multiple_allocations: false,
    }
}

/// `$A` and `$C` stand for the attributes and the capacity of the driver.
fn check(expression: &str, device: &DeviceType, says: Says) {
    let full = expression
        .replace("$A", &format!("device.attributes[\"{DRIVER}\"]"))
        .replace("$C", &format!("device.capacity[\"{DRIVER}\"]"));
    let compiled = Expression::compile(&full).unwrap_or_else(|why| panic!("{full}: {why}"));
    match (says, compiled.evaluate(device)) {
        (Yes, SelectorVerdict::Matches) | (No, SelectorVerdict::DoesNotMatch) => {}
        (Fails(why), SelectorVerdict::Fails(found)) => {
            assert!(found.starts_with("CEL runtime error: "), "{full}: {found}");
            assert!(found.contains(why), "{full}: {found}");
        }
        (_, found) => panic!("{full}: {found:?}"),
    }
}

#[test]
fn constants_and_names() {
    let empty = device(&[], &[]);
    for (expression, says) in [
        ("true", Yes),
        ("false", No),
        ("device.driver == \"driver.example.net\"", Yes),
        ("device.driver == \"\"", No),
        ("\"absent\" in device.attributes", No),
        ("device.attributes[\"absent\"].x.isGreaterThan(quantity(\"0\"))", Fails("no such key: x")),
        ("device.attributes[\"absent\"][\"x\"].compareTo(semver(\"0.0.0\")) == 0", Fails("key: x")),
        ("!(\"size\" in $C) || $C.size.isGreaterThan(quantity(\"1Ki\"))", Yes),
        ("device.allowMultipleAllocations == false", Yes),
    ] {
        check(expression, &empty, says);
    }
    assert_eq!(
        Expression::compile("device.driver == \"\"").unwrap().evaluate(&DeviceType::default()),
        SelectorVerdict::Matches
    );
    let shared = DeviceType { allow_multiple_allocations: true, ..empty };
    check("device.allowMultipleAllocations == true", &shared, Yes);
}

#[test]
fn attributes_of_each_type() {
    let attributes = [
        ("on", yes()),
        ("count", int(1)),
        ("kind", text("fish")),
        ("release", version("1.0.0")),
        ("other.example.net/flag", yes()),
        ("other.example.net/note", text("first_middle_last")),
    ];
    let device = device(&attributes, &[("size", "1Mi")]);
    for (expression, says) in [
        ("$A.on", Yes),
        ("$A[\"on\"]", Yes),
        ("cel.bind(own, $A, own.on)", Yes),
        ("device.attributes[\"other.example.net\"].flag", Yes),
        ("\"other.example.net\" in device.attributes", Yes),
        ("$A.count > 0", Yes),
        ("$A.kind == \"fish\"", Yes),
        ("$A.kind.includes(\"fish\")", Yes),
        ("$A.count.includes(2)", No),
        ("$A.release.includes(semver(\"1.0.0\"))", Yes),
        ("$A.release.isGreaterThan(semver(\"0.0.1\"))", Yes),
        ("$A.release.isGreaterThan(semver(\"v0.0.1\", true)) && isSemver(\"v1.0.0\", true)", Yes),
        ("$C.size.isGreaterThan(quantity(\"1Ki\"))", Yes),
        ("\"size\" in $C && $C.size.isGreaterThan(quantity(\"1Ki\"))", Yes),
        ("device.attributes.exists_one(it, it == \"driver.example.net\")", Yes),
        ("$A.exists_one(it, it == \"kind\")", Yes),
        ("device.capacity.exists_one(it, it == \"driver.example.net\")", Yes),
        ("$C.exists_one(it, it == \"size\")", Yes),
        ("device.attributes[\"other.example.net\"].note.split(\"middle\").size() >= 2", Yes),
        ("device.attributes[\"other.example.net\"].note.matches(\"[^x]?mid\")", Yes),
        ("$A.on && $A.on && $A[\"on\"]", Yes),
        (
            "$A.on && $A.count > 0 && $A.kind == \"fish\" && $C[\"size\"] == quantity(\"1024Ki\")",
            Yes,
        ),
        ("$A.on && $A.count > 1", No),
    ] {
        check(expression, &device, says);
    }
    for name in ["on", "count", "kind", "release"] {
        check(
            &format!("dyn($A.{name}).exists(it, true)"),
            &device,
            Fails("expected iterable type"),
        );
    }
}

#[test]
fn what_is_refused() {
    for (expression, why) in [
        ("?!", "Syntax error"),
        ("1", "must evaluate to bool or the unknown type, not int"),
        ("device.driver.nope()", "undeclared reference to 'nope'"),
    ] {
        let found = Expression::compile(expression).expect_err(expression);
        assert!(found.contains(why), "{expression}: {found}");
    }
}

/// kube-scheduler ends its evaluation, ours is not even begun.
#[test]
fn seven_loops_in_each_other_are_too_expensive() {
    let list = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
    let mut loops = "int('1'.find('[0-9]*')) < 100".to_owned();
    for variable in ["a", "b", "c", "d", "e", "f", "g"] {
        loops = format!("{list}.all({variable}, {loops})");
    }
    let why = Expression::compile(&loops).expect_err("it takes ten million turns");
    assert!(why.contains("too complex, exceeds cost limit"), "{why}");
}

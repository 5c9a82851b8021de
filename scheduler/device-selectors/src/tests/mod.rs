//! What expressions say of one device.

mod upstream_cases;

use model::{Attribute, DeviceCapacity, DeviceType, SelectorVerdict};

use crate::Expression;

fn device() -> DeviceType {
    let attributes = [
        ("cores", Attribute::Int(8)),
        ("model", Attribute::Text("A100 µ".into())),
        ("healthy", Attribute::Bool(true)),
        ("firmware", Attribute::Version("1.10.0-rc.1".into())),
        ("other.example.com/cores", Attribute::Int(2)),
    ];
    let capacity = |text: &str| DeviceCapacity { text: text.into(), ..DeviceCapacity::default() };
    DeviceType {
        driver: "dra.example.com".into(),
        attributes: attributes.into_iter().map(|(name, it)| (name.into(), it)).collect(),
        capacity: [("memory".into(), capacity("40Gi"))].into(),
        allow_multiple_allocations: false,
    }
}

/// `$D` stands for the domain of the driver.
fn verdict(text: &str) -> SelectorVerdict {
    let text = text.replace("$D", "['dra.example.com']");
    let expression = Expression::compile(&text).unwrap_or_else(|why| panic!("{text}: {why}"));
    expression.evaluate(&device())
}

fn refusal(text: &str) -> String {
    Expression::compile(&text.replace("$D", "['dra.example.com']")).expect_err(text)
}

fn failure(text: &str) -> String {
    match verdict(text) {
        SelectorVerdict::Fails(why) => why.to_string(),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn attributes_and_capacity_are_found() {
    for text in [
        "device.driver == 'dra.example.com'",
        "!device.allowMultipleAllocations",
        "device.attributes$D.cores == 8",
        "device.attributes$D['cores'] >= 8 && device.attributes$D.cores < 9.5",
        "device.attributes['other.example.com'].cores == 2u",
        "device.attributes$D.healthy",
        "device.attributes$D.model.startsWith('A100') && device.attributes$D.model.size() == 6",
        "device.attributes$D.model in ['H100', 'A100 µ']",
        "'cores' in device.attributes$D",
        "device.capacity$D.memory.compareTo(quantity('40Gi')) == 0",
        "device.capacity$D.memory.isGreaterThan(quantity('39.9Gi'))",
        "device.capacity$D.memory == quantity('40960Mi')",
        "device.attributes$D.firmware.compareTo(semver('1.10.0')) < 0",
        "device.attributes$D.firmware.isGreaterThan(semver('v1.9', true))",
        "cel.bind(own, device.attributes$D, own.cores > 4 && own.healthy)",
        "device.attributes$D.?nope.orValue(3) == 3",
        "device.attributes.exists(domain, device.attributes[domain].cores == 2)",
    ] {
        assert_eq!(verdict(text), SelectorVerdict::Matches, "{text}");
        let not = format!("!({text})");
        assert_eq!(verdict(&not), SelectorVerdict::DoesNotMatch, "{not}");
    }
}

#[test]
fn an_unknown_domain_is_an_empty_map_that_is_not_in_it() {
    for (text, matches) in [
        ("'nope' in device.attributes", false),
        ("has(device.attributes.nope)", true),
        ("device.attributes[?'nope'].hasValue()", true),
        ("has(device.attributes['nope'].x)", false),
        ("device.attributes.all(domain, domain != 'nope')", true),
        ("size(device.attributes) == 2 && size(device.capacity['nope']) == 0", true),
    ] {
        let expected =
            if matches { SelectorVerdict::Matches } else { SelectorVerdict::DoesNotMatch };
        assert_eq!(verdict(text), expected, "{text}");
    }
    assert_eq!(failure("device.attributes['nope'].x"), "CEL runtime error: no such key: x");
}

#[test]
fn versions_and_quantities_refuse_to_be_compared_with_others_on_the_left_only() {
    assert!(failure("device.attributes$D.firmware == '1.10.0-rc.1'").contains("overload"));
    let not_equal = "'1.10.0-rc.1' == device.attributes$D.firmware";
    assert_eq!(verdict(not_equal), SelectorVerdict::DoesNotMatch);
    let differs = "device.attributes$D.firmware != '1.10.0-rc.1'";
    assert_eq!(verdict(differs), SelectorVerdict::Matches);
    assert!(failure("device.capacity$D.memory == 1").contains("overload"));
}

#[test]
fn the_side_that_decides_hides_the_failure_of_the_other() {
    for text in [
        "device.attributes$D.nope || true",
        "true || device.attributes$D.nope",
        "!(device.attributes$D.nope && false)",
        "[0, 1].exists(it, 1 / it == 1)",
        "![0, 2].all(it, 1 / it == 1)",
    ] {
        assert_eq!(verdict(text), SelectorVerdict::Matches, "{text}");
    }
    assert!(failure("device.attributes$D.nope && true").contains("no such key: nope"));
}

#[test]
fn the_result_has_to_be_a_bool() {
    assert!(failure("device.attributes$D.cores").contains("int could not be converted to bool"));
}

#[test]
fn what_is_left_out_is_refused_by_name() {
    for (text, name) in [
        ("url('https://a').getHost() == 'a'", "getHost()"),
        ("isIP('1.2.3.4')", "isIP()"),
        ("cidr('10.0.0.0/8').prefixLength() == 8", "prefixLength()"),
        ("duration('1s') == duration('1s')", "duration()"),
        ("'%d'.format([1]) == '1'", "format()"),
    ] {
        assert_eq!(refusal(text), format!("{name} is not supported here"));
    }
}

#[test]
fn what_is_wrong_is_refused() {
    assert!(refusal("device.").contains("Syntax error"));
    assert!(refusal("nope == 1").contains("undeclared reference to 'nope'"));
    assert!(refusal("device.driver.matches('(')").contains("invalid matches argument"));
    assert!(refusal(&"1+".repeat(10_000)).contains("too long"));
    assert!(refusal(&"(".repeat(5_000)).contains("too deeply nested"));
    assert!(refusal(&"!".repeat(5_000)).contains("too deeply nested"));
    assert!(refusal(&"true?true:".repeat(900)).contains("too deeply nested"));
}

#[test]
fn what_costs_too_much_is_refused_or_ends() {
    let loops = "lists.range(99).all(a, lists.range(99).all(b, lists.range(999).all(c, c < 0)))";
    assert!(refusal(loops).contains("too complex"));
    assert!(refusal("lists.range(device.attributes$D.cores).size() == 0").contains("too complex"));
    // Each is twice as large as the one before, without a loop.
    let mut doubled = String::from("a == a");
    for _ in 0..25 {
        doubled = format!("cel.bind(a, [a, a], {doubled})");
    }
    let doubled = format!("cel.bind(a, [1], {doubled}) || true");
    assert!(failure(&doubled).contains("cost limit exceeded"), "it is not absorbed");
}

/// Rules of cel-go that one would not expect. Verdicts follow them.
#[test]
fn peculiar_rules_are_kept() {
    for (text, matches) in [
        // Elements that cannot be compared count as equal.
        ("[device.attributes$D.firmware] == [dyn('x')]", true),
        // A sum is another Go type, which no quantity equals.
        ("quantity('3') == quantity('1').add(quantity('2')) || true", true),
        ("quantity('1').add(quantity('2')) == quantity('3')", true),
        // The first one takes the slow form of the second.
        ("quantity('2Gi').isInteger()", true),
        (
            "cel.bind(q, quantity('2Gi'), q.isGreaterThan(quantity('1.5Gi')) && !q.isInteger())",
            true,
        ),
        // Nothing is computed that nobody reads.
        ("cel.bind(x, 1 / 0, true)", true),
        ("1 / 0 in []", false),
        // Doubles and integers are compared as doubles, but looked up exactly.
        ("9007199254740993 == dyn(9007199254740992.0)", true),
        ("dyn(9007199254740993) in [9007199254740992.0]", false),
        ("[9007199254740992.0, device.attributes$D.nope].size() == 2 || true", true),
        // A bound map that is empty is an ordinary one.
        ("has(device.attributes.nope) && !cel.bind(a, device.attributes.nope, has(a.b))", true),
        ("cel.bind(device, 1, device == 1)", true),
        ("string(1e15) == '1e+15' && string(100000.0) == '100000'", true),
        ("true ? optional.of(1).hasValue() : false", true),
    ] {
        let expected =
            if matches { SelectorVerdict::Matches } else { SelectorVerdict::DoesNotMatch };
        assert_eq!(verdict(text), expected, "{text}");
    }
    assert!(failure("quantity('3') == quantity('1').add(quantity('2'))").contains("overload"));
    // A test in a conditional is left as the optional that it found.
    let test = "(true ? has(device.attributes[?'nope'].x) : true) && true";
    assert!(failure(test).contains("overload"));
    // What has no hash ends the evaluation, whatever stands beside it.
    assert!(failure("device.attributes$D.firmware in ['1.0.0'] || true").contains("looked up"));
    // An optional Quantity does not survive a conditional.
    let lost = "(true ? optional.of(quantity('1')) : optional.none())";
    assert_eq!(verdict(&format!("{lost}.hasValue()")), SelectorVerdict::Matches);
    assert!(failure(&format!("{lost}.value() == quantity('1')")).contains("conversion"));
    assert_eq!(verdict(&format!("[{lost}].unwrapOpt().size() == 1")), SelectorVerdict::Matches);
    assert!(failure(&format!("[?{lost}][0].isInteger()")).contains("conversion"));
}

#[test]
fn a_version_that_is_none_fails_whatever_is_asked() {
    let mut device = device();
    device.attributes.insert("bad".into(), Attribute::Version("1.0".into()));
    let found = Expression::compile("true").unwrap().evaluate(&device);
    let SelectorVerdict::Fails(why) = found else { panic!("{found:?}") };
    assert!(why.starts_with("CEL runtime error: attribute bad: parse semantic version"), "{why}");
}

//! What expressions say of one device.

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

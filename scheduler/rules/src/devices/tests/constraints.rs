use super::*;

fn same(requests: &[&str], attribute: &str) -> Constraint {
    let requests = requests.iter().map(|name| (*name).into()).collect();
    Constraint::Match { requests, attribute: attribute.into() }
}

fn distinct(requests: &[&str], attribute: &str) -> Constraint {
    let requests = requests.iter().map(|name| (*name).into()).collect();
    Constraint::Distinct { requests, attribute: attribute.into() }
}

fn gets(given: &Given, requests: Vec<DeviceRequest>, constraint: Constraint) -> Vec<String> {
    let claim = constrained(claim("c", requests), vec![constraint]);
    given.allocate(&[claim]).map(|them| shown(&them[0])).unwrap_or_default()
}

fn rooted(name: &str, root: &str) -> Device {
    device(name).text("root", root)
}

#[test]
fn devices_have_the_same_value_if_that_is_asked() {
    let given = Given::devices([rooted("x", "1"), rooted("y", "2"), rooted("z", "2")]);
    assert_eq!(gets(&given, vec![request("r", 2)], same(&[], "d/root")), ["r=y", "r=z"]);
    let two = || vec![request("a", 1), request("b", 1)];
    assert_eq!(gets(&given, two(), same(&["a", "b"], "d/root")), ["a=y", "b=z"]);
    assert_eq!(gets(&given, two(), same(&["a"], "d/root")), ["a=x", "b=y"], "b is not meant");
    assert!(gets(&given, vec![request("r", 3)], same(&[], "d/root")).is_empty());
}

#[test]
fn a_device_without_the_attribute_is_out_and_so_is_one_with_another_type() {
    let given = Given::devices([
        device("x"),
        device("int").attribute("root", Attribute::Int(1)),
        rooted("text", "1"),
        device("version").attribute("root", Attribute::Version("1".into())),
        rooted("again", "1"),
    ]);
    assert_eq!(gets(&given, vec![request("r", 2)], same(&[], "d/root")), ["r=text", "r=again"]);
    let all_four = ["r=int", "r=text", "r=version"];
    assert_eq!(gets(&given, vec![request("r", 3)], distinct(&[], "d/root")), all_four);
    assert!(gets(&given, vec![request("r", 4)], distinct(&[], "d/root")).is_empty());
}

#[test]
fn a_short_name_stands_for_the_domain_of_the_driver_alone() {
    let given = Given::devices([rooted("x", "1"), device("y").text("d/root", "1")]);
    assert_eq!(gets(&given, vec![request("r", 2)], same(&[], "d/root")), ["r=x", "r=y"]);
    assert!(gets(&given, vec![request("r", 1)], same(&[], "e/root")).is_empty());
    let foreign = Given::devices([device("x").text("e/root", "1")]);
    assert_eq!(gets(&foreign, vec![request("r", 1)], same(&[], "e/root")), ["r=x"]);
    // As it is written comes first.
    let both = Given::devices([rooted("x", "1").text("d/root", "2"), rooted("y", "2")]);
    assert_eq!(gets(&both, vec![request("r", 2)], same(&[], "d/root")), ["r=x", "r=y"]);
}

#[test]
fn a_constraint_on_a_request_means_its_alternatives_and_one_on_an_alternative_only_that() {
    let given = Given::devices([rooted("x", "1"), rooted("y", "2"), rooted("z", "2")]);
    let requests = || vec![first_of("a", [sub_request("s", 1)]), request("b", 1)];
    assert_eq!(gets(&given, requests(), same(&["a", "b"], "d/root")), ["a/s=y", "b=z"]);
    assert_eq!(gets(&given, requests(), same(&["a/s", "b"], "d/root")), ["a/s=y", "b=z"]);
    assert_eq!(gets(&given, requests(), same(&["a/t", "b"], "d/root")), ["a/s=x", "b=y"]);
}

#[test]
fn distinct_holds_between_every_two_devices_of_one_request() {
    let given =
        Given::devices([rooted("w", "1"), rooted("x", "2"), rooted("y", "1"), rooted("z", "3")]);
    // kube-scheduler compares with the last device of a request, and takes w, x, y.
    let wanted = ["r=w", "r=x", "r=z"];
    assert_eq!(gets(&given, vec![request("r", 3)], distinct(&[], "d/root")), wanted);
    assert!(gets(&given, vec![request("r", 4)], distinct(&[], "d/root")).is_empty());
}

#[test]
fn distinct_still_holds_after_a_device_was_taken_back() {
    let given =
        Given::devices([rooted("x", "1"), rooted("y", "2"), rooted("z", "1").text("kind", "fast")]);
    let requests = vec![request("a", 2), selected("b", 1, "kind=fast")];
    assert!(gets(&given, requests, distinct(&[], "d/root")).is_empty());
}

#[test]
fn each_claim_has_constraints_of_its_own() {
    let given = Given::devices([rooted("x", "1"), rooted("y", "1")]);
    let one = |name| constrained(claim(name, [request("r", 1)]), vec![distinct(&[], "d/root")]);
    assert!(given.allocate(&[one("a"), one("b")]).is_ok());
}

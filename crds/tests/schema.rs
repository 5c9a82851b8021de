//! What every schema promises, checked by walking all of them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed test is what they report")]

use std::collections::BTreeSet;

use crds::{Corridor, GROUP, MemoryBundle, Phase, VERSION, annotations};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::json;

#[test]
fn every_kind_is_listed_once() {
    let listed: Vec<_> = crds::all().into_iter().map(|crd| crd.spec.names).collect();
    let kinds: Vec<_> = listed.iter().map(|names| names.kind.as_str()).collect();
    assert_eq!(kinds, ["Corridor", "MemoryBundle", "AttestationPolicy"]);

    let mut taken = BTreeSet::new();
    for names in &listed {
        let short = names.short_names.iter().flatten();
        let all = [&names.plural].into_iter().chain(&names.singular).chain(short);
        for name in all {
            assert!(taken.insert(name.clone()), "{name} names two kinds");
        }
        assert_eq!(names.categories.as_deref(), Some(&["corridoros".to_owned()][..]));
    }
}

#[test]
fn every_kind_is_namespaced_and_has_a_status_subresource() {
    for crd in crds::all() {
        assert_eq!(crd.spec.group, GROUP);
        assert_eq!(crd.spec.scope, "Namespaced");
        let [version] = crd.spec.versions.as_slice() else { panic!("one version") };
        assert_eq!(version.name, VERSION);
        assert!(version.subresources.as_ref().is_some_and(|sub| sub.status.is_some()));
    }
}

#[test]
fn everything_has_a_bound() {
    let mut checked = BTreeSet::new();
    walk_all(&mut |path, schema| {
        let type_ = schema.type_.as_deref().unwrap_or_else(|| panic!("{path} has no type"));
        let bounded = match type_ {
            "integer" => schema.minimum.is_some() && schema.maximum.is_some(),
            "string" => schema.max_length.is_some() || schema.enum_.is_some(),
            "array" => schema.max_items.is_some(),
            "object" => schema.additional_properties.is_none() || schema.max_properties.is_some(),
            "boolean" | "number" => true,
            other => panic!("{path}: unexpected type {other}"),
        };
        assert!(bounded, "{path}: this {type_} has no bound");
        checked.insert(type_.to_owned());
    });
    // The walk has reached each type of schema at least once.
    assert_eq!(
        checked.iter().map(String::as_str).collect::<Vec<_>>(),
        ["array", "boolean", "integer", "number", "object", "string"]
    );
}

#[test]
fn every_property_is_described() {
    walk_all(&mut |path, schema| {
        for (name, property) in schema.properties.iter().flatten() {
            let text = property.description.as_deref().unwrap_or_default();
            assert!(text.ends_with('.'), "{path}.{name}: description {text:?}");
        }
    });
}

#[test]
fn nothing_the_api_server_would_misread() {
    walk_all(&mut |path, schema| {
        assert!(schema.nullable.is_none(), "{path} may be null");
        assert!(schema.ref_path.is_none(), "{path} refers elsewhere");
        assert!(!schema.enum_.iter().flatten().any(|value| value.0.is_null()), "{path}: null");
        let format = schema.format.as_deref();
        assert!(
            matches!(format, None | Some("int32" | "int64" | "double" | "date-time")),
            "{path}: format {format:?}"
        );
        if path.contains(".status") {
            assert!(schema.default.is_none(), "{path} has a default");
        }
        assert!(
            schema.x_kubernetes_preserve_unknown_fields.is_none(),
            "{path} keeps unknown fields"
        );
    });
}

#[test]
fn required_fields_are_those_of_the_contract() {
    let required = |kind: &str| property(kind, "spec").required.unwrap_or_default();
    assert_eq!(required("Corridor"), ["lambdaNm", "lanes", "minGbps"]);
    assert_eq!(required("MemoryBundle"), ["bandwidthFloorGBs", "bytes", "latencyClass"]);
    assert_eq!(required("AttestationPolicy"), [""; 0]);
    // Two managers each apply a part of a status.
    for kind in ["Corridor", "MemoryBundle", "AttestationPolicy"] {
        assert_eq!(property(kind, "status").required, None);
    }
}

#[test]
fn defaults_are_those_of_the_contract() {
    let default = |kind: &str, path: &str| property(kind, path).default.map(|value| value.0);
    assert_eq!(default("Corridor", "spec.type"), Some(json!("SiCorridor")));
    assert_eq!(default("Corridor", "spec.mode"), Some(json!("waveguide")));
    assert_eq!(default("Corridor", "spec.attestationRequired"), Some(json!(true)));
    assert_eq!(default("MemoryBundle", "spec.persistence"), Some(json!("none")));
    assert_eq!(default("MemoryBundle", "spec.shareable"), Some(json!(false)));
    assert_eq!(default("MemoryBundle", "spec.securityDomain"), Some(json!("")));
    assert_eq!(default("MemoryBundle", "spec.schedule.timeZone"), Some(json!("UTC")));
    assert_eq!(default("AttestationPolicy", "spec.pqcRequired"), Some(json!(true)));
}

#[test]
fn limits_are_those_of_the_contract() {
    let limits = |kind: &str, path: &str| {
        let schema = property(kind, path);
        (schema.minimum.unwrap(), schema.maximum.unwrap())
    };
    assert_eq!(limits("Corridor", "spec.lanes"), (1.0, 1024.0));
    assert_eq!(limits("Corridor", "spec.lambdaNm.[]"), (1260.0, 1675.0));
    assert_eq!(limits("Corridor", "spec.minGbps"), (1.0, 1e6));
    assert_eq!(limits("Corridor", "spec.latencyBudgetNs"), (1.0, 1e9));
    assert_eq!(limits("Corridor", "spec.reachMm"), (1.0, 1e8));
    assert_eq!(limits("Corridor", "spec.recalibration.targetBer"), (0.0, 0.5));
    assert_eq!(limits("MemoryBundle", "spec.bytes"), (1.0, 2_f64.powi(50)));
    assert_eq!(limits("MemoryBundle", "spec.bandwidthFloorGBs"), (1.0, 1e5));
    assert_eq!(limits("MemoryBundle", "spec.schedule.windows.[].bandwidthFloorGBs"), (1.0, 1e5));
    let ber = property("Corridor", "spec.recalibration.targetBer");
    assert_eq!((ber.exclusive_minimum, ber.exclusive_maximum), (Some(true), Some(true)));
}

#[test]
fn immutable_fields_have_a_rule_that_names_them() {
    let rules = property("MemoryBundle", "spec").x_kubernetes_validations.unwrap();
    for field in ["persistence", "shareable", "securityDomain", "bytes"] {
        let path = format!(".{field}");
        let rule = rules
            .iter()
            .find(|rule| rule.field_path.as_ref() == Some(&path))
            .unwrap_or_else(|| panic!("no rule guards {field}"));
        assert!(rule.rule.contains("oldSelf"), "{field}: {}", rule.rule);
        assert!(rule.message.as_ref().is_some_and(|text| text.contains(field)), "{field}");
        // Without a default, removing and adding the field again would be two allowed changes.
        if field != "bytes" {
            let schema = property("MemoryBundle", &format!("spec.{field}"));
            assert!(schema.default.is_some(), "{field} can be absent");
        }
    }
    // Everything else can be changed.
    let transitions = |kind| {
        let rules = property(kind, "spec").x_kubernetes_validations.unwrap_or_default();
        rules.iter().filter(|rule| rule.rule.contains("oldSelf")).count()
    };
    assert_eq!(["MemoryBundle", "Corridor", "AttestationPolicy"].map(transitions), [4, 0, 0]);
}

#[test]
fn lists_have_the_merge_rules_that_their_writers_need() {
    let conditions = property("Corridor", "status.conditions");
    assert_eq!(conditions.x_kubernetes_list_type.as_deref(), Some("map"));
    assert_eq!(conditions.x_kubernetes_list_map_keys, Some(vec!["type".to_owned()]));
    let wavelengths = property("Corridor", "spec.lambdaNm");
    assert_eq!(wavelengths.x_kubernetes_list_type.as_deref(), Some("set"));
}

#[test]
fn a_status_from_a_newer_version_still_decodes() {
    let corridor: Corridor = serde_json::from_value(json!({
        "apiVersion": "corridoros.io/v1alpha1",
        "kind": "Corridor",
        "metadata": {"name": "c"},
        "spec": {"lanes": 1, "lambdaNm": [1550], "minGbps": 10},
        "status": {"phase": "Hibernating", "achievableGbps": 40, "mood": "calm"},
    }))
    .unwrap();
    assert_eq!(corridor.phase(), Phase::Unknown);
    assert_eq!(corridor.status.unwrap().achievable_gbps, Some(40.0));
}

#[test]
fn an_object_without_a_status_is_pending() {
    let spec = crds::MemoryBundleSpec::new(1, crds::LatencyClass::T0, 1);
    assert_eq!(MemoryBundle::new("b", spec).phase(), Phase::Pending);
}

#[test]
fn annotation_keys_are_in_our_group() {
    for key in annotations::RESULTS {
        assert_eq!(key.split_once('/').map(|(group, _)| group), Some(GROUP));
    }
}

fn walk_all(visit: &mut impl FnMut(&str, &JSONSchemaProps)) {
    for crd in crds::all() {
        for part in ["spec", "status"] {
            let kind = &crd.spec.names.kind;
            walk(&format!("{kind}.{part}"), &part_of(&crd, part), visit);
        }
    }
}

fn walk(path: &str, schema: &JSONSchemaProps, visit: &mut impl FnMut(&str, &JSONSchemaProps)) {
    visit(path, schema);
    for (name, property) in schema.properties.iter().flatten() {
        walk(&format!("{path}.{name}"), property, visit);
    }
    match &schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => walk(&format!("{path}.[]"), items, visit),
        Some(JSONSchemaPropsOrArray::Schemas(_)) => panic!("{path}: a tuple is not structural"),
        None => {}
    }
    match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(value)) => walk(&format!("{path}.*"), value, visit),
        Some(JSONSchemaPropsOrBool::Bool(_)) => panic!("{path}: values of any type"),
        None => {}
    }
}

/// The schema at a path of [`walk`], e.g. `spec.lambdaNm.[]`.
fn property(kind: &str, path: &str) -> JSONSchemaProps {
    let mut found = None;
    let wanted = format!("{kind}.{path}");
    walk_all(&mut |path, schema| {
        if path == wanted {
            found = Some(schema.clone());
        }
    });
    found.unwrap_or_else(|| panic!("no schema at {wanted}"))
}

fn part_of(crd: &CustomResourceDefinition, part: &str) -> JSONSchemaProps {
    let schema = crd.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
    schema.properties.as_ref().unwrap()[part].clone()
}

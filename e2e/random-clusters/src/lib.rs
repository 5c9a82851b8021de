//! Random clusters and Pods as JSON of the Kubernetes API, small and crowded: a few labels, taints and
//! priorities that meet all the time.
//!
//! Two comparisons with kube-scheduler are made of them. The crate `e2e` writes them to a real API server, so
//! they have only what that stores. The example `differential` of the crate `rules` gives them to
//! kube-scheduler's code directly, so they may also have what an API server refuses
//! ([`Rules::unchecked`]): kube-scheduler has an answer for that too.
//!
//! For a seed and the same [`Rules`], the objects are the same on every machine.

mod classes;
mod cluster;
mod containers;
pub mod devices;
pub mod faults;
mod nodes;
mod others;
mod pod;
pub mod random;
mod rules;
mod terms;
mod volumes;

use serde_json::Value;

pub use classes::{priority_classes, resolve_classes, runtime_classes};
pub use cluster::{GeneratedCluster, PlacedPod};
pub use others::Other;
pub use pod::{incoming, placed};
pub use random::Random;
pub use rules::{Rule, Rules};
pub use volumes::{GeneratedVolumes, add_checked_volumes, add_volumes, give_volumes};

/// Where Pods live.
pub const NAMESPACES: [&str; 3] = ["team-a", "team-b", "team-c"];
/// Kind and name of what a Pod may belong to.
const OWNERS: [(&str, &str); 2] = [("ReplicaSet", "rs"), ("StatefulSet", "sts")];
/// The names of Nodes that Pods ask for; in most clusters, some of them do not exist.
const NODE_NAMES_MAX: usize = 8;

fn node_name(number: usize) -> String {
    format!("n{number}")
}

/// The name of a Node that a Pod asks for.
pub fn asked_node(random: &mut Random) -> String {
    node_name(random.below(NODE_NAMES_MAX))
}

/// Namespace and name of an object.
pub fn name_of(object: &Value) -> (&str, &str) {
    let metadata = &object["metadata"];
    let word = |key: &str| metadata[key].as_str().unwrap_or_default();
    (word("namespace"), word("name"))
}

/// `namespace/name`.
pub fn key_of(object: &Value) -> String {
    let (namespace, name) = name_of(object);
    format!("{namespace}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(rules: &Rules) -> String {
        let of_seed = |seed| {
            let random = &mut Random::new(seed);
            let cluster = GeneratedCluster::new(random, rules).to_json();
            format!("{cluster}{}", incoming(random, rules))
        };
        (0..500).map(of_seed).collect()
    }

    #[test]
    fn only_unchecked_objects_have_what_an_api_server_refuses() {
        let (checked, unchecked) = (objects(&Rules::all()), objects(&Rules::all().unchecked()));
        for text in [
            r#""strange":"1""#,
            r#""memory":"500m""#,
            r#""hostUsers":false"#,
            r#""operator":"Gt","value":"1""#,
            r#""operator":"In","values":[]"#,
            r#""nodeSelectorTerms":[]"#,
            "UserNamespacesHostNetworkSupport",
            "DisruptionTarget",
        ] {
            assert!(unchecked.contains(text), "{text} is never tried");
            assert!(!checked.contains(text), "{text} would be refused");
        }
    }
}

//! Which fault of kube-scheduler that the plain rules do not repeat may show in a case.

use random_clusters::faults::{self, Fault, Scene};
use serde_json::Value;

use crate::compare::{About, Difference};
use crate::translate::items;

/// The first that may show in a case that differs so.
pub fn fault(case: &Value, differences: &[Difference]) -> Option<&'static Fault> {
    let told: Vec<_> = differences.iter().map(told).collect();
    faults::fault(&scene(case), &told)
}

fn scene(case: &Value) -> Scene<'_> {
    Scene {
        pod: &case["pod"],
        others: items(&case["pods"]).iter().chain(items(&case["nominated"])).collect(),
        claims: items(&case["claims"]).iter().collect(),
        volumes: items(&case["volumes"]),
        classes: items(&case["classes"]),
        csi_nodes: items(&case["csiNodes"]),
        csi_drivers: items(&case["csiDrivers"]),
        attachments: items(&case["attachments"]),
    }
}

fn told(Difference { about, ours, real }: &Difference) -> faults::Difference<'_> {
    let about = match about {
        About::ScoredNodes | About::ChosenNode => faults::About::Nodes,
        About::Victims | About::NominatedNode => faults::About::Victims,
        About::Volumes => faults::About::Volumes,
        _ => faults::About::Other,
    };
    faults::Difference { about, ours, real }
}

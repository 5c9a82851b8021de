//! The differences that we know of and keep. Everything else fails the comparison.

use random_clusters::GeneratedCluster;
use random_clusters::faults::{self, Fault, Scene};
use serde_json::Value;

use super::compare::{About, Difference};

/// A difference that is kept on purpose.
#[derive(Debug)]
pub struct Allowed {
    pub quirk: &'static str,
    /// Why ours does not follow.
    pub why: &'static str,
    /// In the tree of Kubernetes v1.36.4.
    pub source: &'static str,
    covers: fn(&Difference) -> bool,
}

pub const ALLOWED: [Allowed; 2] = [
    Allowed {
        quirk: "the words of an error that ends the attempt",
        why: "They name an internal step and are those of Go's libraries. Ours names the plugin, which must be \
              the same, and what is wrong in its own words. Preferences for Nodes get there, because the API \
              server accepts values in them that nobody can read, and disks that no CSI driver has a name for.",
        source: "pkg/scheduler/framework/runtime/framework.go, RunPreScorePlugins and RunFilterPlugins; \
                 pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go, PreScore",
        covers: |difference| difference.about == About::ErrorText,
    },
    Allowed {
        quirk: "an error that ends the dry run of preemption",
        why: "kube-scheduler says it in place of why preemption does not help. Ours says what the Nodes lack, \
              which must be the same, and nothing of the dry run.",
        source: "pkg/scheduler/framework/preemption/preemption.go, Preempt",
        covers: |Difference { about, ours, real }| match about {
            About::Message => real
                .split_once(" preemption: running \"")
                .is_some_and(|(before, _)| ours.starts_with(before)),
            // No Node is a candidate: there would be no error.
            About::Preemption => real.starts_with("running \"") && ours.contains("nodes: []"),
            _ => false,
        },
    },
];

pub(super) fn all_allowed(differences: &[Difference]) -> bool {
    differences.iter().all(|difference| allowed(difference).is_some())
}

pub(super) fn allowed(difference: &Difference) -> Option<&'static Allowed> {
    ALLOWED.iter().find(|entry| (entry.covers)(difference))
}

/// A fault of kube-scheduler with volumes by which a case may differ so. They are not repeated; each is listed with
/// its reason, its place and what a case must have for it to show in [`random_clusters::faults`].
pub(super) fn fault(scene: &Scene<'_>, differences: &[Difference]) -> Option<&'static Fault> {
    let told: Vec<_> = differences.iter().map(told).collect();
    faults::fault(scene, &told)
}

pub(super) fn scene<'a>(
    cluster: &'a GeneratedCluster,
    pod: &'a Value,
    claims: &'a [Value],
) -> Scene<'a> {
    let made = &cluster.volumes;
    Scene {
        pod,
        others: cluster.placed.iter().map(|placed| &placed.object).collect(),
        claims: made.claims.iter().chain(claims).collect(),
        volumes: &made.volumes,
        classes: &made.classes,
        csi_nodes: &made.csi_nodes,
        csi_drivers: &made.csi_drivers,
        attachments: &made.attachments,
    }
}

fn told(Difference { about, ours, real }: &Difference) -> faults::Difference<'_> {
    let about = match about {
        About::Feasibility | About::BestNodes => faults::About::Nodes,
        About::Victims | About::NominatedNode => faults::About::Victims,
        _ => faults::About::Other,
    };
    faults::Difference { about, ours, real }
}

//! The differences that we know of and keep. Everything else is a fault of the plain rules.

use crate::compare::{About, Difference};

pub struct Allowed {
    pub quirk: &'static str,
    /// Why the plain rules do not follow.
    #[expect(dead_code, reason = "for whoever reads this list")]
    pub why: &'static str,
    /// In the tree of Kubernetes v1.36.4.
    #[expect(dead_code, reason = "for whoever reads this list")]
    pub source: &'static str,
    covers: fn(&Difference) -> bool,
}

pub const ALLOWED: [Allowed; 2] = [
    Allowed {
        quirk: "the words for a term of Pod affinity that cannot be parsed",
        why: "They are those of Go's validation library and list every field that is wrong. The \
              plain rules report the first error, in their own words. The API server refuses such Pods.",
        source: "pkg/scheduler/framework/types.go, PodInfo.Update; \
                 pkg/scheduler/framework/plugins/interpodaffinity/filtering.go, PreFilter",
        covers: |difference| {
            difference.about == About::Message
                && without_parse_error(&difference.ours).is_some()
                && without_parse_error(&difference.ours) == without_parse_error(&difference.real)
        },
    },
    Allowed {
        quirk: "the words of an error that ends the attempt",
        why: "They name the internal step and the field. The plain rules name the plugin, which is \
              compared, and the reason in its own words. The API server accepts such preferences \
              for Nodes; of the rest it refuses the Pods.",
        source: "pkg/scheduler/framework/runtime/framework.go, RunPreFilterPlugins and \
                 RunPreScorePlugins",
        covers: |difference| {
            difference.about == About::ErrorText
                || difference.about == About::Message
                    && without_preemption_error(&difference.ours).is_some()
                    && without_preemption_error(&difference.ours)
                        == without_preemption_error(&difference.real)
        },
    },
];

pub fn allowed(difference: &Difference) -> Option<&'static Allowed> {
    ALLOWED.iter().find(|entry| (entry.covers)(difference))
}

/// A message of a rejection whose preemption ended with an error, without that.
fn without_preemption_error(message: &str) -> Option<&str> {
    message.split_once(". preemption: ").map(|(before, _)| before)
}

/// A message of a rejection with what is wrong with the Pod's terms left out.
fn without_parse_error(message: &str) -> Option<(&str, &str)> {
    let (before, rest) = message.split_once("parsing pod: ")?;
    let (_, after) = rest.rsplit_once(". ")?;
    Some((before, after))
}

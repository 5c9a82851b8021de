//! Prefers Nodes that already have large images of the Pod, unless all other Nodes lack them.

use model::ClusterNode;

use crate::cluster::Cluster;
use crate::score::{PluginResult, ScoreContext, scaled};

const SUM_BYTES_MIN: i64 = 23 << 20;
const SUM_BYTES_MAX_PER_CONTAINER: i64 = 1000 << 20;

pub(super) fn score(context: &ScoreContext<'_>) -> PluginResult {
    let images = context.pod.images.iter();
    let sizes: Vec<(&str, i64)> =
        images.map(|image| (&**image, spread_size(context.cluster, image))).collect();
    PluginResult::Scored(context.each(|node| node_score(context, &sizes, node)))
}

fn node_score(context: &ScoreContext<'_>, sizes: &[(&str, i64)], node: &ClusterNode) -> i64 {
    let present = sizes.iter().filter(|(image, _)| has_image(node, image));
    let sum = present.fold(0_i64, |sum, (_, size)| sum.saturating_add(*size));
    let most = SUM_BYTES_MAX_PER_CONTAINER.saturating_mul(i64::from(context.pod.containers));
    // Image volumes count with their size, but not as containers; hence the order of the limits.
    let sum = if sum < SUM_BYTES_MIN { SUM_BYTES_MIN } else { sum.min(most) };
    scaled(sum.saturating_sub(SUM_BYTES_MIN), most.saturating_sub(SUM_BYTES_MIN))
}

fn has_image(node: &ClusterNode, name: &str) -> bool {
    node.images.iter().any(|image| image.names.iter().any(|it| it.as_ref() == name))
}

/// The size of the image, times the share of all Nodes that have it.
///
/// kube-scheduler takes the size from the Node on which it first saw the name. Here that is the
/// first Node by name, which is the order in which a freshly started scheduler sees them.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "kube-scheduler multiplies as doubles too; the cast saturates"
)]
fn spread_size(cluster: &Cluster, name: &str) -> i64 {
    let mut holders = cluster.nodes.values().filter(|node| has_image(node, name)).peekable();
    let first = holders.peek().and_then(|node| {
        node.images.iter().find(|image| image.names.iter().any(|it| it.as_ref() == name))
    });
    let size_bytes = first.map_or(0, |image| image.size_bytes);
    let share = holders.count() as f64 / cluster.nodes.len() as f64;
    (size_bytes as f64 * share) as i64
}

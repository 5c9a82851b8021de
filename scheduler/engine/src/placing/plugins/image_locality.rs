use model::ClusterPod;

use super::super::NodeIndex;

const SUM_BYTES_MIN: i64 = 23 << 20;
const SUM_BYTES_MAX_PER_CONTAINER: i64 = 1000 << 20;

/// What the images that are there are worth, one bit for each image of the Pod.
pub(in crate::placing) fn score(pod: &ClusterPod, there: u32, index: &NodeIndex) -> i64 {
    let present = pod.images.iter().enumerate().filter(|(bit, _)| there & (1 << bit) != 0);
    let sum = present.fold(0_i64, |sum, (_, image)| {
        sum.saturating_add(index.images.spread_size(image, &index.rows))
    });
    let most = SUM_BYTES_MAX_PER_CONTAINER.saturating_mul(i64::from(pod.containers));
    let sum = if sum < SUM_BYTES_MIN { SUM_BYTES_MIN } else { sum.min(most) };
    let product = i128::from(sum.saturating_sub(SUM_BYTES_MIN)) * 100;
    let quotient = product.checked_div(i128::from(most.saturating_sub(SUM_BYTES_MIN)));
    quotient.and_then(|it| i64::try_from(it).ok()).unwrap_or(0)
}

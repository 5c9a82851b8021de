//! Percentiles of what a scheduler observed of itself.

use e2e::metrics::sample;

/// The bucket of a histogram without other labels in which this share of all that was observed has ended: its upper end.
pub fn percentile(scraped: &str, metric: &str, share: f64) -> Option<f64> {
    let name = format!("{metric}_bucket");
    let buckets = scraped.lines().filter_map(|line| sample(line, &name));
    let mut buckets: Vec<(f64, f64)> = buckets
        .filter_map(|(labels, count)| {
            let bound = labels.split(',').find_map(|label| label.strip_prefix("le=\""))?;
            let bound = bound.trim_end_matches('"');
            Some((bound.replace("+Inf", "inf").parse().ok()?, count))
        })
        .collect();
    buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
    let all = buckets.last().filter(|(_, count)| *count > 0.0)?.1;
    buckets.iter().find(|(_, count)| *count >= all * share).map(|(bound, _)| *bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_end_of_its_bucket() {
        let scraped = "t_bucket{profile=\"p\",le=\"0.001\"} 90\nt_bucket{le=\"0.01\",cluster=\"c\"} 99\nt_bucket{le=\"+Inf\"} 100\n";
        assert_eq!(percentile(scraped, "t", 0.5), Some(0.001));
        assert_eq!(percentile(scraped, "t", 0.99), Some(0.01));
        assert_eq!(percentile(scraped, "t", 0.999), Some(f64::INFINITY));
        assert_eq!(percentile(scraped, "other", 0.5), None);
    }
}

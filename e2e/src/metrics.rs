//! What a scrape of `/metrics` says.

/// The sum of all samples of a metric that have every one of these labels (`name="value"`).
pub fn sum(scraped: &str, metric: &str, labels: &[&str]) -> f64 {
    let samples = scraped.lines().filter_map(|line| sample(line, metric));
    samples.filter(|(found, _)| labels.iter().all(|it| found.contains(it))).map(|it| it.1).sum()
}

/// The labels and the value, if the line is a sample of this metric.
pub fn sample<'a>(line: &'a str, metric: &str) -> Option<(&'a str, f64)> {
    let rest = line.strip_prefix(metric)?;
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => rest.rsplit_once('}')?,
        None => ("", rest.strip_prefix(' ')?),
    };
    Some((labels, value.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_summed_by_label() {
        let scraped =
            "# HELP a x\na{r=\"1\",s=\"x\"} 2\na{r=\"1\",s=\"y\"} 3\na{r=\"2\"} 9\nab 7\nb 4\n";
        assert!((sum(scraped, "a", &["r=\"1\""]) - 5.0).abs() < f64::EPSILON);
        assert!((sum(scraped, "b", &[]) - 4.0).abs() < f64::EPSILON);
    }
}

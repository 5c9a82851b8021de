//! What a scrape of `/metrics` says.

use std::collections::{BTreeMap, BTreeSet};

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

/// All that is said of one name, apart from values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Family {
    pub help: String,
    /// `counter`, `gauge`, `histogram`.
    pub kind: String,
    /// The names of its labels, without `le`.
    pub labels: BTreeSet<String>,
    /// Upper bounds, of a histogram.
    pub buckets: Vec<f64>,
}

/// Every family of a scrape, by name.
pub fn families(scraped: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut name = String::new();
    for line in scraped.lines() {
        if let Some((of, help)) = line.strip_prefix("# HELP ").and_then(|it| it.split_once(' ')) {
            of.clone_into(&mut name);
            help.clone_into(&mut families.entry(name.clone()).or_default().help);
        } else if let Some((of, kind)) =
            line.strip_prefix("# TYPE ").and_then(|it| it.split_once(' '))
        {
            of.clone_into(&mut name);
            kind.clone_into(&mut families.entry(name.clone()).or_default().kind);
        } else if let Some(family) = families.get_mut(&name) {
            // The samples of a family follow its texts.
            read_labels(line, family);
        }
    }
    families
}

fn read_labels(line: &str, family: &mut Family) {
    let Some((labels, _)) = line.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}')) else {
        return;
    };
    // No label of a scheduler has a comma in its value.
    for (name, value) in labels.split(',').filter_map(|it| it.split_once('=')) {
        if name != "le" {
            family.labels.insert(name.to_owned());
            continue;
        }
        let bound = value.trim_matches('"').parse().unwrap_or(f64::NAN);
        if !family.buckets.contains(&bound) {
            family.buckets.push(bound);
        }
    }
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

    #[test]
    fn a_family_is_its_type_its_labels_and_its_buckets() {
        let scraped = "# HELP h [STABLE] Help.\n# TYPE h histogram\n\
                       h_bucket{of=\"x\",le=\"0.5\"} 1\nh_bucket{of=\"x\",le=\"+Inf\"} 1\n\
                       h_sum{of=\"x\"} 1\nh_count{of=\"x\"} 1\n# HELP c Other.\n# TYPE c counter\nc 1\n";
        let families = families(scraped);
        let histogram = &families["h"];
        assert_eq!(
            (histogram.help.as_str(), histogram.kind.as_str()),
            ("[STABLE] Help.", "histogram")
        );
        assert_eq!(histogram.labels, ["of".to_owned()].into());
        assert_eq!(histogram.buckets, [0.5, f64::INFINITY]);
        assert_eq!((families["c"].kind.as_str(), families["c"].labels.len()), ("counter", 0));
    }
}

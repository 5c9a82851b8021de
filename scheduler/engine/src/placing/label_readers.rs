//! Which labels of Pods some selector reads. Pods that differ only in labels that none reads are one class: every Indexed Job
//! and StatefulSet gives each of its Pods a label of its own.

use std::sync::{Arc, LazyLock};

use model::{LabelSelector, Labels, PodAffinity, Reads, SchedulingSpec};

use super::FixedMap;

/// Selectors of the cluster that may mean a Pod that waits: terms of Pods on Nodes or nominated for one, Services and
/// controllers. Counted, because they come and go.
#[derive(Debug, Default)]
pub(super) struct LabelReaders {
    keys: FixedMap<Arc<str>, KeyReaders>,
    grown: u64,
    newly_read: Vec<LabelRead>,
}

/// How many selectors want to know what of a label.
#[derive(Debug, Default)]
struct KeyReaders {
    of_values: FixedMap<Arc<str>, u32>,
    presence: u32,
    value: u32,
}

/// Something that no selector read before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LabelRead {
    key: Arc<str>,
    /// `None`: more than whether it is this value.
    value: Option<Arc<str>>,
}

impl LabelRead {
    /// Whether it can tell these labels from others.
    pub fn concerns(&self, labels: &Labels) -> bool {
        let found = labels.get(&self.key);
        found.is_some_and(|it| self.value.as_ref().is_none_or(|value| value == it))
    }
}

/// Beyond this, what is newly read is not listed: every Pod may be concerned.
const NEWLY_READ_MAX: usize = 64;

/// Stands for all values that no selector names, where selectors ask whether there is one. It is no value that a label can
/// have.
static OTHER_VALUE: LazyLock<Arc<str>> = LazyLock::new(|| "\0".into());

impl LabelReaders {
    /// Changes with everything that is read and was not: what Pods had in common before may differ now.
    pub fn grown(&self) -> u64 {
        self.grown
    }

    /// What is read and was not when this was last called. `None`: too much to be listed.
    pub fn take_newly_read(&mut self) -> Option<Vec<LabelRead>> {
        let all = std::mem::take(&mut self.newly_read);
        (all.len() <= NEWLY_READ_MAX).then_some(all)
    }

    /// The selector has come (`is_new`) or gone.
    pub fn count(&mut self, selector: &LabelSelector, is_new: bool) {
        for (key, reads) in selector.reads() {
            let of_key = self.keys.entry(key.clone()).or_default();
            let mut first_of = Vec::new();
            match reads {
                Reads::AnyOf(values) => {
                    for value in values {
                        let count = of_key.of_values.entry(value.clone()).or_default();
                        if moved(count, is_new) {
                            first_of.push(Some(value.clone()));
                        }
                        if *count == 0 {
                            of_key.of_values.remove(value);
                        }
                    }
                }
                Reads::Presence if moved(&mut of_key.presence, is_new) => first_of.push(None),
                Reads::Value if moved(&mut of_key.value, is_new) => first_of.push(None),
                Reads::Presence | Reads::Value => {}
            }
            if of_key.of_values.is_empty() && of_key.presence == 0 && of_key.value == 0 {
                self.keys.remove(key);
            }
            for value in first_of {
                self.grown += 1;
                if self.newly_read.len() <= NEWLY_READ_MAX {
                    self.newly_read.push(LabelRead { key: key.clone(), value });
                }
            }
        }
    }

    /// The same for the terms that a Pod carries.
    pub fn count_terms(&mut self, affinity: &PodAffinity, is_new: bool) {
        for selector in selectors_of(affinity) {
            self.count(selector, is_new);
        }
    }

    /// The spec with those labels only by which some selector, one of its own or of others, can tell it from other specs:
    /// each selector means both or neither.
    pub fn project(&self, scheduling: &Arc<SchedulingSpec>) -> Arc<SchedulingSpec> {
        let is_kept = |(key, value): (&Arc<str>, &Arc<str>)| {
            self.read_as(scheduling, key, value) == Some(value)
        };
        if scheduling.labels.iter().all(is_kept) {
            return scheduling.clone();
        }
        let labels = scheduling.labels.iter();
        let read = labels.filter_map(|(key, value)| {
            self.read_as(scheduling, key, value).map(|value| (key.clone(), value.clone()))
        });
        let mut projected = (**scheduling).clone();
        projected.labels = read.collect();
        Arc::new(projected)
    }

    fn read_as<'a>(
        &self,
        scheduling: &SchedulingSpec,
        key: &Arc<str>,
        value: &'a Arc<str>,
    ) -> Option<&'a Arc<str>> {
        if reads_itself(scheduling, key) {
            return Some(value);
        }
        let of_key = self.keys.get(key)?;
        if of_key.value > 0 || of_key.of_values.contains_key(value) {
            Some(value)
        } else {
            (of_key.presence > 0).then(|| &*OTHER_VALUE)
        }
    }
}

/// Counts one more or one less. Whether it is the first.
fn moved(count: &mut u32, is_new: bool) -> bool {
    *count = if is_new { count.saturating_add(1) } else { count.saturating_sub(1) };
    is_new && *count == 1
}

fn selectors_of(affinity: &PodAffinity) -> impl Iterator<Item = &LabelSelector> {
    let PodAffinity { required, preferred, anti_required, anti_preferred } = affinity;
    let hard = required.iter().chain(anti_required);
    let soft = preferred.iter().chain(anti_preferred).map(|weighted| &weighted.term);
    hard.chain(soft).map(|term| &term.selector)
}

/// Whether the Pod itself asks for others by this label: then its own value counts.
fn reads_itself(scheduling: &SchedulingSpec, key: &Arc<str>) -> bool {
    let spread = &scheduling.topology_spread;
    let mut selectors =
        selectors_of(&scheduling.pod_affinity).chain(spread.iter().map(|it| &it.selector));
    selectors.any(|selector| selector.reads().any(|(read, _)| read == key))
        || spread.iter().any(|it| it.match_label_keys.contains(key))
}

#[cfg(test)]
mod tests {
    use model::RawRequirement;

    use super::*;
    use crate::testkit::scheduling;

    fn selector(key: &str, operator: &str, values: &[&str]) -> LabelSelector {
        LabelSelector::parse(&Labels::new(), &[RawRequirement::new(key, operator, values)])
    }

    fn labelled(labels: &[(&str, &str)]) -> Arc<SchedulingSpec> {
        let labels = labels.iter().map(|(key, value)| (Arc::from(*key), Arc::from(*value)));
        Arc::new(SchedulingSpec { labels: labels.collect(), ..scheduling(100, 0) })
    }

    #[test]
    fn labels_that_no_selector_reads_do_not_count() {
        let readers = LabelReaders::default();
        let one = readers.project(&labelled(&[("index", "1")]));
        assert_eq!(one, readers.project(&labelled(&[("index", "2"), ("app", "x")])));
    }

    #[test]
    fn a_value_counts_while_a_selector_names_it() {
        let mut readers = LabelReaders::default();
        let web = selector("app", "NotIn", &["web"]);
        let (one, other) = (labelled(&[("app", "web")]), labelled(&[("app", "db")]));
        let none = labelled(&[]);
        readers.count(&web, true);
        readers.count(&web, true);
        readers.count(&web, false);
        assert_eq!(readers.grown(), 1);
        assert_eq!(readers.project(&one), one);
        assert_eq!(readers.project(&other), none, "NotIn means what has no value, too");
        readers.count(&web, false);
        assert_eq!(readers.project(&one), none);
        assert!(readers.keys.is_empty(), "nothing is left of selectors that are gone");
    }

    #[test]
    fn where_presence_is_asked_for_all_other_values_are_one() {
        let mut readers = LabelReaders::default();
        readers.count(&selector("app", "Exists", &[]), true);
        let (one, other) = (labelled(&[("app", "web")]), labelled(&[("app", "db")]));
        assert_eq!(readers.project(&one), readers.project(&other));
        assert_ne!(readers.project(&one), readers.project(&labelled(&[])));
    }

    #[test]
    fn what_a_pod_asks_by_itself_counts_with_its_value() {
        let readers = LabelReaders::default();
        let mut own = (*labelled(&[("app", "web"), ("hash", "1"), ("index", "7")])).clone();
        let when = model::WhenUnsatisfiable::DoNotSchedule;
        let selector = selector("app", "In", &["other"]);
        let mut spread = model::TopologySpreadConstraint::new("zone", 1, when, selector);
        spread.match_label_keys.push("hash".into());
        own.topology_spread.push(spread);
        let projected = readers.project(&Arc::new(own));
        let left: Vec<&str> = projected.labels.keys().map(|key| &**key).collect();
        assert_eq!(left, ["app", "hash"]);
    }
}

//! Objects that can be used on Nodes with certain labels, so that those near a Node are found without a look at the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::Labels;

/// A label and the values of which a Node must have one.
pub type Narrowing<'a> = Option<(&'a Arc<str>, &'a BTreeSet<Arc<str>>)>;

/// An object that can be used under more values of a label than these is looked at on every Node.
const VALUES_MAX: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ByTopology<T> {
    /// By label and value.
    labels: BTreeMap<Arc<str>, BTreeMap<Arc<str>, BTreeSet<T>>>,
    anywhere: BTreeSet<T>,
}

impl<T> Default for ByTopology<T> {
    fn default() -> Self {
        Self { labels: BTreeMap::new(), anywhere: BTreeSet::new() }
    }
}

impl<T: Ord + Clone> ByTopology<T> {
    pub fn insert(&mut self, narrowing: Narrowing<'_>, object: &T) {
        let Some((label, values)) = narrowing.filter(|it| is_narrow(*it)) else {
            self.anywhere.insert(object.clone());
            return;
        };
        let by_value = self.labels.entry(label.clone()).or_default();
        for value in values {
            by_value.entry(value.clone()).or_default().insert(object.clone());
        }
    }

    /// Undoes [`Self::insert`] with the same arguments.
    pub fn remove(&mut self, narrowing: Narrowing<'_>, object: &T) {
        let Some((label, values)) = narrowing.filter(|it| is_narrow(*it)) else {
            self.anywhere.remove(object);
            return;
        };
        let Some(by_value) = self.labels.get_mut(label) else { return };
        for value in values {
            if let Some(objects) = by_value.get_mut(value) {
                objects.remove(object);
                if objects.is_empty() {
                    by_value.remove(value);
                }
            }
        }
        if by_value.is_empty() {
            self.labels.remove(label);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.anywhere.is_empty()
    }

    /// Those that may be usable on a Node with these labels, in order; and perhaps others.
    pub fn near(&self, labels: &Labels) -> Vec<&T> {
        let by_label =
            self.labels.iter().filter_map(|(label, by_value)| by_value.get(labels.get(label)?));
        let mut lists = by_label.chain((!self.anywhere.is_empty()).then_some(&self.anywhere));
        let Some(first) = lists.next() else { return Vec::new() };
        let mut near: Vec<&T> = first.iter().collect();
        let found = near.len();
        near.extend(lists.flatten());
        if near.len() > found {
            near.sort_unstable();
        }
        near
    }
}

fn is_narrow((_, values): (&Arc<str>, &BTreeSet<Arc<str>>)) -> bool {
    values.len() <= VALUES_MAX
}

#[cfg(test)]
mod tests {
    use model::LabelSelector;

    use super::*;
    use crate::testkit::{labels, selector};

    #[test]
    fn what_is_near_a_node_is_found_in_order_and_gone_when_removed() {
        let mut known = ByTopology::default();
        let wanted = [("zone=a", 3), ("host=x", 2), ("zone=b", 1), ("", 4)];
        let narrowed = |text: &str| -> LabelSelector { selector(text) };
        for (text, number) in wanted {
            known.insert(narrowed(text).narrowest(), &number);
        }
        assert_eq!(known.near(&labels("zone=a,host=x")), [&2, &3, &4]);
        assert_eq!(known.near(&labels("")), [&4]);
        for (text, number) in wanted {
            known.remove(narrowed(text).narrowest(), &number);
        }
        assert!(known.is_empty());
    }
}

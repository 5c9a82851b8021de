//! How many objects are in which phase, by namespace and kind.

use std::collections::{BTreeMap, BTreeSet};

use crds::Phase;
use model::{ObjectKind, ObjectRef, ObjectUid};

/// Namespaces that are counted one by one; objects of others are counted together.
const NAMESPACES_MAX: usize = 10_000;

/// In the order of [`Phase::ALL`].
pub(crate) type Counts = [usize; Phase::ALL.len()];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group {
    pub kind: ObjectKind,
    /// Empty: all that are not counted one by one.
    pub namespace: String,
}

#[derive(Debug, Default)]
pub(crate) struct Phases {
    objects: BTreeMap<ObjectUid, (Group, Phase)>,
    counts: BTreeMap<Group, Counts>,
    /// Since they were last asked for.
    changed: BTreeSet<Group>,
}

impl Phases {
    pub fn sees(&mut self, object: &ObjectRef, uid: &ObjectUid, phase: Phase) {
        if self.objects.get(uid).is_some_and(|(_, known)| *known == phase) {
            return;
        }
        self.forget(uid);
        let group = Group { kind: object.kind, namespace: object.key.namespace.to_string() };
        let is_told = self.counts.contains_key(&group) || self.counts.len() < NAMESPACES_MAX;
        let group = if is_told { group } else { Group { namespace: String::new(), ..group } };
        self.count(&group, phase, |count| *count += 1);
        self.objects.insert(uid.clone(), (group, phase));
    }

    pub fn forget(&mut self, uid: &ObjectUid) {
        if let Some((group, phase)) = self.objects.remove(uid) {
            self.count(&group, phase, |count| *count = count.saturating_sub(1));
        }
    }

    fn count(&mut self, group: &Group, phase: Phase, change: impl Fn(&mut usize)) {
        let counts = self.counts.entry(group.clone()).or_default();
        let of_phase = Phase::ALL.iter().zip(counts.iter_mut()).find(|(it, _)| **it == phase);
        if let Some((_, count)) = of_phase {
            change(count);
        }
        if counts.iter().all(|count| *count == 0) {
            self.counts.remove(group);
        }
        self.changed.insert(group.clone());
    }

    /// What has changed since the last time; `None` if no object is left.
    pub fn changed(&mut self) -> Vec<(Group, Option<Counts>)> {
        let changed = std::mem::take(&mut self.changed).into_iter();
        changed.map(|group| (group.clone(), self.counts.get(&group).copied())).collect()
    }
}

#[cfg(test)]
mod tests {
    use model::ObjectKey;

    use super::*;

    fn sees(phases: &mut Phases, namespace: &str, uid: &str, phase: Phase) {
        let key = ObjectKey::new(namespace, uid);
        let object = ObjectRef { kind: ObjectKind::Corridor, key };
        phases.sees(&object, &uid.into(), phase);
    }

    fn told(phases: &mut Phases) -> Vec<(String, Option<Counts>)> {
        phases.changed().into_iter().map(|(group, counts)| (group.namespace, counts)).collect()
    }

    #[test]
    fn an_object_counts_once_in_the_phase_that_it_is_in() {
        let mut phases = Phases::default();
        sees(&mut phases, "a", "1", Phase::Pending);
        sees(&mut phases, "a", "2", Phase::Ready);
        sees(&mut phases, "a", "1", Phase::Failed);
        sees(&mut phases, "a", "1", Phase::Failed);
        assert_eq!(told(&mut phases), [("a".into(), Some([0, 0, 1, 0, 1, 0, 0]))]);
        assert_eq!(told(&mut phases), [], "nothing new");
        phases.forget(&"1".into());
        phases.forget(&"2".into());
        assert_eq!(told(&mut phases), [("a".into(), None)]);
        assert!(phases.objects.is_empty() && phases.counts.is_empty());
    }

    #[test]
    fn objects_of_too_many_namespaces_are_counted_together() {
        let mut phases = Phases::default();
        for number in 0..NAMESPACES_MAX + 2 {
            sees(&mut phases, &number.to_string(), &number.to_string(), Phase::Failed);
        }
        let others: Vec<_> =
            told(&mut phases).into_iter().filter(|(namespace, _)| namespace.is_empty()).collect();
        assert_eq!(others, [(String::new(), Some([0, 0, 0, 0, 2, 0, 0]))]);
    }
}

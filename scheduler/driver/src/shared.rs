//! One copy of what many objects have in common: the Pods of a Deployment ask for the same, and most Nodes have the same
//! labels and images.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use model::{Assignment, ClusterNode, Labels, NodeImage, NodeName, Pod, PodSpec, SchedulingSpec};

/// Entries that are in use elsewhere are kept; the others are dropped when there are as many of them.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    texts: Pool<str>,
    specs: Pool<PodSpec>,
    /// Pods whose specs differ only in their claims are of one class, which is found by where this is in memory.
    scheduling_specs: Pool<SchedulingSpec>,
    images: Pool<NodeImage>,
    image_lists: Pool<[Arc<NodeImage>]>,
}

impl Shared {
    pub fn pod(&mut self, mut pod: Pod) -> Pod {
        pod.key.namespace = self.texts.share(pod.key.namespace);
        if let Assignment::Bound { node, .. } = &mut pod.assignment {
            *node = NodeName::from(self.texts.share(node.clone().into()));
        }
        pod.spec = match self.specs.known(&pod.spec) {
            Some(known) => known,
            None => self.new_spec(Arc::unwrap_or_clone(pod.spec)),
        };
        pod
    }

    fn new_spec(&mut self, mut spec: PodSpec) -> Arc<PodSpec> {
        spec.namespace = self.texts.share(spec.namespace);
        spec.profile = self.texts.share(spec.profile);
        let scheduling = Arc::make_mut(&mut spec.scheduling);
        scheduling.labels = self.labels(std::mem::take(&mut scheduling.labels));
        scheduling.node_selector = self.labels(std::mem::take(&mut scheduling.node_selector));
        spec.scheduling = self.scheduling_specs.share(spec.scheduling);
        self.specs.share(Arc::new(spec))
    }

    pub fn node(&mut self, mut node: ClusterNode) -> ClusterNode {
        node.node.labels = self.labels(std::mem::take(&mut node.node.labels));
        node.node.name = NodeName::from(self.texts.share(node.node.name.into()));
        let images = node.images.iter().cloned().map(|image| self.images.share(image)).collect();
        node.images = self.image_lists.share(images);
        node
    }

    fn labels(&mut self, labels: Labels) -> Labels {
        let pairs = labels.into_iter();
        pairs.map(|(key, value)| (self.texts.share(key), self.texts.share(value))).collect()
    }
}

/// Fewer than this are not worth looking through.
const SWEEP_MIN: usize = 1_024;

#[derive(Debug)]
pub(crate) struct Pool<T: ?Sized> {
    known: HashSet<Arc<T>>,
    /// With this many, those that are not in use elsewhere are dropped: the work is shared among those that came since the
    /// last time, and there are never more than twice as many as are in use.
    sweep_at: usize,
}

impl<T: ?Sized> Default for Pool<T> {
    fn default() -> Self {
        Self { known: HashSet::new(), sweep_at: SWEEP_MIN }
    }
}

impl<T: ?Sized + Eq + Hash> Pool<T> {
    fn known(&self, value: &T) -> Option<Arc<T>> {
        self.known.get(value).cloned()
    }

    pub fn share(&mut self, value: Arc<T>) -> Arc<T> {
        if let Some(known) = self.known(&value) {
            return known;
        }
        if self.known.len() >= self.sweep_at {
            self.known.retain(|it| Arc::strong_count(it) > 1);
            self.known.shrink_to_fit();
            self.sweep_at = SWEEP_MIN.max(2 * self.known.len());
        }
        self.known.insert(value.clone());
        value
    }
}

#[cfg(test)]
mod tests {
    use model::PodVolume;

    use super::*;

    #[test]
    fn equals_are_one_and_others_are_not() {
        let mut pool = Pool::<str>::default();
        let (one, same, other) =
            (pool.share("a".into()), pool.share("a".into()), pool.share("b".into()));
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
    }

    #[test]
    fn specs_that_differ_in_claims_have_the_rest_in_common() {
        let mut shared = Shared::default();
        let mut spec = |claim: &str| {
            shared.new_spec(PodSpec {
                profile: "p".into(),
                namespace: "n".into(),
                needs: Vec::new(),
                failure_policy: None,
                hold: None,
                volumes: [PodVolume::Claim(claim.into())].into(),
                resource_claims: Arc::default(),
                scheduling: Arc::default(),
            })
        };
        let (one, other) = (spec("a"), spec("b"));
        assert!(!Arc::ptr_eq(&one, &other) && Arc::ptr_eq(&one.scheduling, &other.scheduling));
    }

    #[test]
    fn what_is_not_in_use_any_more_is_dropped() {
        let mut pool = Pool::<str>::default();
        let kept: Vec<Arc<str>> =
            (0..100).map(|number| pool.share(format!("kept-{number}").into())).collect();
        for number in 0..20 * SWEEP_MIN {
            pool.share(number.to_string().into());
        }
        assert!(pool.known.len() <= 2 * SWEEP_MIN, "{}", pool.known.len());
        for text in &kept {
            assert!(Arc::ptr_eq(text, &pool.share(text.as_ref().into())));
        }
    }
}

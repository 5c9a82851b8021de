//! How a Pod of this scheduler reaches a Node in the cluster view that the rules read.
//!
//! `observed.pods` records what is known of each Pod; `observed.cluster` is the view that filters and scores read. A Pod
//! gets from the former to the latter in two ways: a decision places it in a transaction (`transaction.rs`), and
//! everything else that is learnt of it, a nomination or its end, passes through the function here. Nominations of other
//! schedulers' Pods are the exception: see `foreign_seen`.

use model::PodUid;

use crate::engine::Engine;
use crate::record::Record;
use crate::wake::ClusterChange;

impl Engine {
    /// Updates the cluster view of a Pod from its record: puts it on its Node, nominates it for one, or removes it.
    /// Waiting Pods that the change may help are woken.
    pub(crate) fn sync_pod_to_cluster(&mut self, uid: &PodUid) {
        let (record, shown) =
            (self.observed.pods.get(uid), self.observed.cluster.pods().get(uid).map(|pod| &**pod));
        if record.map_or(shown.is_none(), |record| record.is_shown_as(shown)) {
            return;
        }
        let after = self.observed.pods.get_mut(uid).and_then(Record::show);
        let before = match &after {
            Some(pod) => self.observed.cluster.insert_pod(pod.clone()),
            None => self.observed.cluster.remove_pod(uid),
        };
        let (before, after) = (before.as_deref(), after.as_deref());
        self.cluster_changed(ClusterChange::Pod { before, after });
    }
}

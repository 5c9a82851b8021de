//! Finds allocations of this cluster that no object stands behind, and releases them.
//!
//! This is the last resort, for finalizers that were removed by force. An allocation with a live owner is never
//! touched: the allocations are listed first and the objects after, both by consistent reads, and only an orphan of
//! two rounds in a row is released. Owners that the watch knows are no suspects, which mostly saves the second list. A
//! watch that lags behind can only delay a release.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use controller_runtime::jitter;
use daemons::Owner;
use daemons::{Allocation, Allocator as _};
use parking_lot::RwLock;
use tracing::{info, warn};

use crate::context::Context;
use crate::lifecycle::AllocatedKind;

/// The UIDs of one kind's objects that its watch shows. The watch may lag behind in both directions.
#[derive(Debug, Default)]
pub(crate) struct KnownUids {
    uids: RwLock<HashSet<String>>,
}

impl KnownUids {
    pub fn insert(&self, uid: &str) {
        self.uids.write().insert(uid.to_owned());
    }

    pub fn remove(&self, uid: &str) {
        self.uids.write().remove(uid);
    }

    fn contains(&self, uid: &str) -> bool {
        self.uids.read().contains(uid)
    }
}

pub(crate) async fn run<K: AllocatedKind>(context: Arc<Context>) {
    let Some(daemon) = K::daemon(&context) else { return std::future::pending().await };
    let mut suspects = BTreeSet::new();
    loop {
        let pause = context.settings.sweep_interval.mul_f64(0.8 + 0.4 * jitter());
        tokio::time::sleep(pause).await;
        suspects = round::<K>(&context, daemon, &suspects).await;
    }
}

/// Releases those of the suspects that are orphans again; returns the new suspects.
async fn round<K: AllocatedKind>(
    context: &Context,
    daemon: &K::Daemon,
    suspects: &BTreeSet<(String, String)>,
) -> BTreeSet<(String, String)> {
    let prefix = Owner::cluster_prefix(&context.cluster_uid);
    let allocations = match daemon.list(&prefix).await {
        Ok(allocations) => allocations,
        Err(error) => {
            warn!(backend = K::BACKEND, %error, "no sweep");
            return BTreeSet::new();
        }
    };
    let suspected = unknown(&allocations, &context.cluster_uid, &K::of_kind(context).known_uids);
    if suspected.is_empty() {
        return BTreeSet::new();
    }
    // After the allocations: an owner existed before its allocation was made.
    let live = match context.api.uids::<K::Object>().await {
        Ok(uids) => uids,
        Err(error) => {
            warn!(backend = K::BACKEND, %error, "no sweep");
            return BTreeSet::new();
        }
    };
    let mut next = BTreeSet::new();
    for orphan in suspected.into_iter().filter(|it| !live.contains(it.owner().object_uid())) {
        let name = (orphan.id().to_owned(), orphan.owner().to_string());
        if !suspects.contains(&name) {
            next.insert(name);
            continue;
        }
        match daemon.release(orphan.id(), orphan.owner()).await {
            Ok(released) => {
                info!(id = orphan.id(), owner = %orphan.owner(), ?released, "swept");
                context.alarms.orphaned(orphan.owner().object_uid());
            }
            Err(error) => {
                warn!(id = orphan.id(), %error, "an orphan could not be released");
                next.insert(name);
            }
        }
    }
    next
}

/// Allocations of this cluster whose owner the watch does not know.
fn unknown<'a, A: Allocation>(
    allocations: &'a [A],
    cluster_uid: &str,
    known: &KnownUids,
) -> Vec<&'a A> {
    let is_unknown = |it: &&A| {
        it.owner().cluster_uid() == cluster_uid && !known.contains(it.owner().object_uid())
    };
    allocations.iter().filter(is_unknown).collect()
}

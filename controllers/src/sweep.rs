//! Finds allocations of this cluster that no object stands behind, and releases them.
//!
//! It is the last resort, for finalizers that somebody removed by force. An allocation with a
//! live owner is never touched: the allocations are listed first and the objects after, both by
//! consistent reads, and only what is an orphan in two rounds in a row is released. The watch is
//! asked before the API server: whoever it knows is no suspect, and mostly there is none. It can
//! only delay a release, by remembering for a moment somebody who is gone.

use std::collections::BTreeSet;
use std::sync::Arc;

use daemons::Owner;
use tracing::{info, warn};

use crate::board::Roster;
use crate::context::{Context, chance};
use crate::kubernetes;
use crate::life::{Allocation, Kind};

pub(crate) async fn run<K: Kind>(context: Arc<Context>) {
    if !K::has_backend(&context) {
        return std::future::pending().await;
    }
    let mut suspects = BTreeSet::new();
    loop {
        let pause = context.settings.sweep_interval.mul_f64(0.8 + 0.4 * chance());
        tokio::time::sleep(pause).await;
        suspects = round::<K>(&context, &suspects).await;
    }
}

/// Releases those of the suspects that are orphans again; returns the new suspects.
async fn round<K: Kind>(
    context: &Context,
    suspects: &BTreeSet<(String, String)>,
) -> BTreeSet<(String, String)> {
    let prefix = Owner::cluster_prefix(&context.cluster_uid);
    let allocations = match K::list(context, &prefix).await {
        Ok(allocations) => allocations,
        Err(error) => {
            warn!(backend = K::BACKEND, %error, "no sweep");
            return BTreeSet::new();
        }
    };
    let strangers = unknown(&allocations, &context.cluster_uid, K::roster(context));
    if strangers.is_empty() {
        return BTreeSet::new();
    }
    // Afterwards: whoever owns one of these allocations existed before it was made.
    let live = match kubernetes::uids::<K::Object>(&context.client).await {
        Ok(uids) => uids,
        Err(error) => {
            warn!(backend = K::BACKEND, %error, "no sweep");
            return BTreeSet::new();
        }
    };
    let mut next = BTreeSet::new();
    for orphan in strangers.into_iter().filter(|it| !live.contains(it.owner().object_uid())) {
        let name = (orphan.id().to_owned(), orphan.owner().to_string());
        if !suspects.contains(&name) {
            next.insert(name);
            continue;
        }
        match K::release(context, orphan.id(), orphan.owner()).await {
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

/// Those of this cluster whose owner the watch does not know.
fn unknown<'a, A: Allocation>(
    allocations: &'a [A],
    cluster_uid: &str,
    roster: &Roster,
) -> Vec<&'a A> {
    let is_unknown = |it: &&A| {
        it.owner().cluster_uid() == cluster_uid && !roster.contains(it.owner().object_uid())
    };
    allocations.iter().filter(is_unknown).collect()
}

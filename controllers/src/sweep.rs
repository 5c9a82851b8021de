//! Finds allocations of this cluster that no object stands behind, and releases them.
//!
//! It is the last resort, for finalizers that somebody removed by force. An allocation with a
//! live owner is never touched: the allocations are listed first and the objects after, both by
//! consistent reads, and only what is an orphan in two rounds in a row is released.

use std::collections::BTreeSet;
use std::sync::Arc;

use daemons::Owner;
use kube::ResourceExt;
use tracing::{info, warn};

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
    // Afterwards: whoever owns one of these allocations existed before it was made.
    let objects = match kubernetes::list::<K::Object>(&context.client).await {
        Ok(objects) => objects,
        Err(error) => {
            warn!(backend = K::BACKEND, %error, "no sweep");
            return BTreeSet::new();
        }
    };
    let live: BTreeSet<String> = objects.iter().filter_map(ResourceExt::uid).collect();
    let mut next = BTreeSet::new();
    for orphan in orphans(&allocations, &context.cluster_uid, &live) {
        let name = (orphan.id().to_owned(), orphan.owner().to_string());
        if !suspects.contains(&name) {
            next.insert(name);
            continue;
        }
        match K::release(context, orphan.id(), orphan.owner()).await {
            Ok(released) => info!(id = orphan.id(), owner = %orphan.owner(), ?released, "swept"),
            Err(error) => {
                warn!(id = orphan.id(), %error, "an orphan could not be released");
                next.insert(name);
            }
        }
    }
    next
}

fn orphans<'a, A: Allocation>(
    allocations: &'a [A],
    cluster_uid: &'a str,
    live: &'a BTreeSet<String>,
) -> impl Iterator<Item = &'a A> {
    allocations.iter().filter(move |it| {
        it.owner().cluster_uid() == cluster_uid && !live.contains(it.owner().object_uid())
    })
}

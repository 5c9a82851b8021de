//! What an audit looks at: the tickets of the namespace, as they are now.

use crds::AttestationPolicy;
use crds::condition::{self, ATTESTED};
use kube::core::object::HasStatus as _;
use kube::{Resource as _, ResourceExt as _};

use crate::context::Context;
use crate::corridor::Corridors;
use crate::lifecycle::{AllocatedKind, SharedStatus};
use crate::memory_bundle::Bundles;

/// What the audit has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Audited {
    /// Whether tickets can be had and verified at all.
    pub has_attestd: bool,
    /// Objects with a good ticket.
    pub attested: usize,
    /// `kind name` of those without.
    pub unattested: Vec<String>,
}

pub(super) async fn observe(
    context: &Context,
    policy: &AttestationPolicy,
) -> kube::Result<Audited> {
    let namespace = policy.namespace().unwrap_or_default();
    let mut audited =
        Audited { has_attestd: context.backends.attestd.is_some(), ..Audited::default() };
    audited.count::<Corridors>(&context.api.list_in(&namespace).await?);
    audited.count::<Bundles>(&context.api.list_in(&namespace).await?);
    // The next reconcile of each object checks its ticket against the policies of its namespace.
    context.wake_namespaces([&namespace].into_iter());
    Ok(audited)
}

impl Audited {
    fn count<K: AllocatedKind>(&mut self, objects: &[K::Object]) {
        for object in objects {
            let Some(status) = object.status() else { continue };
            let SharedStatus { handle, conditions, .. } = K::shared(status);
            if condition::is_true(conditions, ATTESTED) {
                self.attested += 1;
            } else if handle.is_some() {
                self.unattested.push(format!("{} {}", K::Object::kind(&()), object.name_any()));
            }
        }
    }
}

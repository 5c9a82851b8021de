//! What an audit looks at: the tickets of the namespace, as they are now.

use crds::condition::{self, ATTESTED};
use crds::{AttestationPolicy, Corridor, MemoryBundle};
use kube::ResourceExt;

use crate::context::Context;

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
    let corridors: Vec<Corridor> = context.api.list_in(&namespace).await?;
    for object in &corridors {
        let status = object.status.as_ref();
        let conditions = status.map(|it| it.conditions.as_slice()).unwrap_or_default();
        let has_handle = status.is_some_and(|it| it.corridor_id.is_some());
        audited.count("Corridor", &object.name_any(), has_handle, conditions);
    }
    let bundles: Vec<MemoryBundle> = context.api.list_in(&namespace).await?;
    for object in &bundles {
        let status = object.status.as_ref();
        let conditions = status.map(|it| it.conditions.as_slice()).unwrap_or_default();
        let has_handle = status.is_some_and(|it| it.ffm_handle.is_some());
        audited.count("MemoryBundle", &object.name_any(), has_handle, conditions);
    }
    // The next reconcile of each object checks its ticket against the policies of its namespace.
    context.wake_namespaces([&namespace].into_iter());
    Ok(audited)
}

impl Audited {
    fn count(
        &mut self,
        kind: &str,
        name: &str,
        has_handle: bool,
        conditions: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition],
    ) {
        if condition::is_true(conditions, ATTESTED) {
            self.attested += 1;
        } else if has_handle {
            self.unattested.push(format!("{kind} {name}"));
        }
    }
}

//! The parts of an object that a reconcile depends on.

use std::collections::BTreeMap;
use std::fmt;

use crds::{Phase, PodUse, annotations, condition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::Resource as _;
use kube::core::object::HasStatus as _;
use serde::{Deserialize, Serialize};

use super::allocated_kind::AllocatedKind;
use super::drift::SharedStatus;

/// The request that is about to be sent to a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Intent {
    /// The idempotency key.
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_id: Option<String>,
}

impl Intent {
    pub fn to_annotation(&self) -> String {
        // A struct of plain fields always serializes.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The Pods that use an object, as its status names them.
#[derive(Clone, Copy)]
pub(crate) struct Use<'a> {
    pub count: Option<i64>,
    pub pods: &'a [PodUse],
}

/// The names of a few of the Pods that use an object, and how many more there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Users {
    named: Vec<String>,
    more: usize,
}

impl Users {
    const NAMED_MAX: usize = 3;

    fn of(used: Use<'_>) -> Self {
        let name = |it: &PodUse| format!("{}/{}", it.namespace, it.name);
        let named: Vec<_> = used.pods.iter().take(Self::NAMED_MAX).map(name).collect();
        let count = used.count.and_then(|it| usize::try_from(it).ok()).unwrap_or_default();
        Self { more: count.saturating_sub(named.len()), named }
    }

    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }
}

impl fmt::Display for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named.join(", "))?;
        if self.more > 0 { write!(f, " and {} more", self.more) } else { Ok(()) }
    }
}

/// The parts of an object that decide what happens next, whatever its kind.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact, and they are independent")]
pub(crate) struct Observed {
    pub uid: String,
    pub namespace: String,
    pub name: String,
    pub generation: i64,
    pub is_deleting: bool,
    pub has_finalizer: bool,
    pub intent: Option<Intent>,
    pub ticket: Option<String>,
    /// Bound Pods carry the handle.
    pub is_in_use: bool,
    /// Those Pods, for messages.
    pub users: Users,
    /// The driver has confirmed that nothing is bound or in flight any more.
    pub is_drained: bool,
    pub is_forced: bool,
    /// The handle that the status shows.
    pub handle: Option<String>,
    pub phase: Option<Phase>,
    pub conditions: Vec<Condition>,
}

impl Observed {
    pub fn of<K: AllocatedKind>(object: &K::Object) -> Self {
        let empty = K::Status::default();
        let SharedStatus { phase, handle, used, conditions, .. } =
            K::shared(object.status().unwrap_or(&empty));
        let handle = handle.map(str::to_owned);
        Self::new(object.meta(), K::FINALIZER, phase, handle, used, conditions)
    }

    pub fn new(
        metadata: &ObjectMeta,
        finalizer: &str,
        phase: Option<Phase>,
        handle: Option<String>,
        used: Use<'_>,
        conditions: &[Condition],
    ) -> Self {
        let empty = BTreeMap::new();
        let annotations = metadata.annotations.as_ref().unwrap_or(&empty);
        let generation = metadata.generation.unwrap_or_default();
        // A confirmation for an earlier generation does not count.
        let is_drained = condition::find(conditions, condition::DRAINED).is_some_and(|it| {
            it.status == "True" && it.observed_generation.is_some_and(|seen| seen >= generation)
        });
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            generation,
            is_deleting: metadata.deletion_timestamp.is_some(),
            has_finalizer: metadata.finalizers.iter().flatten().any(|it| it == finalizer),
            intent: annotations
                .get(annotations::ALLOCATION_INTENT)
                .and_then(|it| serde_json::from_str(it).ok()),
            ticket: annotations.get(annotations::ATTESTATION_TICKET).cloned(),
            is_in_use: used.count.is_some_and(|count| count > 0),
            users: Users::of(used),
            is_drained,
            is_forced: annotations.get(annotations::FORCE_RELEASE).is_some_and(|it| it == "true"),
            handle,
            phase,
            conditions: conditions.to_vec(),
        }
    }
}

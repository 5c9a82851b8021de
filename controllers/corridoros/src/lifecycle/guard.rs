//! Whether another account has written what only the controllers write on an object: its status, its intent, its
//! ticket, its finalizer.
//!
//! A running process remembers what it wrote. For earlier writes `managedFields` names the writers; a forgery under the
//! controllers' field manager is not noticed there, and its status is overwritten all the same.
//!
//! The answer to a write may be lost though the write was carried out, so what a write may have left is no tampering.

mod pending_writes;

use std::time::Instant;

use controller_runtime::is_certain;
use crds::{CONTROLLERS_MANAGER, DRIVER_MANAGER, annotations};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::{Resource as _, ResourceExt as _};
use own_writes::{TAMPERING_REPORTS_MAX, Tampering};
use serde_json::{Value, json};

use self::pending_writes::PendingWrites;
use super::allocated_kind::AllocatedKind;
use super::own_status::{own_status, with_own_status};
use crate::context::Context;

/// What the controllers wrote last, or what the first look at the object found.
#[derive(Default)]
pub(crate) struct Guard<S> {
    status: Option<(u64, S)>,
    metadata: Option<(u64, OwnMetadata)>,
    sent_status: PendingWrites<S>,
    sent_metadata: PendingWrites<OwnMetadata>,
    /// Another account wrote the status, so it has to be written even if its content is right.
    pub is_overwritten: bool,
    reported: u8,
}

/// What only the controllers write in an object's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnMetadata {
    intent: Option<String>,
    ticket: Option<String>,
    has_finalizer: bool,
}

impl OwnMetadata {
    fn of(metadata: &ObjectMeta, finalizer: &str) -> Self {
        let get = |key| metadata.annotations.as_ref().and_then(|it| it.get(key)).cloned();
        Self {
            intent: get(annotations::ALLOCATION_INTENT),
            ticket: get(annotations::ATTESTATION_TICKET),
            has_finalizer: metadata.finalizers.iter().flatten().any(|it| it == finalizer),
        }
    }

    /// As a patch of the metadata leaves it.
    fn patched(mut self, patch: &Value, finalizer: &str) -> Self {
        let annotations = &patch["annotations"];
        for (key, kept) in [
            (annotations::ALLOCATION_INTENT, &mut self.intent),
            (annotations::ATTESTATION_TICKET, &mut self.ticket),
        ] {
            if let Some(value) = annotations.get(key) {
                *kept = value.as_str().map(str::to_owned);
            }
        }
        if let Some(finalizers) = patch["finalizers"].as_array() {
            self.has_finalizer = finalizers.iter().any(|it| it == finalizer);
        }
        self
    }
}

type Differences = Vec<(Tampering, &'static str)>;

impl<S: Clone + PartialEq> Guard<S> {
    /// A write of the status is about to be sent.
    pub fn sending_status(&mut self, own: S) {
        self.sent_status.sending(Instant::now(), own);
    }

    /// A reply to a write of the status.
    pub fn wrote_status(&mut self, metadata: &ObjectMeta, own: S) {
        self.sent_status.answered(&own);
        self.status = Some((version(metadata), own));
        self.is_overwritten = false;
    }

    /// A reply to a write of the metadata.
    fn wrote_metadata(&mut self, metadata: &ObjectMeta, finalizer: &str) {
        self.metadata = Some((version(metadata), OwnMetadata::of(metadata, finalizer)));
    }

    /// The status as the controllers wrote it.
    pub fn own_status(&self) -> Option<&S> {
        self.status.as_ref().map(|(_, own)| own)
    }

    /// Compares an object with what was written. A version older than the last write says nothing.
    fn check(&mut self, metadata: &ObjectMeta, own: S, finalizer: &str) -> Differences {
        let (shown, kept) = (version(metadata), OwnMetadata::of(metadata, finalizer));
        let mut found = Differences::new();
        match &self.status {
            None => {
                if self.metadata.is_none() {
                    found = inherited(metadata, &kept);
                }
                self.is_overwritten |= found.iter().any(|(kind, _)| *kind == Tampering::Status);
                self.status = Some((shown, own));
            }
            Some((version, ours)) if *version < shown && *ours != own => {
                if self.sent_status.may_have_written(Instant::now(), &own) {
                    self.status = Some((shown, own));
                } else {
                    found.push((Tampering::Status, "its status was written by somebody else"));
                    self.is_overwritten = true;
                }
            }
            Some(_) => {}
        }
        self.check_metadata(shown, kept, found)
    }

    fn check_metadata(
        &mut self,
        shown: u64,
        kept: OwnMetadata,
        mut found: Differences,
    ) -> Differences {
        match &self.metadata {
            None => self.metadata = Some((shown, kept)),
            Some((version, ours)) if *version < shown && *ours != kept => {
                if self.sent_metadata.may_have_written(Instant::now(), &kept) {
                    self.metadata = Some((shown, kept));
                } else {
                    found.extend(differences(ours, &kept));
                }
            }
            Some(_) => {}
        }
        found
    }
}

fn differences(ours: &OwnMetadata, shown: &OwnMetadata) -> Differences {
    let mut found = Differences::new();
    if ours.intent != shown.intent {
        found.push((Tampering::Intent, "its intent to allocate was written by somebody else"));
    }
    if ours.ticket != shown.ticket {
        found.push((Tampering::Ticket, "its attestation ticket was written by somebody else"));
    }
    if ours.has_finalizer && !shown.has_finalizer {
        found.push((Tampering::Finalizer, "its finalizer was removed by somebody else"));
    }
    found
}

/// What `managedFields` show of writes before this process started.
fn inherited(metadata: &ObjectMeta, kept: &OwnMetadata) -> Differences {
    let entries = metadata.managed_fields.as_deref().unwrap_or_default();
    let others = |ours: &[&str], path: &[&str]| {
        entries.iter().any(|entry| !is_by(entry, ours) && owns(entry, path))
    };
    let annotation = |key: &str| {
        others(&[CONTROLLERS_MANAGER], &["f:metadata", "f:annotations", &format!("f:{key}")])
    };
    let mut found = Differences::new();
    if others(&[CONTROLLERS_MANAGER, DRIVER_MANAGER], &["f:status"]) {
        found.push((Tampering::Status, "its status was written by somebody else"));
    }
    // Intent and finalizer come in one write.
    if annotation(annotations::ALLOCATION_INTENT) || (kept.has_finalizer && kept.intent.is_none()) {
        found.push((Tampering::Intent, "its intent to allocate was written by somebody else"));
    }
    if annotation(annotations::ATTESTATION_TICKET) {
        found.push((Tampering::Ticket, "its attestation ticket was written by somebody else"));
    }
    let is_prepared = owns_by(entries, CONTROLLERS_MANAGER, annotations::ALLOCATION_INTENT);
    if is_prepared && !kept.has_finalizer && metadata.deletion_timestamp.is_none() {
        found.push((Tampering::Finalizer, "its finalizer was removed by somebody else"));
    }
    found
}

fn is_by(entry: &ManagedFieldsEntry, managers: &[&str]) -> bool {
    entry.manager.as_deref().is_some_and(|it| managers.contains(&it))
}

fn owns_by(entries: &[ManagedFieldsEntry], manager: &str, annotation: &str) -> bool {
    let path = ["f:metadata", "f:annotations", &format!("f:{annotation}")];
    entries.iter().any(|entry| is_by(entry, &[manager]) && owns(entry, &path))
}

fn owns(entry: &ManagedFieldsEntry, path: &[&str]) -> bool {
    let mut fields = entry.fields_v1.as_ref().map(|it| &it.0);
    for name in path {
        fields = fields.and_then(|it| it.get(*name));
    }
    fields.is_some_and(|it| *it != Value::Null)
}

/// 0 if it is no number: then no version is later than another, and nothing is noticed.
pub(crate) fn version(metadata: &ObjectMeta) -> u64 {
    metadata.resource_version.as_deref().and_then(|it| it.parse().ok()).unwrap_or(0)
}

/// Changes the metadata, and remembers the write.
pub(crate) async fn write_metadata<K: AllocatedKind>(
    context: &Context,
    object: &K::Object,
    metadata: Value,
    guard: &mut Guard<K::Status>,
) -> kube::Result<K::Object> {
    let before = OwnMetadata::of(object.meta(), K::FINALIZER);
    let sent = before.patched(&metadata, K::FINALIZER);
    guard.sent_metadata.sending(Instant::now(), sent.clone());
    let written = context.api.patch_metadata(object, metadata).await;
    if is_certain(&written) {
        guard.sent_metadata.answered(&sent);
    }
    let written = written?;
    guard.wrote_metadata(written.meta(), K::FINALIZER);
    Ok(written)
}

/// Reports writes by other accounts and returns the object as it would be without them, if there is a difference. Lost
/// metadata is written back at once: without its ticket the object would be attested again, and Pods would wait.
pub(crate) async fn repair<K: AllocatedKind>(
    context: &Context,
    object: &K::Object,
    guard: &mut Guard<K::Status>,
) -> kube::Result<Option<K::Object>> {
    if K::daemon(context).is_none() {
        return Ok(None);
    }
    let found = guard.check(object.meta(), own_status::<K>(object), K::FINALIZER);
    if found.is_empty() {
        return Ok(None);
    }
    for (kind, message) in &found {
        guard.reported = guard.reported.saturating_add(1);
        context.alarms.raise(object, *kind, message, guard.reported <= TAMPERING_REPORTS_MAX);
    }
    let is_deleting = object.meta().deletion_timestamp.is_some();
    let kept = guard.metadata.as_ref().filter(|_| !is_deleting).map(|(_, kept)| kept.clone());
    let shown = OwnMetadata::of(object.meta(), K::FINALIZER);
    let restored = match kept {
        Some(kept) if (&kept.intent, &kept.ticket) != (&shown.intent, &shown.ticket) => {
            let annotations = json!({
                annotations::ALLOCATION_INTENT: kept.intent,
                annotations::ATTESTATION_TICKET: kept.ticket,
            });
            let metadata = json!({ "annotations": annotations });
            Some(write_metadata::<K>(context, object, metadata, guard).await?)
        }
        _ => {
            // A finalizer cannot be written back, and is not reported again.
            guard.wrote_metadata(object.meta(), K::FINALIZER);
            None
        }
    };
    let newest = restored.as_ref().unwrap_or(object);
    match guard.own_status().filter(|_| guard.is_overwritten) {
        Some(own) => Ok(Some(with_own_status::<K>(newest, own))),
        None => Ok(restored),
    }
}

/// Reports an object that is gone though the controllers have not removed their finalizer.
pub(crate) fn deleted<K: AllocatedKind>(context: &Context, object: &K::Object) {
    let uid = object.uid().unwrap_or_default();
    let was_held = object.finalizers().iter().any(|it| it == K::FINALIZER);
    if !context.alarms.was_finalizer_released(&uid) && was_held && K::daemon(context).is_some() {
        context.alarms.deleted_unreleased(object);
    }
}

#[cfg(test)]
mod tests;

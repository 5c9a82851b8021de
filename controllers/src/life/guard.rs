//! Whether somebody else has written what is ours on an object: its status, its intent, its ticket,
//! its finalizer.
//!
//! While the process lives it knows what it wrote. For what was there before, `managedFields` names
//! the writers; whoever is careful enough to write under our name there is not noticed, and has his
//! status overwritten all the same.
//!
//! An answer may be lost where the write was not: what a write of ours may have said is no tampering.

mod unclear;

use std::time::Instant;

use crds::{CONTROLLERS_MANAGER, DRIVER_MANAGER, annotations};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::{Resource as _, ResourceExt as _};
use own_writes::{TAMPERING_REPORTS_MAX, Tampering};
use serde_json::{Value, json};

use self::unclear::Unclear;
use super::kind::Kind;
use crate::context::Context;
use crate::kubernetes;

/// What we wrote last, or found when we first looked.
pub(crate) struct Guard<S> {
    status: Option<(u64, S)>,
    kept: Option<(u64, Kept)>,
    sent_status: Unclear<S>,
    sent_kept: Unclear<Kept>,
    /// The status has to be written, though it may say what we would.
    pub is_overwritten: bool,
    told: u8,
}

impl<S> Default for Guard<S> {
    fn default() -> Self {
        Self {
            status: None,
            kept: None,
            sent_status: Unclear::default(),
            sent_kept: Unclear::default(),
            is_overwritten: false,
            told: 0,
        }
    }
}

/// What the controllers keep in an object's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    intent: Option<String>,
    ticket: Option<String>,
    has_finalizer: bool,
}

impl Kept {
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

type Found = Vec<(Tampering, &'static str)>;

impl<S: Clone + PartialEq> Guard<S> {
    /// A write of our status is about to be sent.
    pub fn sends_status(&mut self, own: S) {
        self.sent_status.sends(Instant::now(), own);
    }

    /// A reply to a write of our status.
    pub fn wrote_status(&mut self, metadata: &ObjectMeta, own: S) {
        self.sent_status.answered(&own);
        self.status = Some((version(metadata), own));
        self.is_overwritten = false;
    }

    /// A reply to a write of our metadata.
    fn wrote_metadata(&mut self, metadata: &ObjectMeta, finalizer: &str) {
        self.kept = Some((version(metadata), Kept::of(metadata, finalizer)));
    }

    /// What the status says by our own word.
    pub fn own_status(&self) -> Option<&S> {
        self.status.as_ref().map(|(_, own)| own)
    }

    /// Compares an object with what we know of it. One that is older than our last write says nothing.
    fn look(&mut self, metadata: &ObjectMeta, own: S, finalizer: &str) -> Found {
        let (shown, kept) = (version(metadata), Kept::of(metadata, finalizer));
        let now = Instant::now();
        let mut found = Found::new();
        match &self.status {
            None => {
                if self.kept.is_none() {
                    found = inherited(metadata, &kept);
                }
                self.is_overwritten |= found.iter().any(|(kind, _)| *kind == Tampering::Status);
                self.status = Some((shown, own));
            }
            Some((version, ours)) if *version < shown && *ours != own => {
                if self.sent_status.may_have_said(now, &own) {
                    self.status = Some((shown, own));
                    return self.look_at_kept(shown, kept, found);
                }
                found.push((Tampering::Status, "its status was written by somebody else"));
                self.is_overwritten = true;
            }
            Some(_) => {}
        }
        self.look_at_kept(shown, kept, found)
    }

    fn look_at_kept(&mut self, shown: u64, kept: Kept, mut found: Found) -> Found {
        match &self.kept {
            None => self.kept = Some((shown, kept)),
            Some((version, ours)) if *version < shown && *ours != kept => {
                if self.sent_kept.may_have_said(Instant::now(), &kept) {
                    self.kept = Some((shown, kept));
                } else {
                    found.extend(differences(ours, &kept));
                }
            }
            Some(_) => {}
        }
        found
    }
}

fn differences(ours: &Kept, shown: &Kept) -> Found {
    let mut found = Found::new();
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

/// What can be told of an object that was there before this process looked.
fn inherited(metadata: &ObjectMeta, kept: &Kept) -> Found {
    let entries = metadata.managed_fields.as_deref().unwrap_or_default();
    let others = |ours: &[&str], path: &[&str]| {
        entries.iter().any(|entry| !is_by(entry, ours) && owns(entry, path))
    };
    let annotation = |key: &str| {
        others(&[CONTROLLERS_MANAGER], &["f:metadata", "f:annotations", &format!("f:{key}")])
    };
    let mut found = Found::new();
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

/// 0 when it is no number: then nothing is later than anything, and nothing is noticed.
fn version(metadata: &ObjectMeta) -> u64 {
    metadata.resource_version.as_deref().and_then(|it| it.parse().ok()).unwrap_or(0)
}

/// Changes the metadata, and remembers it as ours.
pub(crate) async fn write_metadata<K: Kind>(
    context: &Context,
    object: &K::Object,
    metadata: Value,
    guard: &mut Guard<K::Status>,
) -> kube::Result<K::Object> {
    let before = Kept::of(object.meta(), K::FINALIZER);
    let sent = before.patched(&metadata, K::FINALIZER);
    guard.sent_kept.sends(Instant::now(), sent.clone());
    let written = kubernetes::patch_metadata(&context.client, object, metadata).await;
    if kubernetes::is_clear(&written) {
        guard.sent_kept.answered(&sent);
    }
    let written = written?;
    guard.wrote_metadata(written.meta(), K::FINALIZER);
    Ok(written)
}

/// Notices what somebody else has done to the object and returns it as it would be without that, if
/// there is a difference. What the metadata lost is written back at once: a ticket that is not there
/// would be asked for anew, and Pods be held meanwhile.
pub(crate) async fn put_right<K: Kind>(
    context: &Context,
    object: &K::Object,
    guard: &mut Guard<K::Status>,
) -> kube::Result<Option<K::Object>> {
    if !K::has_backend(context) {
        return Ok(None);
    }
    let found = guard.look(object.meta(), K::own_status(object), K::FINALIZER);
    if found.is_empty() {
        return Ok(None);
    }
    for (kind, message) in &found {
        guard.told = guard.told.saturating_add(1);
        context.alarms.raise(object, *kind, message, guard.told <= TAMPERING_REPORTS_MAX);
    }
    let is_deleting = object.meta().deletion_timestamp.is_some();
    let kept = guard.kept.as_ref().filter(|_| !is_deleting).map(|(_, kept)| kept.clone());
    let shown = Kept::of(object.meta(), K::FINALIZER);
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
            // What is lost for good, a finalizer, is not told again.
            guard.wrote_metadata(object.meta(), K::FINALIZER);
            None
        }
    };
    let newest = restored.as_ref().unwrap_or(object);
    match guard.own_status().filter(|_| guard.is_overwritten) {
        Some(own) => Ok(Some(K::with_own_status(newest, own))),
        None => Ok(restored),
    }
}

/// The object is gone for good: was it ours to let go?
pub(crate) fn deleted<K: Kind>(context: &Context, object: &K::Object) {
    let uid = object.uid().unwrap_or_default();
    let was_held = object.finalizers().iter().any(|it| it == K::FINALIZER);
    if !context.alarms.is_let_go(&uid) && was_held && K::has_backend(context) {
        context.alarms.vanished(object);
    }
}

#[cfg(test)]
mod tests;

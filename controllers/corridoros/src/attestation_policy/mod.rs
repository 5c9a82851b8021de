//! AttestationPolicies: known before anything is allocated, and audited while they stand.

mod apply;
mod observe;
mod plan;
mod status;

use std::collections::BTreeMap;
use std::sync::Arc;

use controller_runtime::{Attempt, Controller, Outcome, Requeue, Triggers};
use crds::{AttestationPolicy, AttestationPolicyStatus};
use jiff::Timestamp;
use kube::ResourceExt;
use own_writes::{TAMPERING_REPORTS_MAX, Tampering};

use self::plan::{Op, plan};
use crate::context::Context;
use crate::lifecycle::version;

pub(crate) struct PolicyController;

/// What is remembered of a policy between reconciles.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The status as it was last written, with its version.
    written: Option<(u64, AttestationPolicyStatus)>,
    reported: u8,
}

impl Controller for PolicyController {
    type Context = Context;
    type Object = AttestationPolicy;
    type Memory = Memory;

    fn triggers(context: &Context) -> Option<&Triggers> {
        Some(&context.policy_triggers)
    }

    async fn reconcile(
        context: Arc<Context>,
        object: Arc<AttestationPolicy>,
        mut memory: Memory,
        _attempt: Attempt,
    ) -> Outcome<Self> {
        let interval = context.settings.audit_interval;
        let is_overwritten = context.backends.attestd.is_some() && memory.is_overwritten(&object);
        if is_overwritten {
            let message = "its status was written by somebody else";
            memory.reported = memory.reported.saturating_add(1);
            let is_reported = memory.reported <= TAMPERING_REPORTS_MAX;
            context.alarms.raise(&*object, Tampering::Status, message, is_reported);
        }
        let is_due = plan(&object, interval, Timestamp::now()) == Op::Audit;
        if !is_due && !is_overwritten {
            return Outcome { object: None, memory, requeue: Requeue::After(interval) };
        }
        let done = match observe::observe(&context, &object).await {
            Ok(audited) => apply::apply(&context, &object, &audited).await,
            Err(error) => Err(error),
        };
        match done {
            Ok(written) => {
                memory.written = written.status.clone().map(|it| (version(&written.metadata), it));
                // The reply contains a spec that was changed meanwhile, which has not been audited.
                let is_outdated = written.metadata.generation != object.metadata.generation;
                let requeue = if is_outdated { Requeue::Now } else { Requeue::After(interval) };
                Outcome { object: Some(written), memory, requeue }
            }
            Err(error) => {
                tracing::warn!(policy = object.name_any(), %error, "the audit failed");
                Outcome { object: None, memory, requeue: Requeue::WithBackoff }
            }
        }
    }

    /// A change of policy wakes every object of its namespace at once.
    fn set_changed(context: &Context, objects: &mut dyn Iterator<Item = &Arc<AttestationPolicy>>) {
        let mut by_namespace: BTreeMap<String, Vec<Arc<AttestationPolicy>>> = BTreeMap::new();
        for object in objects {
            let namespace = object.namespace().unwrap_or_default();
            by_namespace.entry(namespace).or_default().push(object.clone());
        }
        // By name, as the API server lists them: a message about two policies that contradict each other must not
        // change its order from one reconcile to the next.
        for policies in by_namespace.values_mut() {
            policies.sort_by_key(|it| it.name_any());
        }
        let changed = context.policies.replace(by_namespace);
        context.wake_namespaces(changed.iter());
    }
}

impl Memory {
    /// Whether the object is later than the last write of the controller, with another status.
    fn is_overwritten(&self, object: &AttestationPolicy) -> bool {
        let later = self.written.as_ref().filter(|(ours, _)| *ours < version(&object.metadata));
        later.is_some_and(|(_, ours)| object.status.as_ref() != Some(ours))
    }
}

//! AttestationPolicies: known before anything is allocated, and audited while they stand.

mod apply;
mod observe;
mod plan;
mod status;

use std::collections::BTreeMap;
use std::sync::Arc;

use crds::{AttestationPolicy, AttestationPolicyStatus};
use jiff::Timestamp;
use kube::ResourceExt;
use own_writes::{TAMPERING_REPORTS_MAX, Tampering};

use self::plan::{Op, plan};
use crate::board::Wakes;
use crate::context::Context;
use crate::harness::{Controller, Pass, Turn};
use crate::line::Again;

pub(crate) struct PolicyController;

/// What is remembered of a policy between passes.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The status as we wrote it last, with its version.
    written: Option<(u64, AttestationPolicyStatus)>,
    told: u8,
}

impl Controller for PolicyController {
    type Object = AttestationPolicy;
    type Memory = Memory;

    fn wakes(context: &Context) -> &Wakes {
        &context.policy_wakes
    }

    async fn pass(
        context: Arc<Context>,
        object: Arc<AttestationPolicy>,
        mut memory: Memory,
        _turn: Turn,
    ) -> Pass<Self> {
        let interval = context.settings.audit_interval;
        let is_overwritten = context.backends.attestd.is_some() && memory.is_overwritten(&object);
        if is_overwritten {
            let message = "its status was written by somebody else";
            memory.told = memory.told.saturating_add(1);
            let is_told = memory.told <= TAMPERING_REPORTS_MAX;
            context.alarms.raise(&*object, Tampering::Status, message, is_told);
        }
        let is_due = plan(&object, interval, Timestamp::now()) == Op::Audit;
        if !is_due && !is_overwritten {
            return Pass { object: None, memory, again: Again::After(interval) };
        }
        let done = match observe::observe(&context, &object).await {
            Ok(seen) => apply::apply(&context, &object, &seen).await,
            Err(error) => Err(error),
        };
        match done {
            Ok(written) => {
                memory.written = written.status.clone().map(|it| (version(&written), it));
                // A spec that was changed meanwhile is in what came back, and has not been audited.
                let is_outdated = written.metadata.generation != object.metadata.generation;
                let again = if is_outdated { Again::Now } else { Again::After(interval) };
                Pass { object: Some(written), memory, again }
            }
            Err(error) => {
                tracing::warn!(policy = object.name_any(), %error, "no audit");
                Pass { object: None, memory, again: Again::Failed }
            }
        }
    }

    /// A change of policy reaches every object of its namespace at once.
    fn all_known(context: &Context, objects: &mut dyn Iterator<Item = &Arc<AttestationPolicy>>) {
        let mut by_namespace: BTreeMap<String, Vec<Arc<AttestationPolicy>>> = BTreeMap::new();
        for object in objects {
            let namespace = object.namespace().unwrap_or_default();
            by_namespace.entry(namespace).or_default().push(object.clone());
        }
        // By name, as the API server lists them: which of two that contradict each other is named first
        // must not change from one look to the next.
        for policies in by_namespace.values_mut() {
            policies.sort_by_key(|it| it.name_any());
        }
        let changed = context.policies.replace(by_namespace);
        context.wake_namespaces(changed.iter());
    }
}

impl Memory {
    /// Whether what is shown is later than our last write, and says something else.
    fn is_overwritten(&self, object: &AttestationPolicy) -> bool {
        let later = self.written.as_ref().filter(|(ours, _)| *ours < version(object));
        later.is_some_and(|(_, ours)| object.status.as_ref() != Some(ours))
    }
}

fn version(object: &AttestationPolicy) -> u64 {
    object.resource_version().and_then(|it| it.parse().ok()).unwrap_or(0)
}

//! The one thing that stands most in the way of a Pod, with figures.

use std::collections::BTreeMap;

use model::{NodeName, ObjectRef, SchedulingSpec};
use rules::Reason;

use crate::engine::Engine;
use crate::evaluation::Evaluation;
use crate::explain::BINDER;
use crate::rejection::{Cause, NodesRejection, ObjectRejection, Rejection};
use crate::resource_units::Unit;

/// The one thing that stands most in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dominant {
    pub plugin: String,
    pub reason: String,
    pub object: Option<ObjectRef>,
    /// Amounts in thousandths of `unit`.
    pub needed_milli: u64,
    pub free_milli: u64,
    pub deficit_milli: u64,
    pub unit: String,
}

impl Dominant {
    pub(crate) fn plain(plugin: &str, reason: String) -> Self {
        Self {
            plugin: plugin.to_owned(),
            reason,
            object: None,
            needed_milli: 0,
            free_milli: 0,
            deficit_milli: 0,
            unit: String::new(),
        }
    }
}

pub(crate) fn dominant(
    engine: &Engine,
    scheduling: &SchedulingSpec,
    rejection: &Rejection,
    evaluation: &Evaluation,
) -> Dominant {
    match (rejection, evaluation) {
        (Rejection::Pod(hold), _) => Dominant::plain("Pod", hold.to_string()),
        (Rejection::Failed(failed), _) => Dominant::plain("Pod", failed.why.clone()),
        (Rejection::Binding(rejection), _) => Dominant::plain(BINDER, rejection.to_string()),
        (Rejection::Quarantined, _) => Dominant::plain("Pod", "quarantined".to_owned()),
        (Rejection::Object(rejection), _) => of_object(engine, rejection),
        (Rejection::Nodes(rejected), Evaluation::Rejected { nodes, .. }) => {
            of_nodes(engine, scheduling, rejected, nodes)
        }
        (Rejection::Nodes(rejected), _) => of_nodes(engine, scheduling, rejected, &BTreeMap::new()),
    }
}

fn of_object(engine: &Engine, rejection: &ObjectRejection) -> Dominant {
    let used = engine.observed.objects.get(&rejection.object);
    let used = used.and_then(|object| engine.ledger.object(&object.uid));
    let held_by = used.filter(|_| rejection.phase.is_some()).map_or(0, |used| used.users.len());
    let by = match held_by {
        0 => String::new(),
        // The message names the Pod already.
        _ if matches!(rejection.cause, Cause::InUse { .. }) => String::new(),
        1 => ", held by 1 Pod".to_owned(),
        pods => format!(", held by {pods} Pods"),
    };
    Dominant {
        object: Some(rejection.object.clone()),
        needed_milli: rejection.needed.unwrap_or_default().milli(),
        free_milli: rejection.free.milli(),
        deficit_milli: rejection.deficit().milli(),
        unit: rejection.object.kind.unit().to_owned(),
        ..Dominant::plain("Corridor", format!("{rejection}{by}"))
    }
}

/// The reason that most Nodes give.
fn of_nodes(
    engine: &Engine,
    scheduling: &SchedulingSpec,
    rejected: &NodesRejection,
    nodes: &BTreeMap<NodeName, Vec<Reason>>,
) -> Dominant {
    let Some((text, count)) = rejected.reasons.iter().max_by_key(|(_, count)| count.nodes) else {
        return Dominant::plain("", "no nodes available to schedule pods".to_owned());
    };
    let plugin = count.reason.plugin().to_string();
    let told = format!("{text}, on {} of {} nodes", count.nodes, nodes.len());
    let Reason::Insufficient { resource, .. } = &count.reason else {
        return Dominant::plain(&plugin, told);
    };
    let short = nodes.iter().filter(|(_, reasons)| {
        let lacks =
            |it: &Reason| matches!(it, Reason::Insufficient { resource: r, .. } if r == resource);
        reasons.iter().any(lacks)
    });
    let closest = short.map(|(name, _)| (engine.free_on(name, resource), name)).max();
    let Some((free, node)) = closest else { return Dominant::plain(&plugin, told) };
    let needed = scheduling.requests.asked.amount(resource);
    let deficit = needed.saturating_sub(free);
    let unit = Unit::of(resource);
    let tell = |amount| unit.tell(amount);
    let reason = format!(
        "{told}: needs {}, at most {} free ({node}), short by {}",
        tell(needed),
        tell(free),
        tell(deficit)
    );
    Dominant {
        needed_milli: unit.milli(needed),
        free_milli: unit.milli(free),
        deficit_milli: unit.milli(deficit),
        unit: unit.name().to_owned(),
        ..Dominant::plain(&plugin, reason)
    }
}

impl Engine {
    fn free_on(&self, name: &NodeName, resource: &str) -> i64 {
        let Some(node) = self.observed.cluster.nodes.get(name) else { return 0 };
        let requested =
            self.observed.cluster.pods_on(name).map(|pod| pod.requests.effective.amount(resource));
        let requested = requested.fold(0, i64::saturating_add);
        node.node.allocatable.amount(resource).saturating_sub(requested).max(0)
    }
}

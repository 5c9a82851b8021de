//! One attempt to place one Pod: the Pod itself, what it refers to, the Nodes, the reservation.

use std::sync::Arc;

use model::{Grant, Granted, Need, NodeName, Pod, PodSpec, PodUid, Reservable};

use crate::decision::Bind;
use crate::engine::Engine;
use crate::filters::{self, Ask, Candidate, NodeReason};
use crate::ledger::{Holder, Holding, NodeUse};
use crate::line::Rank;
use crate::queue::{Order, backoff_after};
use crate::record::Stage;
use crate::rejection::{Cause, NodesRejection, Rejection, WakeOn};
use crate::scores;

/// What all Nodes say of a Pod.
pub(crate) struct Survey<'a> {
    /// The Nodes with the highest score, in order of name.
    pub best: Vec<&'a NodeName>,
    pub feasible: usize,
    pub rejected: NodesRejection,
}

impl Engine {
    pub(crate) fn attempt(&mut self, uid: &PodUid) -> Option<Bind> {
        let record = self.pods.get_mut(uid)?;
        if record.report.in_flight {
            self.move_to(uid, Stage::Reporting);
            return None;
        }
        self.trying = Some(uid.clone());
        let (pod, order, woken_for) = (record.pod.clone(), record.order, record.woken_for.take());
        let mut released = Vec::new();
        for need in &pod.spec.needs {
            if self.objects.with_line(&need.object, |line| line.mark_tried(order)) {
                released.push(&need.object);
            }
        }
        let decision = match self.verdict(order, &pod.spec) {
            Ok((node, objects)) => Some(self.reserve(&pod, order, node, &objects)),
            Err(rejection) => {
                self.hold(uid, rejection);
                None
            }
        };
        // What woke this Pod may be left over: then it is the next one's turn.
        for object in released.into_iter().filter(|_| decision.is_none()) {
            self.release_line(object);
        }
        let took = decision.as_ref().map(|bind| &bind.node);
        if let Some(node) = woken_for.filter(|node| took != Some(node)) {
            self.wake_parked(&node);
        }
        self.trying = None;
        decision
    }

    /// Where the Pod goes and what it is granted, or why nowhere.
    fn verdict(
        &mut self,
        order: Order,
        spec: &PodSpec,
    ) -> Result<(NodeName, Vec<Reservable>), Rejection> {
        if let Some(hold) = &spec.hold {
            return Err(Rejection::Pod(hold.clone()));
        }
        let objects = self.gate(order, spec).map_err(Rejection::Object)?;
        let Survey { best, rejected, .. } =
            self.survey(Ask { shape: &spec.shape, objects: &objects });
        let best: Vec<NodeName> = best.into_iter().cloned().collect();
        let objects = objects.into_iter().cloned().collect();
        match best.len() {
            0 => Err(Rejection::Nodes(rejected)),
            ties => Ok((best[self.rng.below(ties)].clone(), objects)),
        }
    }

    pub(crate) fn survey(&self, ask: Ask<'_>) -> Survey<'_> {
        let unused = NodeUse::default();
        let mut survey =
            Survey { best: Vec::new(), feasible: 0, rejected: NodesRejection::default() };
        let mut best_score = i64::MIN;
        let mut reasons: Vec<NodeReason> = Vec::new();
        for (name, node) in &self.nodes {
            let used = self.ledger.node(name).unwrap_or(&unused);
            let candidate = Candidate { node, used };
            filters::rejections(ask, candidate, &mut reasons);
            for reason in &reasons {
                survey.rejected.count(reason, name);
            }
            if !reasons.is_empty() {
                continue;
            }
            survey.feasible += 1;
            let score = scores::total(ask, candidate);
            if score > best_score {
                best_score = score;
                survey.best.clear();
            }
            if score == best_score {
                survey.best.push(name);
            }
        }
        survey
    }

    pub(crate) fn fits_some_node(&self, spec: &PodSpec) -> bool {
        let objects = self.objects_of(spec);
        self.survey(Ask { shape: &spec.shape, objects: &objects }).feasible > 0
    }

    /// Takes what the Pod was promised, all of it or nothing. The limits are asserted again: were
    /// one exceeded, the fault would be ours, and everything taken is put back before anybody can
    /// see it.
    fn reserve(
        &mut self,
        pod: &Arc<Pod>,
        order: Order,
        node: NodeName,
        objects: &[Reservable],
    ) -> Bind {
        let mut grant = Grant::default();
        for object in objects {
            let amount = pod.spec.need_of(&object.object).map(Need::reserves).unwrap_or_default();
            let granted = Granted { uid: object.uid.clone(), amount };
            *grant.part_mut(object.object.kind) = Some(granted);
        }
        let holding = Holding {
            holder: Holder { uid: pod.uid.clone(), key: pod.key.clone() },
            node: node.clone(),
            shape: pod.spec.shape.clone(),
            granted: grant.parts().cloned().collect(),
        };
        let mark = self.ledger.mark();
        self.ledger.take(&holding);
        if let Some(limit) = self.exceeded(&node, pod, objects) {
            self.ledger.rollback(mark);
            unreachable!("placing {} on {node} would exceed {limit}", pod.key);
        }
        self.ledger.commit();
        self.holdings_changed(&holding);
        self.count_passes(pod, order);
        self.stats.attempts_scheduled += 1;
        if let Some(record) = self.pods.get_mut(&pod.uid) {
            record.rejection = None;
            record.holding = Some(holding);
        }
        self.move_to(&pod.uid, Stage::Binding { outcome_unclear: false });
        let handles = objects.iter().filter_map(|it| Some((it.object.kind, it.handle.clone()?)));
        let has_references = !objects.is_empty();
        Bind {
            pod: pod.key.clone(),
            uid: pod.uid.clone(),
            node,
            spec: pod.spec.clone(),
            resource_version: has_references.then(|| pod.resource_version.clone()),
            handles: handles.collect(),
            ticket_hashes: objects.iter().filter_map(|it| it.ticket_hash.clone()).collect(),
            grant: has_references.then_some(grant),
        }
    }

    /// Whoever waits before this Pod for bandwidth that it took was passed.
    fn count_passes(&mut self, pod: &Pod, order: Order) {
        let now = self.now;
        for need in pod.spec.needs.iter().filter(|need| !need.reserves().is_zero()) {
            let object = &need.object;
            let over_quota = |namespace: &str| self.is_over_quota(object, namespace);
            let rank = Rank { over_quota: over_quota(&pod.spec.namespace), order };
            let passed =
                self.objects.line(object).and_then(|line| line.head_before(rank, &over_quota));
            if let Some(head) = passed {
                self.objects.with_line(object, |line| line.count_pass(head.rank.order, now));
            }
        }
    }

    /// The limit that is exceeded with what has just been taken for the Pod, if any.
    fn exceeded(&self, node: &NodeName, pod: &Pod, objects: &[Reservable]) -> Option<String> {
        let (has, used) = (self.nodes.get(node)?, self.ledger.node(node)?);
        let asked = &pod.spec.shape.requests;
        if used.pods > has.pods_max
            || asked.cpu_milli > 0 && used.requests.cpu_milli > has.allocatable.cpu_milli
            || asked.memory_bytes > 0 && used.requests.memory_bytes > has.allocatable.memory_bytes
        {
            return Some(format!("the allocatable resources of node {node}"));
        }
        let over = objects.iter().find(|object| {
            let reserves = pod.spec.need_of(&object.object).is_some_and(|it| it.amount.is_some());
            reserves && self.ledger.reserved(&object.uid) > object.floor()
        });
        over.map(|object| format!("the floor of {}", object.object))
    }

    /// Puts the Pod where its wake-up will find it.
    fn hold(&mut self, uid: &PodUid, rejection: Rejection) {
        self.stats.attempts_unschedulable += 1;
        let to = match rejection.wake_on() {
            WakeOn::PodChange => Stage::Held,
            WakeOn::ObjectFree { object, .. } => Stage::InLine(object),
            WakeOn::ObjectSpecChange { object }
            | WakeOn::ObjectSpecChangeOrReady { object }
            | WakeOn::PolicyChange { object } => Stage::Aside(object),
            WakeOn::NodeFits => Stage::Parked,
        };
        let Some(record) = self.pods.get_mut(uid) else { return };
        if to == Stage::Parked {
            record.failures = record.failures.saturating_add(1);
            record.not_before = self.now + backoff_after(record.failures);
        }
        if let Rejection::Object(rejection) = &rejection
            && matches!(rejection.cause, Cause::KeptForHead { .. })
        {
            self.kept.insert(rejection.object.clone(), self.room_changes);
        }
        record.rejection = Some(rejection);
        self.reports.held(self.now, uid, &record.report);
        self.move_to(uid, to);
    }
}

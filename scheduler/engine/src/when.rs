//! When a Pod could start, as far as others have declared their ends. Changes nothing.
//!
//! It is a lower bound, not a promise: the Pod does not start before those ends, unless a Pod ends earlier than
//! declared. An estimate that rests on more than declared ends says so.

use model::{
    Amount, ClusterNode, ClusterPod, DeclaredEnd, NodeName, ObjectKey, ObjectRef, Reservable,
};
use rules::{Reason, Rules, filter_without};

use crate::engine::Engine;
use crate::queue::{BandwidthQueue, Rank};
use crate::record::{Record, Stage};
use crate::rejection::{Cause, ObjectRejection};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Not before this time. `None`: nothing that is known leads there.
    pub earliest_unix_s: Option<i64>,
    pub basis: Vec<Basis>,
    pub confidence: Confidence,
}

/// What an estimate rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Basis {
    Fact(String),
    /// A Pod says when it ends.
    End {
        pod: ObjectKey,
        end: DeclaredEnd,
        /// Where that makes room.
        node: Option<NodeName>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Declared ends alone lead there.
    Declared,
    /// Other Pods come first, and when they end is unknown.
    Partial,
    Unknown,
}

impl Confidence {
    pub fn name(self) -> &'static str {
        match self {
            Self::Declared => "declared",
            Self::Partial => "partial",
            Self::Unknown => "unknown",
        }
    }
}

/// Ends named in a basis; more would not be read.
const ENDS_NAMED_MAX: usize = 8;

impl Estimate {
    fn unknown(why: String) -> Self {
        let basis = vec![Basis::Fact(why)];
        Self { earliest_unix_s: None, basis, confidence: Confidence::Unknown }
    }

    fn now(now_unix_s: i64, why: &str) -> Self {
        Self {
            earliest_unix_s: Some(now_unix_s),
            basis: vec![Basis::Fact(why.to_owned())],
            confidence: Confidence::Declared,
        }
    }

    /// Both have to come true.
    fn and(self, other: Self) -> Self {
        let confidence = self.confidence.max(other.confidence);
        let both = self.earliest_unix_s.zip(other.earliest_unix_s);
        Self {
            earliest_unix_s: both.map(|(one, two)| one.max(two)),
            basis: self.basis.into_iter().chain(other.basis).collect(),
            confidence,
        }
    }
}

/// A Pod that says when it ends, and what is free then.
struct Ending<'a, T> {
    pod: &'a ObjectKey,
    end: &'a DeclaredEnd,
    frees: T,
}

impl<T> Ending<'_, T> {
    fn basis(&self, node: Option<&NodeName>) -> Basis {
        Basis::End { pod: self.pod.clone(), end: *self.end, node: node.cloned() }
    }
}

impl Engine {
    /// `None` if the engine knows no such Pod.
    pub fn when(&self, pod: &ObjectKey, now_unix_s: i64) -> Option<Estimate> {
        let record = self.observed.pods.named(pod)?;
        let spec = &record.pod.spec;
        if !record.stage.is_waiting() {
            let state = match &record.stage {
                Stage::Bound => format!("it is bound to {}", record.node_name()),
                stage => format!("it is {}", stage.name()),
            };
            return Some(Estimate::unknown(state));
        }
        if let Some(hold) = &spec.hold {
            return Some(Estimate::unknown(format!("it waits for a change of its own: {hold}")));
        }
        let objects = match self.pre_filter(record.order, spec) {
            Ok(_) => Estimate::now(now_unix_s, "what it refers to is free now"),
            Err(rejection) => self.when_object(record, &rejection),
        };
        Some(objects.and(self.when_nodes(record, now_unix_s)))
    }

    fn when_object(&self, record: &Record, rejection: &ObjectRejection) -> Estimate {
        let object = &rejection.object;
        let ends_help = matches!(
            rejection.cause,
            Cause::Short
                | Cause::KeptForHead { .. }
                | Cause::HeldForNominated { .. }
                | Cause::InUse { .. }
        );
        let Some(seen) = self.observed.objects.get(object).filter(|_| ends_help) else {
            return Estimate::unknown(format!("nothing declares when this changes: {rejection}"));
        };
        let (ahead, ahead_amount) = self.ahead_of(record, object);
        let own = record.pod.spec.need_of(object).map(model::Need::reserves).unwrap_or_default();
        let mut missing = own.saturating_add(ahead_amount).saturating_sub(rejection.free);
        let mut basis = Vec::new();
        let mut confidence = Confidence::Declared;
        if ahead > 0 {
            let unit = object.kind.unit();
            let asks = format!("{ahead} Pods before it in line ask {ahead_amount} {unit} together");
            basis.push(Basis::Fact(asks));
            confidence = Confidence::Partial;
        }
        let (endings, undeclared) = self.endings_of(seen);
        for (index, ending) in endings.iter().enumerate() {
            missing = missing.saturating_sub(ending.frees);
            if index < ENDS_NAMED_MAX {
                basis.push(ending.basis(None));
            }
            // Of an object that only one may have, the first end is enough.
            if missing.is_zero() || seen.exclusive {
                let earliest_unix_s = Some(ending.end.at_unix_s);
                return Estimate { earliest_unix_s, basis, confidence };
            }
        }
        let silent = format!("{undeclared} Pods that use {object} do not declare their end");
        basis.push(Basis::Fact(silent));
        Estimate { earliest_unix_s: None, basis, confidence: Confidence::Unknown }
    }

    /// The Pods before it in the object's queue: how many, and what they ask together.
    fn ahead_of(&self, record: &Record, object: &ObjectRef) -> (usize, Amount) {
        let over_quota = |namespace: &str| self.is_over_quota(object, namespace);
        let rank_of = |record: &Record| Rank {
            over_quota: over_quota(&record.pod.spec.namespace),
            order: record.order,
        };
        let own = rank_of(record);
        let queue = self.observed.objects.queue(object);
        let waiting = queue.into_iter().flat_map(BandwidthQueue::waiting);
        let before = waiting
            .filter_map(|(_, uid)| self.observed.pods.get(uid))
            .filter(|other| rank_of(other) < own)
            .filter_map(|other| other.pod.spec.need_of(object));
        before.fold((0, Amount::ZERO), |(count, sum), need| {
            (count + 1, sum.saturating_add(need.reserves()))
        })
    }

    /// The users of an object that declare their end, the earliest first, and how many do not.
    fn endings_of(&self, object: &Reservable) -> (Vec<Ending<'_, Amount>>, usize) {
        let users = self.ledger.object(&object.uid).into_iter().flat_map(|used| &used.users);
        let (mut endings, mut undeclared) = (Vec::new(), 0);
        for record in users.filter_map(|(uid, _)| self.observed.pods.get(uid)) {
            let granted = record.reservation.iter().flat_map(|reservation| &reservation.granted);
            let frees = granted.filter(|granted| granted.uid == object.uid).map(|it| it.amount);
            match &record.pod.declared_end {
                None => undeclared += 1,
                Some(end) => endings.push(Ending {
                    pod: &record.pod.key,
                    end,
                    frees: frees.fold(Amount::ZERO, Amount::saturating_add),
                }),
            }
        }
        endings.sort_by_key(|ending| (ending.end.at_unix_s, ending.pod));
        (endings, undeclared)
    }

    /// When the first Node has room, by the declared ends of the Pods on it.
    fn when_nodes(&self, record: &Record, now_unix_s: i64) -> Estimate {
        let key = record.park_key();
        if self.evaluate(&key).feasible() > 0 {
            return Estimate::now(now_unix_s, "a node has room for it now");
        }
        let (rules, to_place) = (self.rules_of(&key.profile), self.pod_to_place(&key));
        let nodes = self.observed.cluster.nodes.values();
        let candidates = nodes.filter_map(|node| self.when_node(rules, &to_place, node));
        let first = candidates.min_by_key(|(at, _)| *at);
        let Some((at, basis)) = first else {
            return Estimate::unknown("no declared end makes room for it on a node".to_owned());
        };
        let others_first = self.observed.pods.values().any(|other| {
            other.order < record.order && matches!(other.stage, Stage::Parked | Stage::Backoff)
        });
        let confidence = if others_first { Confidence::Partial } else { Confidence::Declared };
        Estimate { earliest_unix_s: Some(at), basis, confidence }
    }

    /// When one Node has room, if declared ends are all it takes.
    fn when_node(
        &self,
        rules: &Rules,
        to_place: &ClusterPod,
        node: &ClusterNode,
    ) -> Option<(i64, Vec<Basis>)> {
        let name = &node.node.name;
        let on_node = self.observed.cluster.pods_on(name).filter_map(|placed| {
            let end = self.observed.pods.get(&placed.uid)?.pod.declared_end.as_ref()?;
            Some(Ending { pod: &placed.key, end, frees: placed })
        });
        let mut endings: Vec<_> = on_node.collect();
        endings.sort_by_key(|ending| (ending.end.at_unix_s, ending.pod));
        let (mut gone, mut basis) = (Vec::new(), Vec::new());
        for ending in endings {
            gone.push(ending.frees);
            if basis.len() < ENDS_NAMED_MAX {
                basis.push(ending.basis(Some(name)));
            }
            let reasons = filter_without(rules, &self.observed.cluster, to_place, node, &gone);
            if reasons.is_empty() {
                return Some((ending.end.at_unix_s, basis));
            }
            if reasons.iter().any(Reason::is_unresolvable) {
                return None;
            }
        }
        None
    }
}

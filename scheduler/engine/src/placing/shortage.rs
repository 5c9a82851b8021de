//! The resource that most Nodes lack for a class that fits nowhere, and whether any Node has room for it. A change of a
//! Node concerns only the classes that it has room for now.

use std::sync::Arc;

use super::node_fit::NodeFit;
use super::plugins::node_resources_fit::ResourceNeeds;
use super::pod_classes::{PodClass, PodClassKey};
use super::rows::{Extras, Row};
use super::score_cache::Context;
use super::{Placing, View, few_named};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    /// CPU, memory, ephemeral storage.
    pub asked: [i64; 3],
    /// What the most Nodes do not have, and how much of it is asked for.
    pub lacking: Lacking,
    pub amount: i64,
    /// Whether some Node has room for it, or would have without Pods of a lower priority: then something else is in its way.
    pub has_room: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lacking {
    /// Not known, or no resource.
    Nothing,
    /// For another Pod.
    Places,
    /// CPU, memory, ephemeral storage, in this order.
    Standard(usize),
    Scalar(Arc<str>),
    /// Claims that let it be on some Node.
    Claims,
}

impl Shortage {
    /// Its volumes keep it from every Node.
    pub const CLAIMS: Self =
        Self { asked: [0; 3], lacking: Lacking::Claims, amount: 0, has_room: false };

    /// Of which nothing is known.
    pub const UNKNOWN: Self =
        Self { asked: [0; 3], lacking: Lacking::Nothing, amount: 0, has_room: true };
}

impl Placing {
    /// Pods below `level` do not count.
    pub fn shortage(&mut self, view: View<'_>, key: &PodClassKey, level: i32) -> Shortage {
        if few_named(view.rules, key).is_some() {
            return Shortage::UNKNOWN;
        }
        let Some(id) = self.ready(view, key) else { return Shortage::UNKNOWN };
        let Some(class) = self.classes.get(id) else { return Shortage::UNKNOWN };
        class.shortage(
            Context { view, index: &self.index, groups: self.statics.of(class.static_id) },
            level,
        )
    }
}

impl PodClass {
    fn shortage(&self, context: Context<'_>, level: i32) -> Shortage {
        let Some(ResourceNeeds { asked, scalars }) = self.node_fit.needs() else {
            return Shortage::UNKNOWN;
        };
        let rows = &context.index.rows;
        let mut lacks = vec![0_usize; 4 + scalars.len()];
        let mut has_room = false;
        for slot in rows.slots().filter(|slot| context.groups.group(*slot).is_some()) {
            has_room |= self.node_fit.lacks(rows.row(slot), rows.extras(slot), level, &mut lacks);
        }
        let most = lacks.iter().enumerate().max_by_key(|(_, nodes)| **nodes);
        let (lacking, amount) = match most {
            None | Some((_, 0)) => (Lacking::Nothing, 0),
            Some((index @ 0..3, _)) => (Lacking::Standard(index), asked[index]),
            Some((3, _)) => (Lacking::Places, 1),
            Some((index, _)) => {
                let (name, amount) = &scalars[index - 4];
                (Lacking::Scalar(name.clone()), *amount)
            }
        };
        Shortage { asked: *asked, lacking, amount, has_room }
    }
}

impl NodeFit {
    /// Counts what the Node does not have, were there no Pods below `level`; returns whether it has all.
    fn lacks(&self, row: &Row, extras: &Extras, level: i32, lacks: &mut [usize]) -> bool {
        let Some(ResourceNeeds { asked, scalars }) = self.needs() else { return true };
        // How much they hold is not looked up: to suppose that it is everything is enough here.
        let is_emptied = level > row.lowest_priority || row.is_extreme();
        let is_short = |wanted: i64, has: i64, requested: i64| {
            wanted > 0 && wanted > if is_emptied { has } else { has.saturating_sub(requested) }
        };
        let mut has_all = true;
        let mut count = |index: usize, is_lacking: bool| {
            lacks[index] += usize::from(is_lacking);
            has_all &= !is_lacking;
        };
        for (index, asked) in asked.iter().enumerate() {
            count(index, is_short(*asked, row.allocatable[index], row.requested[index]));
        }
        count(3, is_short(1, row.pods_max, row.pods));
        for (index, (name, wanted)) in scalars.iter().enumerate() {
            let (has, requested) = extras.scalar(name);
            count(4 + index, is_short(*wanted, has, requested));
        }
        has_all
    }
}

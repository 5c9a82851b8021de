//! The room on a Node for Pods of each priority: what is left beside those that they cannot send away.

use std::collections::BTreeMap;

use model::{ClusterNode, ClusterPod};
use rules::Cluster;

use crate::placing::{Lacking, is_extreme, three};

pub(super) struct FreeCapacities<'a> {
    cluster: &'a Cluster,
    node: &'a ClusterNode,
    known: BTreeMap<i32, FreeCapacity<'a>>,
}

pub(super) struct FreeCapacity<'a> {
    node: &'a ClusterNode,
    standard: [i64; 3],
    places: i64,
    staying: Vec<&'a ClusterPod>,
    /// Sums could stop at the largest number: then everything is supposed to fit.
    is_extreme: bool,
}

impl<'a> FreeCapacities<'a> {
    pub fn on(cluster: &'a Cluster, node: &'a ClusterNode) -> Self {
        Self { cluster, node, known: BTreeMap::new() }
    }

    /// Beside Pods of this priority and above.
    pub fn above(&mut self, level: i32) -> &FreeCapacity<'a> {
        let Self { cluster, node, known } = self;
        known.entry(level).or_insert_with(|| {
            let pods = cluster.pods_on(&node.node.name);
            let staying: Vec<_> = pods.filter(|pod| pod.priority >= level).collect();
            let mut standard = three(&node.node.allocatable);
            for pod in &staying {
                for (free, requested) in standard.iter_mut().zip(three(&pod.requests.effective)) {
                    *free = free.saturating_sub(requested);
                }
            }
            let count = i64::try_from(staying.len()).unwrap_or(i64::MAX);
            let places = node.node.pods_max.saturating_sub(count);
            let is_extreme = cluster.pods_on(&node.node.name).any(is_extreme);
            FreeCapacity { node, standard, places, staying, is_extreme }
        })
    }
}

impl FreeCapacity<'_> {
    pub fn of(&self, lacking: &Lacking) -> i64 {
        match lacking {
            // Nothing on a Node helps.
            Lacking::Claims => i64::MIN,
            _ if self.is_extreme => i64::MAX,
            Lacking::Nothing => i64::MAX,
            Lacking::Places => self.places,
            Lacking::Standard(index) => self.standard[*index],
            Lacking::Scalar(name) => {
                let has = self.node.node.allocatable.amount(name);
                let requested = self.staying.iter().map(|pod| pod.requests.effective.amount(name));
                requested.fold(has, i64::saturating_sub)
            }
        }
    }

    /// What is not asked for is not checked.
    pub fn holds(&self, asked: [i64; 3]) -> bool {
        let is_there = |(wanted, free): (i64, i64)| wanted <= 0 || wanted <= free;
        self.is_extreme || self.places > 0 && asked.into_iter().zip(self.standard).all(is_there)
    }
}

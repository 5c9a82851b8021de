//! What a Pod makes of the Nodes themselves: labels, taints, names, images. Pods that differ only in what they
//! take or whom they want to be near share it.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    ClusterNode, Effect, FeatureNames, Labels, NodeAffinity, NodeName, NodeSelector, Reach, Shape,
    Taint, Toleration,
};
use oracle::{Cluster, Plugin, Reason, Rules};

use super::FixedMap;
use super::Ground;
use super::log::Position;
use super::rows::Slot;

pub(super) type StaticId = usize;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct StaticKey {
    profile: Arc<str>,
    tolerations: Vec<Toleration>,
    node_selector: Labels,
    node_affinity: NodeAffinity,
    reach: Vec<Reach>,
    required_features: FeatureNames,
    images: Vec<Arc<str>>,
}

/// What Nodes have in common of which the Pod makes the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Taints that prefer it elsewhere and that it does not tolerate.
    pub taints: i64,
    /// The weights of the preferences that the Node meets.
    pub preference: i64,
    /// Which of its images are there, one bit for each.
    pub images: u32,
    /// The last of all rules: what Pods on the Node say against it comes first.
    pub lacks_features: bool,
}

/// What a Node is to the Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Open(Group),
    Rejected(Vec<Reason>),
}

/// A Node that is gone.
const GONE: u16 = u16::MAX;
/// Rejections are numbered from here, groups below.
const REJECTED: u16 = 1 << 15;

#[derive(Debug)]
pub(super) struct Static {
    key: StaticKey,
    /// The Nodes that its affinity names, when it names any.
    named: Option<BTreeSet<NodeName>>,
    stays_on_cordoned: bool,
    of_node: Vec<u16>,
    groups: Vec<Group>,
    rejections: Vec<Vec<Reason>>,
    at: Option<Position>,
}

/// More groups, or rejections, than this are not told apart.
const NUMBERS_MAX: usize = 1 << 12;

#[derive(Debug, Default)]
pub(super) struct Statics {
    ids: FixedMap<StaticKey, StaticId>,
    all: Vec<Static>,
}

/// Bits of [`Group::images`].
pub(super) const IMAGES_MAX: usize = 32;

impl Statics {
    pub fn id(&mut self, profile: &Arc<str>, shape: &Shape, reach: &[Reach]) -> StaticId {
        let key = StaticKey {
            profile: profile.clone(),
            tolerations: shape.tolerations.clone(),
            node_selector: shape.node_selector.clone(),
            node_affinity: shape.node_affinity.clone(),
            reach: reach.to_vec(),
            required_features: shape.required_features.clone(),
            images: shape.images.clone(),
        };
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        self.ids.insert(key.clone(), self.all.len());
        let required = key.node_affinity.required.as_ref();
        self.all.push(Static {
            named: required.and_then(NodeSelector::named_nodes),
            stays_on_cordoned: key.stays_on_cordoned(),
            key,
            of_node: Vec::new(),
            groups: Vec::new(),
            rejections: Vec::new(),
            at: None,
        });
        self.all.len() - 1
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn of(&self, id: StaticId) -> &Static {
        &self.all[id]
    }

    /// Brings it up to date. False: there are too many sorts of Nodes to tell apart.
    pub fn sync(
        &mut self,
        id: StaticId,
        rules: &Rules,
        cluster: &Cluster,
        ground: &Ground,
    ) -> bool {
        let it = &mut self.all[id];
        let changes = it.at.and_then(|at| ground.node_log.since(at));
        if let Some(changes) = changes {
            for (slot, _) in changes {
                it.judge(slot, rules, cluster, ground);
            }
        } else {
            it.of_node.clear();
            it.groups.clear();
            it.rejections.clear();
            it.of_node.resize(ground.rows.len(), GONE);
            let images = it.key.images_by_slot(rules, ground);
            for (name, node) in &cluster.nodes {
                if let Some(slot) = ground.rows.slot_of(name) {
                    let verdict = it.verdict(node, rules, images[slot as usize]);
                    it.write(slot, verdict);
                }
            }
        }
        it.at = Some(ground.node_log.end());
        it.groups.len().max(it.rejections.len()) < NUMBERS_MAX
    }
}

impl Static {
    /// How many groups there are; the number of a group is below this.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// `None`: the Node is rejected for what it is, or gone.
    pub fn group(&self, slot: Slot) -> Option<usize> {
        let number = self.of_node.get(slot as usize).copied().unwrap_or(GONE);
        (number < REJECTED).then_some(usize::from(number))
    }

    /// Why the Node is rejected for what it is.
    pub fn rejection(&self, slot: Slot) -> Option<&[Reason]> {
        let number = self.of_node.get(slot as usize).copied()?;
        let number = usize::from(number.checked_sub(REJECTED)?);
        self.rejections.get(number).map(Vec::as_slice)
    }

    fn judge(&mut self, slot: Slot, rules: &Rules, cluster: &Cluster, ground: &Ground) {
        if self.of_node.len() <= slot as usize {
            self.of_node.resize(slot as usize + 1, GONE);
        }
        let node = ground.rows.name(slot).and_then(|name| cluster.nodes.get(name));
        match node {
            Some(node) => {
                let verdict = self.verdict(node, rules, self.key.images_on(slot, rules, ground));
                self.write(slot, verdict);
            }
            None => self.of_node[slot as usize] = GONE,
        }
    }

    fn write(&mut self, slot: Slot, verdict: Verdict) {
        let number = match verdict {
            Verdict::Open(group) => number_of(&mut self.groups, group),
            Verdict::Rejected(reasons) => REJECTED + number_of(&mut self.rejections, reasons),
        };
        self.of_node[slot as usize] = number;
    }

    fn verdict(&self, node: &ClusterNode, rules: &Rules, images: u32) -> Verdict {
        match self.rejects(node, rules) {
            Some(reasons) => Verdict::Rejected(reasons),
            None => Verdict::Open(self.key.group(node, rules, images)),
        }
    }

    /// By the rules that come before all that look at Pods, in kube-scheduler's order.
    fn rejects(&self, node: &ClusterNode, rules: &Rules) -> Option<Vec<Reason>> {
        let of = &node.node;
        let StaticKey { tolerations, node_selector, node_affinity, reach, .. } = &self.key;
        let required = node_affinity.required.as_ref();
        if rules.filters_by(Plugin::NodeAffinity)
            && self.named.as_ref().is_some_and(|named| !named.contains(&of.name))
        {
            return Some(vec![Reason::NotNamed { nominee_rejected_by: None }]);
        }
        if rules.filters_by(Plugin::NodeUnschedulable)
            && of.unschedulable
            && !self.stays_on_cordoned
        {
            return Some(vec![Reason::NodeUnschedulable]);
        }
        if rules.filters_by(Plugin::TaintToleration)
            && model::first_untolerated(&of.taints, tolerations).is_some()
        {
            return Some(vec![Reason::UntoleratedTaint]);
        }
        if rules.filters_by(Plugin::NodeAffinity) {
            let added = rules.added_affinity.required.as_ref();
            if added.is_some_and(|selector| !selector.matches(&of.name, &of.labels)) {
                return Some(vec![Reason::EnforcedNodeAffinity]);
            }
            let accepts = of.matches(node_selector)
                && required.is_none_or(|selector| selector.matches(&of.name, &of.labels));
            if !accepts {
                return Some(vec![Reason::NodeAffinity]);
            }
        }
        if !rules.filters_by(Plugin::Corridor) {
            return None;
        }
        let beyond = reach.iter().filter(|it| !of.matches(&it.node_selector));
        let beyond: Vec<Reason> =
            beyond.map(|it| Reason::OutOfReach { object: it.object.clone() }).collect();
        (!beyond.is_empty()).then_some(beyond)
    }
}

fn number_of<T: PartialEq>(known: &mut Vec<T>, wanted: T) -> u16 {
    let found = known.iter().position(|it| *it == wanted);
    let number = found.unwrap_or(known.len());
    if number < NUMBERS_MAX && found.is_none() {
        known.push(wanted);
    }
    u16::try_from(number.min(NUMBERS_MAX)).unwrap_or(0)
}

impl StaticKey {
    fn stays_on_cordoned(&self) -> bool {
        let cordon = Taint {
            key: "node.kubernetes.io/unschedulable".into(),
            value: "".into(),
            effect: Effect::NoSchedule,
        };
        self.tolerations.iter().any(|toleration| toleration.tolerates(&cordon))
    }

    fn group(&self, node: &ClusterNode, rules: &Rules, images: u32) -> Group {
        let of = &node.node;
        let mut group =
            Group { taints: 0, preference: 0, images, lacks_features: self.lacks(node, rules) };
        if rules.scores_by(Plugin::TaintToleration) {
            let unwanted = of.taints.iter().filter(|taint| {
                taint.effect == Effect::PreferNoSchedule
                    && !self.tolerations.iter().any(|it| it.tolerates(taint))
            });
            group.taints = i64::try_from(unwanted.count()).unwrap_or(i64::MAX);
        }
        if rules.scores_by(Plugin::NodeAffinity) {
            let added = rules.added_affinity.preference(&of.name, &of.labels);
            group.preference =
                added.saturating_add(self.node_affinity.preference(&of.name, &of.labels));
        }
        group
    }

    /// The images that make a difference, with their bits.
    fn scored_images(&self, rules: &Rules) -> impl Iterator<Item = (usize, &Arc<str>)> {
        let images = self.images.iter().take(IMAGES_MAX).enumerate();
        images.filter(|_| rules.scores_by(Plugin::ImageLocality))
    }

    fn images_on(&self, slot: Slot, rules: &Rules, ground: &Ground) -> u32 {
        let there = |(bit, image)| u32::from(ground.images.has(slot, image)) << bit;
        self.scored_images(rules).map(there).fold(0, std::ops::BitOr::bitor)
    }

    /// The same of all Nodes, from the images' side: most are on few of them.
    fn images_by_slot(&self, rules: &Rules, ground: &Ground) -> Vec<u32> {
        let mut by_slot = vec![0; ground.rows.len()];
        for (bit, image) in self.scored_images(rules) {
            for slot in ground.images.holders(image) {
                by_slot[slot as usize] |= 1 << bit;
            }
        }
        by_slot
    }

    fn lacks(&self, node: &ClusterNode, rules: &Rules) -> bool {
        rules.filters_by(Plugin::NodeDeclaredFeatures)
            && !self.required_features.is_subset(&node.declared_features)
    }
}

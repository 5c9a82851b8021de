//! Node filter classes, refined by images: most Pods have an image of their own, and most images are on few Nodes, so
//! only Nodes that have one of them differ from their filter class.

use std::sync::Arc;

use rules::{Cluster, Plugin, Reason, Rules};

use super::FixedMap;
use super::NodeIndex;
use super::log::Position;
use super::node_filter_classes::{NodeFilterClass, NodeFilterClassId, NodeFilterClasses};
use super::pod_classes::PodClassKey;
use super::rows::Slot;

pub(super) type StaticId = usize;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct StaticKey {
    filter_class: NodeFilterClassId,
    images: Vec<Arc<str>>,
}

/// Nodes that are equally good for the Pod as far as they themselves go.
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

/// A Node that is gone.
pub(super) const GONE: u16 = u16::MAX;
/// Rejections are numbered from here, groups below.
pub(super) const REJECTED: u16 = 1 << 15;
/// More groups, or rejections, than this are not told apart.
pub(super) const NUMBERS_MAX: usize = 1 << 12;
/// Bits of [`Group::images`].
pub(super) const IMAGES_MAX: usize = 32;

#[derive(Debug)]
struct Static {
    key: StaticKey,
    /// `None`: none of its images is anywhere, and each Node is as its filter class says.
    with_images: Option<WithImages>,
    /// How often all Nodes were told apart anew.
    numberings: u32,
    /// The same of the filter class, when this was last up to date.
    class_numberings: u32,
    at: Option<Position>,
}

/// The Nodes of a filter class, told apart by images.
#[derive(Debug, Default)]
struct WithImages {
    of_node: Vec<u16>,
    groups: Vec<Group>,
}

#[derive(Debug, Default)]
pub(super) struct Statics {
    filter_classes: NodeFilterClasses,
    ids: FixedMap<StaticKey, StaticId>,
    all: Vec<Static>,
    /// What those with images take in memory, about.
    bytes: usize,
}

/// The group of each Node, or the reasons for which it is rejected.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeGroups<'a> {
    of_node: &'a [u16],
    groups: &'a [Group],
    rejections: &'a [Vec<Reason>],
    numbering: Numbering,
}

/// Numbers of groups mean the same only while this is the same.
pub(super) type Numbering = (u32, u32);

impl Statics {
    pub fn id(&mut self, of: &PodClassKey) -> StaticId {
        let filter_class = self.filter_classes.id(of);
        let key = StaticKey { filter_class, images: of.scheduling.images.clone() };
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        self.ids.insert(key.clone(), self.all.len());
        let (with_images, numberings, class_numberings) = (None, 0, 0);
        self.all.push(Static { key, with_images, numberings, class_numberings, at: None });
        self.all.len() - 1
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// What is known of Nodes, about.
    pub fn bytes(&self) -> usize {
        self.bytes + self.filter_classes.bytes
    }

    pub fn of(&self, id: StaticId) -> NodeGroups<'_> {
        let it = &self.all[id];
        let NodeFilterClass { of_node, groups, rejections, numberings, .. } =
            self.filter_classes.of(it.key.filter_class);
        let numbering = (*numberings, it.numberings);
        match &it.with_images {
            Some(WithImages { of_node, groups }) => {
                NodeGroups { of_node, groups, rejections, numbering }
            }
            None => NodeGroups { of_node, groups, rejections, numbering },
        }
    }

    /// Brings it up to date. False: there are too many groups of Nodes to tell apart.
    pub fn sync(
        &mut self,
        id: StaticId,
        rules: &Rules,
        cluster: &Cluster,
        index: &NodeIndex,
    ) -> bool {
        let it = &mut self.all[id];
        let now = Some(index.node_log.end());
        if it.at == now {
            return it.is_told_apart();
        }
        if !self.filter_classes.sync(it.key.filter_class, rules, cluster, index) {
            return false;
        }
        let filter_class = self.filter_classes.of(it.key.filter_class);
        let is_same_class = it.class_numberings == filter_class.numberings;
        let changes = it.at.filter(|_| is_same_class).and_then(|at| index.node_log.since(at));
        let is_followed = match (&mut it.with_images, changes) {
            (Some(own), Some(changes)) => {
                own.of_node.resize(filter_class.of_node.len(), GONE);
                for (slot, _) in changes {
                    let number = filter_class.of_node[slot as usize];
                    own.write(slot, number, it.key.images_on(slot, rules, index), filter_class);
                }
                it.is_told_apart()
            }
            (with_images, _) => with_images.is_none() && !it.key.is_anywhere(rules, index),
        };
        // Also if numbers are used up: some may be of groups that no Node is in any more.
        if !is_followed {
            if it.with_images.is_none() {
                self.bytes += filter_class.of_node.len() * size_of::<u16>();
            }
            it.with_images = Some(it.key.told_apart(filter_class, rules, index));
            it.numberings = it.numberings.wrapping_add(1);
        }
        (it.at, it.class_numberings) = (now, filter_class.numberings);
        it.is_told_apart()
    }
}

impl Static {
    /// False: there are more groups than numbers.
    fn is_told_apart(&self) -> bool {
        self.with_images.as_ref().is_none_or(|own| own.groups.len() < NUMBERS_MAX)
    }
}

impl<'a> NodeGroups<'a> {
    /// The number of a group is the place where it stands here.
    pub fn all(self) -> &'a [Group] {
        self.groups
    }

    /// The group of all Nodes that are in one, if it is the same for all: others may be known of which no Node is any more.
    pub fn only_group(self) -> Option<usize> {
        if self.groups.len() <= 1 {
            return Some(0);
        }
        let mut numbers = self.of_node.iter().copied().filter(|number| *number < REJECTED);
        let first = numbers.next().unwrap_or(0);
        numbers.all(|number| number == first).then_some(first.into())
    }

    pub fn numbering(self) -> Numbering {
        self.numbering
    }

    /// The group or rejection of the Node, as a number.
    pub fn number(self, slot: Slot) -> u16 {
        self.of_node.get(slot as usize).copied().unwrap_or(GONE)
    }

    /// `None`: the Node is rejected for what it is, or gone.
    pub fn group(self, slot: Slot) -> Option<usize> {
        let number = self.number(slot);
        (number < REJECTED).then_some(usize::from(number))
    }

    /// Why the Node is rejected for what it is.
    pub fn rejection(self, slot: Slot) -> Option<&'a [Reason]> {
        let number = self.of_node.get(slot as usize).copied()?;
        let number = usize::from(number.checked_sub(REJECTED)?);
        self.rejections.get(number).map(Vec::as_slice)
    }
}

impl WithImages {
    fn write(&mut self, slot: Slot, number: u16, images: u32, filter_class: &NodeFilterClass) {
        let group = filter_class.groups.get(usize::from(number)).filter(|_| number < REJECTED);
        self.of_node[slot as usize] = match group {
            Some(group) => number_of(&mut self.groups, Group { images, ..*group }),
            None => number,
        };
    }
}

pub(super) fn number_of<T: PartialEq>(known: &mut Vec<T>, wanted: T) -> u16 {
    let found = known.iter().position(|it| *it == wanted);
    let number = found.unwrap_or(known.len());
    if number < NUMBERS_MAX && found.is_none() {
        known.push(wanted);
    }
    u16::try_from(number.min(NUMBERS_MAX)).unwrap_or(0)
}

impl StaticKey {
    /// The images that make a difference, with their bits.
    fn scored_images(&self, rules: &Rules) -> impl Iterator<Item = (usize, &Arc<str>)> {
        let images = self.images.iter().take(IMAGES_MAX).enumerate();
        images.filter(|_| rules.scores_by(Plugin::ImageLocality))
    }

    fn is_anywhere(&self, rules: &Rules, index: &NodeIndex) -> bool {
        self.scored_images(rules).any(|(_, image)| index.images.holders(image).next().is_some())
    }

    fn images_on(&self, slot: Slot, rules: &Rules, index: &NodeIndex) -> u32 {
        let there = |(bit, image)| u32::from(index.images.has(slot, image)) << bit;
        self.scored_images(rules).map(there).fold(0, std::ops::BitOr::bitor)
    }

    /// All Nodes, from the images' side: most are on few of them.
    fn told_apart(
        &self,
        filter_class: &NodeFilterClass,
        rules: &Rules,
        index: &NodeIndex,
    ) -> WithImages {
        let mut by_slot = vec![0; index.rows.len()];
        for (bit, image) in self.scored_images(rules) {
            for slot in index.images.holders(image) {
                by_slot[slot as usize] |= 1 << bit;
            }
        }
        let mut own =
            WithImages { of_node: vec![GONE; filter_class.of_node.len()], groups: Vec::new() };
        for ((slot, number), images) in index.rows.slots().zip(&filter_class.of_node).zip(by_slot) {
            own.write(slot, *number, images, filter_class);
        }
        own
    }
}

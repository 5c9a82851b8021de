//! Classes of Pods that fit on the same Nodes equally well, each with everything that is kept for it.

use std::sync::Arc;

use model::{ClusterPod, NodeSelector, Reach, SchedulingSpec};
use rules::{DeviceNeeds, Plugin, Rules, VolumeNeeds};

use super::FixedMap;
use super::NodeIndex;
use super::View;
use super::constraints::Constraints;
use super::devices::DeviceRoom;
use super::diagnosis::Diagnosis;
use super::log::Position;
use super::node_fit::NodeFit;
use super::plugins::are_quick;
use super::score_cache::ScoreCache;
use super::statics::{IMAGES_MAX, StaticId, Statics};
use super::unschedulable_cache::UnschedulableCache;

pub(super) type PodClassId = usize;

/// Pods with the same key fit on the same Nodes, equally well.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PodClassKey {
    pub profile: Arc<str>,
    pub namespace: Arc<str>,
    pub scheduling: Arc<SchedulingSpec>,
    pub reach: Vec<Reach>,
    pub volumes: Option<Arc<VolumeNeeds>>,
    pub devices: Option<Arc<DeviceNeeds>>,
}

impl PodClassKey {
    /// `None` for what refers to objects: where they can be used changes.
    fn address(&self) -> Option<Address> {
        let Self { profile, namespace, scheduling, reach, volumes, devices } = self;
        let address = [
            Arc::as_ptr(profile).addr(),
            Arc::as_ptr(namespace).addr(),
            Arc::as_ptr(scheduling).addr(),
        ];
        reach.is_empty().then(|| (address, volumes.clone(), devices.clone()))
    }

    /// The Pod as the rules see it, but for its claims.
    pub fn as_pod(&self) -> ClusterPod {
        let pod = ClusterPod::with_scheduling(self.namespace.clone(), self.scheduling.clone());
        ClusterPod { reach: self.reach.clone(), ..pod }
    }
}

#[derive(Debug)]
pub(super) struct PodClass {
    pub pod: ClusterPod,
    pub node_fit: NodeFit,
    pub static_id: StaticId,
    pub constraints: Constraints,
    pub volumes: Option<Arc<VolumeNeeds>>,
    /// Whether each Node has room for them, as of the last change that the score cache has followed: scores are computed
    /// more often than this changes.
    pub has_volume_room: Vec<bool>,
    pub devices: Option<DeviceRoom>,
    /// Whether it, or the profile for it, prefers some Nodes by their labels.
    pub has_preferences: bool,
    pub score_cache: Option<ScoreCache>,
    /// When the constraints were counted; since then, only the score cache follows changes.
    pub counted_at: Option<Position>,
    /// Whether it was used before: most classes are used once.
    pub is_known: bool,
    /// When it was last asked about, in questions.
    pub used_at: u64,
    /// How often Services and controllers had changed when it was made.
    pub selectors_at: u64,
    /// Why it fitted on no Node, and as of when: many Pods of a class wait for the same.
    pub diagnosis: Option<(Position, Diagnosis)>,
    /// Whether it was diagnosed before: then the result is worth keeping.
    pub was_diagnosed: bool,
    /// The diagnosis of each Node, if it ever fitted on none.
    pub unschedulable: Option<UnschedulableCache>,
}

/// Where the parts of a key are in memory, and the needs of its claims, which are found anew for each Pod. Most Pods of
/// a class share them, and then nothing else is looked at.
type Address = ([usize; 3], Option<Arc<VolumeNeeds>>, Option<Arc<DeviceNeeds>>);
/// So many addresses for each class: Pods that share nothing must not fill the memory.
const ADDRESSES_PER_CLASS_MAX: usize = 4;

#[derive(Debug, Default)]
pub(super) struct PodClasses {
    /// By keys without the labels that no selector reads.
    ids: FixedMap<PodClassKey, PodClassId>,
    all: Vec<Option<Known>>,
    free: Vec<PodClassId>,
    /// The key is kept with it, so that nothing else comes to lie there.
    by_address: FixedMap<Address, (PodClassKey, PodClassId)>,
    /// When addresses were noted, in what selectors read.
    readers_at: u64,
}

#[derive(Debug)]
struct Known {
    key: PodClassKey,
    /// `None`: only the plain rules know what to make of it.
    class: Option<PodClass>,
}

impl PodClasses {
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn id(
        &mut self,
        key: &PodClassKey,
        view: View<'_>,
        index: &mut NodeIndex,
        statics: &mut Statics,
    ) -> PodClassId {
        let readers = &index.counters.readers;
        if self.readers_at != readers.grown() {
            self.readers_at = readers.grown();
            self.by_address.clear();
        }
        let address = key.address();
        if let Some((_, id)) = address.as_ref().and_then(|address| self.by_address.get(address)) {
            return *id;
        }
        let projected = PodClassKey { scheduling: readers.project(&key.scheduling), ..key.clone() };
        let known = self.ids.get(&projected).copied();
        let id = known.unwrap_or_else(|| {
            let class = PodClass::new(&projected, view, index, statics);
            self.add(Known { key: projected, class })
        });
        if let Some(address) = address {
            if self.by_address.len() >= ADDRESSES_PER_CLASS_MAX * self.len() {
                self.by_address.clear();
            }
            self.by_address.insert(address, (key.clone(), id));
        }
        id
    }

    fn add(&mut self, known: Known) -> PodClassId {
        let id = self.free.pop().unwrap_or(self.all.len());
        if id == self.all.len() {
            self.all.push(None);
        }
        self.ids.insert(known.key.clone(), id);
        self.all[id] = Some(known);
        id
    }

    pub fn get(&self, id: PodClassId) -> Option<&PodClass> {
        self.all[id].as_ref()?.class.as_ref()
    }

    pub fn get_mut(&mut self, id: PodClassId) -> Option<&mut PodClass> {
        self.all[id].as_mut()?.class.as_mut()
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut PodClass> {
        self.all.iter_mut().flatten().filter_map(|known| known.class.as_mut())
    }

    /// Forgets all others.
    pub fn retain(&mut self, is_kept: impl Fn(Option<&PodClass>) -> bool) {
        let Self { ids, all, free, by_address, .. } = self;
        for (id, place) in all.iter_mut().enumerate() {
            if let Some(known) = place.take_if(|it| !is_kept(it.class.as_ref())) {
                ids.remove(&known.key);
                free.push(id);
            }
        }
        by_address.retain(|_, (_, id)| all[*id].is_some());
    }
}

impl PodClass {
    fn new(
        key: &PodClassKey,
        view: View<'_>,
        index: &mut NodeIndex,
        statics: &mut Statics,
    ) -> Option<Self> {
        let pod = key.as_pod();
        let rules = view.rules;
        if is_odd(rules, &pod) {
            return None;
        }
        let node_fit = NodeFit::new(rules, &pod.scheduling)?;
        let constraints = Constraints::new(rules, view.cluster, &pod, index).ok()?;
        let needs = key.volumes.as_deref();
        index.is_storage_read |= needs.is_some_and(VolumeNeeds::look_at_storage);
        let scores_affinity = rules.scores_by(Plugin::NodeAffinity);
        Some(Self {
            node_fit,
            static_id: statics.id(key),
            constraints,
            volumes: key.volumes.clone(),
            has_volume_room: Vec::new(),
            devices: key.devices.as_ref().map(|needs| DeviceRoom::new(needs, index)),
            has_preferences: scores_affinity
                && !(pod.node_affinity.preferred.is_empty()
                    && rules.added_affinity.preferred.is_empty()),
            score_cache: None,
            counted_at: Some(index.log.end()),
            is_known: false,
            used_at: 0,
            selectors_at: index.selectors_changes,
            diagnosis: None,
            was_diagnosed: false,
            unschedulable: None,
            pod,
        })
    }

    pub fn has_claims(&self) -> bool {
        self.volumes.is_some() || self.devices.is_some()
    }

    /// Whether a [`super::rows::Row`] and its group tell all that there is to know of a Node.
    pub fn asks_for_room_only(&self) -> bool {
        let looks_at_others = !self.constraints.are_soft() || self.has_claims();
        !looks_at_others && self.node_fit.look_at_rows_only()
    }

    /// Counts all that the constraints look at, unless nothing has changed since that was done. `None`:
    /// they cannot be parsed.
    pub fn count_anew(&mut self, view: View<'_>, index: &mut NodeIndex) -> Option<()> {
        let now = Some(index.log.end());
        if self.counted_at != now {
            self.constraints = Constraints::new(view.rules, view.cluster, &self.pod, index).ok()?;
            self.counted_at = now;
        }
        Some(())
    }
}

/// What cannot be parsed, is out of all proportion, or is judged by a plugin without a quick form.
pub(super) fn is_odd(rules: &Rules, pod: &ClusterPod) -> bool {
    let named = pod.node_affinity.required.as_ref().and_then(NodeSelector::each_named);
    named.is_some_and(|mut named| named.next().is_none())
        || pod.pod_affinity.error().is_some()
        || pod.node_affinity.preference_error().is_some()
        || rules.added_affinity.preference_error().is_some()
        || pod.images.len() > IMAGES_MAX
        || !are_quick(rules)
}

//! The version of each object that was handed to the engine: older ones are dropped, and a relist
//! shows what is gone.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use engine::WatchedKind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use model::{ObjectKey, Pod, PodUid};

use crate::shared::Pool;

/// One for each kind: versions of different kinds have nothing to do with each other.
#[derive(Debug, Default)]
pub(crate) struct Trackers {
    by_kind: BTreeMap<WatchedKind, Tracker>,
}

impl Trackers {
    pub fn of(&mut self, kind: WatchedKind) -> &mut Tracker {
        self.by_kind.entry(kind).or_default()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Tracker {
    known: HashMap<ObjectKey, Known>,
    namespaces: Pool<str>,
    /// A list comes in.
    is_relisting: bool,
    lists_begun: u64,
    /// While a resync is under way.
    resync: Option<Resync>,
}

#[derive(Debug, Default)]
struct Resync {
    /// The UIDs of those that went meanwhile.
    tombstones: HashSet<Arc<str>>,
    new_objects: usize,
}

#[derive(Debug)]
struct Known {
    version: Version,
    /// The last list that showed it, or after which it came.
    list: u64,
    /// Whether this version, or an earlier one, could be read.
    was_readable: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub uid: Arc<str>,
    /// Versions of one resource grow, so they can be compared. 0 when it is no number.
    number: u64,
}

/// What became known to be gone.
pub(crate) type Gone = (ObjectKey, Version);

impl Tracker {
    /// An object from the watch. Whether it is news; what it replaces, if its UID is another.
    pub fn seen(&mut self, meta: &ObjectMeta) -> (bool, Option<Gone>) {
        let (key, version, list) = (key(meta), version(meta), self.lists_begun);
        let Some(known) = self.known.get_mut(&key) else {
            self.insert(key, version, true);
            return (true, None);
        };
        (known.list, known.was_readable) = (list, true);
        if known.version.number > version.number {
            return (false, None);
        }
        let is_same = known.version.uid == version.uid;
        let before = std::mem::replace(&mut known.version, version);
        (true, (!is_same).then_some((key, before)))
    }

    fn insert(&mut self, key: ObjectKey, version: Version, was_readable: bool) {
        let key = ObjectKey { namespace: self.namespaces.share(key.namespace), name: key.name };
        self.known.insert(key, Known { version, list: self.lists_begun, was_readable });
    }

    /// An object that is there and cannot be read. Whether an earlier version of it could: then that one
    /// goes on to count.
    pub fn unreadable(&mut self, meta: &ObjectMeta) -> bool {
        let (key, version, list) = (key(meta), version(meta), self.lists_begun);
        let known = self.known.get_mut(&key).filter(|known| known.version.uid == version.uid);
        if let Some(known) = known {
            known.list = list;
            return known.was_readable;
        }
        self.insert(key, version, false);
        false
    }

    /// An object from the reply to a call of ours. It is no news if the watch has shown its end:
    /// a late reply must not bring back a deleted object.
    pub fn replied(&mut self, meta: &ObjectMeta) -> bool {
        let version = version(meta);
        match self.known.get_mut(&key(meta)) {
            Some(Known { version: known, .. })
                if known.uid == version.uid && known.number <= version.number =>
            {
                known.number = version.number;
                true
            }
            _ => false,
        }
    }

    pub fn gone(&mut self, meta: &ObjectMeta) -> Option<Gone> {
        let key = key(meta);
        let known = self.known.get(&key)?;
        if Some(&*known.version.uid) != meta.uid.as_deref() {
            return None;
        }
        let Known { version, .. } = self.known.remove(&key)?;
        self.add_tombstone(&version);
        Some((key, version))
    }

    /// The Pod goes by the names that are kept here, and not by copies of them.
    pub fn lend_names(&self, pod: &mut Pod) {
        if let Some((key, known)) = self.known.get_key_value(&pod.key)
            && *known.version.uid == *pod.uid.as_str()
        {
            pod.key = key.clone();
            pod.uid = PodUid::from(known.version.uid.clone());
        }
    }

    fn add_tombstone(&mut self, version: &Version) {
        if let Some(resync) = &mut self.resync {
            resync.tombstones.insert(version.uid.clone());
        }
    }

    pub fn begin_list(&mut self) {
        self.is_relisting = true;
        self.lists_begun += 1;
    }

    /// How many lists were begun, once the first has ended and while none is coming in.
    pub fn lists(&self) -> Option<u64> {
        let listed = self.lists_begun > 0 && !self.is_relisting;
        listed.then_some(self.lists_begun)
    }

    /// A list beside the watch begins.
    pub fn begin_resync(&mut self) {
        self.resync = Some(Resync::default());
    }

    /// An object from that list. Whether it is news: not if the watch knows a later version or has
    /// seen its end.
    pub fn resynced(&mut self, meta: &ObjectMeta) -> bool {
        let (key, version) = (key(meta), version(meta));
        let known = self.known.get(&key);
        let is_older = known.is_some_and(|known| known.version.number >= version.number);
        let Some(resync) = self.resync.as_mut().filter(|_| !is_older) else { return false };
        if resync.tombstones.contains(&version.uid) {
            return false;
        }
        resync.new_objects += 1;
        self.insert(key, version, true);
        true
    }

    /// How many were news.
    pub fn end_resync(&mut self) -> usize {
        self.resync.take().unwrap_or_default().new_objects
    }

    /// The list is complete: what it did not show is gone.
    pub fn end_list(&mut self) -> Vec<Gone> {
        if !std::mem::take(&mut self.is_relisting) {
            return Vec::new();
        }
        let list = self.lists_begun;
        let gone = self.known.extract_if(|_, known| known.list != list);
        let mut gone: Vec<Gone> = gone.map(|(key, known)| (key, known.version)).collect();
        gone.sort_by(|a, b| a.0.cmp(&b.0));
        for (_, version) in &gone {
            self.add_tombstone(version);
        }
        gone
    }
}

pub(crate) fn key(meta: &ObjectMeta) -> ObjectKey {
    ObjectKey::new(
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default(),
    )
}

fn version(meta: &ObjectMeta) -> Version {
    let number = version_number(meta.resource_version.as_deref()).unwrap_or(0);
    Version { uid: meta.uid.as_deref().unwrap_or_default().into(), number }
}

pub(crate) fn version_number(resource_version: Option<&str>) -> Option<u64> {
    resource_version?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(name: &str, uid: &str, version: u64) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.into()),
            uid: Some(uid.into()),
            resource_version: Some(version.to_string()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn older_versions_are_no_news_and_equal_ones_are() {
        let mut tracker = Tracker::default();
        assert!(tracker.seen(&meta("p", "u", 5)).0);
        assert!(!tracker.seen(&meta("p", "u", 4)).0);
        assert!(tracker.seen(&meta("p", "u", 5)).0);
    }

    #[test]
    fn a_late_reply_does_not_bring_back_the_dead() {
        let mut tracker = Tracker::default();
        tracker.seen(&meta("p", "u", 5));
        assert!(tracker.replied(&meta("p", "u", 6)));
        assert!(!tracker.replied(&meta("p", "u", 5)));
        assert!(tracker.gone(&meta("p", "u", 7)).is_some());
        assert!(!tracker.replied(&meta("p", "u", 8)));
    }

    #[test]
    fn a_successor_under_the_same_name_replaces_and_survives_the_old_ones_end() {
        let mut tracker = Tracker::default();
        tracker.seen(&meta("p", "old", 5));
        let (new_objects, replaced) = tracker.seen(&meta("p", "new", 9));
        assert!(new_objects && replaced.is_some_and(|(_, version)| &*version.uid == "old"));
        assert_eq!(tracker.gone(&meta("p", "old", 8)), None);
        assert!(tracker.replied(&meta("p", "new", 10)));
    }

    #[test]
    fn a_resync_shows_new_objects_and_none_that_are_gone() {
        let mut tracker = Tracker::default();
        assert_eq!(tracker.lists(), None);
        tracker.begin_list();
        tracker.seen(&meta("a", "1", 1));
        tracker.seen(&meta("b", "2", 5));
        assert_eq!(tracker.lists(), None, "its list is still coming in");
        tracker.end_list();
        assert_eq!(tracker.lists(), Some(1));
        tracker.begin_resync();
        tracker.gone(&meta("a", "1", 9));
        assert!(!tracker.resynced(&meta("a", "1", 8)), "gone since");
        assert!(!tracker.resynced(&meta("b", "2", 4)), "older than what is known");
        assert!(tracker.resynced(&meta("b", "2", 6)));
        assert!(tracker.resynced(&meta("c", "3", 7)), "the watch has not shown it yet");
        assert_eq!(tracker.end_resync(), 2);
        assert!(!tracker.resynced(&meta("d", "4", 8)), "no resync is under way");
        assert_eq!(tracker.seen(&meta("c", "3", 7)), (true, None));
    }

    #[test]
    fn what_could_never_be_read_has_no_good_version_however_often_it_comes() {
        let mut tracker = Tracker::default();
        assert!(!tracker.unreadable(&meta("p", "u", 5)));
        assert!(!tracker.unreadable(&meta("p", "u", 6)));
        tracker.seen(&meta("p", "u", 7));
        assert!(tracker.unreadable(&meta("p", "u", 8)));
        assert!(!tracker.unreadable(&meta("p", "other", 9)), "another object under its name");
    }

    #[test]
    fn what_a_relist_does_not_show_is_gone() {
        let mut tracker = Tracker::default();
        tracker.seen(&meta("a", "1", 1));
        tracker.seen(&meta("b", "2", 2));
        tracker.begin_list();
        tracker.seen(&meta("b", "2", 2));
        let gone: Vec<String> =
            tracker.end_list().into_iter().map(|(key, _)| key.name.to_string()).collect();
        assert_eq!(gone, ["a"]);
        assert!(tracker.end_list().is_empty());
    }
}

//! All Pods that are known, by their UID.

use std::ops::Index;

use model::PodUid;

use crate::placing::FixedMap;
use crate::record::Record;

/// Looked up by a hash, which is quicker than by order when there are many. Whoever walks over all of them in a
/// way that could show asks for [`Self::sorted`].
#[derive(Debug, Default)]
pub(crate) struct Records {
    by_uid: FixedMap<PodUid, Record>,
}

impl Records {
    pub fn get(&self, uid: &PodUid) -> Option<&Record> {
        self.by_uid.get(uid)
    }

    pub fn get_mut(&mut self, uid: &PodUid) -> Option<&mut Record> {
        self.by_uid.get_mut(uid)
    }

    pub fn contains_key(&self, uid: &PodUid) -> bool {
        self.by_uid.contains_key(uid)
    }

    pub fn insert(&mut self, uid: PodUid, record: Record) {
        self.by_uid.insert(uid, record);
    }

    pub fn remove(&mut self, uid: &PodUid) -> Option<Record> {
        self.by_uid.remove(uid)
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.by_uid.len()
    }

    /// In no order that means anything.
    pub fn values(&self) -> impl Iterator<Item = &Record> {
        self.by_uid.values()
    }

    pub fn sorted(&self) -> Vec<(&PodUid, &Record)> {
        let mut all: Vec<(&PodUid, &Record)> = self.by_uid.iter().collect();
        all.sort_unstable_by_key(|(uid, _)| *uid);
        all
    }

    pub fn into_sorted(self) -> Vec<(PodUid, Record)> {
        let mut all: Vec<(PodUid, Record)> = self.by_uid.into_iter().collect();
        all.sort_unstable_by(|(uid, _), (other, _)| uid.cmp(other));
        all
    }
}

impl Index<&PodUid> for Records {
    type Output = Record;

    fn index(&self, uid: &PodUid) -> &Record {
        &self.by_uid[uid]
    }
}

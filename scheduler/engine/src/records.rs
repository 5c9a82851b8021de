//! All Pods that are known, by their UID and by their name.

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use model::{ObjectKey, PodUid};

use crate::record::Record;

/// The index of a record.
type RecordIndex = u32;

/// Looked up by a hash, which is quicker than by order when there are many. The tables hold indexes only: the keys
/// are in the records. A walk whose order could become visible uses [`Self::sorted`].
#[derive(Debug, Default)]
pub(crate) struct Records {
    slots: Vec<Option<Box<Record>>>,
    free: Vec<RecordIndex>,
    by_uid: HashTable<RecordIndex>,
    by_key: HashTable<RecordIndex>,
    hasher: FixedState,
    /// The last lookup by `get_mut`: most often the next is the same. It keeps the UID itself, so that no other can be
    /// allocated at the same address.
    last: Option<(PodUid, RecordIndex)>,
}

impl Records {
    pub fn get(&self, uid: &PodUid) -> Option<&Record> {
        at(&self.slots, self.slot_of(uid)?)
    }

    pub fn get_mut(&mut self, uid: &PodUid) -> Option<&mut Record> {
        let slot = self.slot_of(uid)?;
        if !self.last.as_ref().is_some_and(|(last, _)| last.is_same(uid)) {
            self.last = Some((uid.clone(), slot));
        }
        self.slots.get_mut(slot as usize)?.as_deref_mut()
    }

    /// The Pod that bears this name now.
    pub fn named(&self, key: &ObjectKey) -> Option<&Record> {
        let is_it =
            |slot: &RecordIndex| at(&self.slots, *slot).is_some_and(|it| it.pod.key == *key);
        let slot = self.by_key.find(self.hasher.hash_one(key), is_it)?;
        at(&self.slots, *slot)
    }

    pub fn contains_key(&self, uid: &PodUid) -> bool {
        self.slot_of(uid).is_some()
    }

    /// Neither the UID nor the name may be known yet.
    pub fn insert(&mut self, record: Record) {
        let Self { slots, free, by_uid, by_key, hasher, .. } = self;
        let (uid, key) = (hasher.hash_one(&record.pod.uid), hasher.hash_one(&record.pod.key));
        let slot = free.pop().unwrap_or_else(|| {
            slots.push(None);
            RecordIndex::try_from(slots.len() - 1).expect("a cluster has fewer than 2^32 Pods")
        });
        slots[slot as usize] = Some(Box::new(record));
        let hash =
            |slot: &RecordIndex| at(slots, *slot).map_or(0, |it| hasher.hash_one(&it.pod.uid));
        by_uid.insert_unique(uid, slot, hash);
        let hash =
            |slot: &RecordIndex| at(slots, *slot).map_or(0, |it| hasher.hash_one(&it.pod.key));
        by_key.insert_unique(key, slot, hash);
    }

    pub fn remove(&mut self, uid: &PodUid) -> Option<Record> {
        let slot = self.slot_of(uid)?;
        self.last = None;
        let record = *self.slots.get_mut(slot as usize)?.take()?;
        let Self { free, by_uid, by_key, hasher, .. } = self;
        for (table, hash) in
            [(by_uid, hasher.hash_one(uid)), (by_key, hasher.hash_one(&record.pod.key))]
        {
            if let Ok(entry) = table.find_entry(hash, |other| *other == slot) {
                entry.remove();
            }
        }
        free.push(slot);
        Some(record)
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.by_uid.len()
    }

    /// In no order that means anything.
    pub fn values(&self) -> impl Iterator<Item = &Record> {
        self.slots.iter().filter_map(Option::as_deref)
    }

    pub fn sorted(&self) -> Vec<(&PodUid, &Record)> {
        let mut all: Vec<_> = self.values().map(|record| (&record.pod.uid, record)).collect();
        all.sort_unstable_by_key(|(uid, _)| *uid);
        all
    }

    pub fn into_sorted(self) -> Vec<Record> {
        let mut all: Vec<Record> = self.slots.into_iter().flatten().map(|record| *record).collect();
        all.sort_unstable_by(|one, other| one.pod.uid.cmp(&other.pod.uid));
        all
    }

    fn slot_of(&self, uid: &PodUid) -> Option<RecordIndex> {
        if let Some((_, slot)) = self.last.as_ref().filter(|(last, _)| last.is_same(uid)) {
            return Some(*slot);
        }
        let is_it =
            |slot: &RecordIndex| at(&self.slots, *slot).is_some_and(|it| it.pod.uid == *uid);
        self.by_uid.find(self.hasher.hash_one(uid), is_it).copied()
    }
}

fn at(slots: &[Option<Box<Record>>], slot: RecordIndex) -> Option<&Record> {
    slots.get(slot as usize)?.as_deref()
}

#[cfg(test)]
impl std::ops::Index<&PodUid> for Records {
    type Output = Record;

    fn index(&self, uid: &PodUid) -> &Record {
        self.get(uid).unwrap()
    }
}

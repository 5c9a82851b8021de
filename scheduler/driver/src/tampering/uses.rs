//! What the driver has written into the status of objects: `inUse` and its conditions.

use std::collections::BTreeMap;

use crds::{TAMPERINGS_TOLD_MAX, Tampering};
use model::{ObjectKind, ObjectRef, ObjectUid};

use super::Alarm;
use crate::act::Condition;
use crate::tracker::version_number;
use crate::wire::WireObjectCondition;

/// What was written last about one object.
#[derive(Debug)]
struct Written {
    in_use: i64,
    conditions: Vec<(&'static str, bool)>,
    /// The object's version as the write left it; `None` while a write is under way.
    version: Option<u64>,
    told: u8,
}

#[derive(Debug, Default)]
pub(crate) struct UseGuard {
    written: BTreeMap<ObjectUid, Written>,
    pub(super) noticed: Vec<(Alarm, bool)>,
}

/// One look at an object's status, as far as the driver writes it.
pub(crate) struct SeenUse<'a> {
    pub object: &'a ObjectRef,
    pub uid: &'a ObjectUid,
    pub version: Option<&'a str>,
    pub in_use: Option<i64>,
    pub conditions: &'a [WireObjectCondition],
}

impl UseGuard {
    pub fn writes(&mut self, uid: &ObjectUid, in_use: usize, conditions: &[Condition]) {
        let in_use = i64::try_from(in_use).unwrap_or(i64::MAX);
        let conditions = conditions.iter().map(|it| (it.name, it.status)).collect();
        let told = self.written.get(uid).map_or(0, |written| written.told);
        self.written.insert(uid.clone(), Written { in_use, conditions, version: None, told });
    }

    pub fn wrote(&mut self, uid: &ObjectUid, version: Option<u64>) {
        if let Some(written) = self.written.get_mut(uid) {
            written.version = version;
        }
    }

    pub fn gone(&mut self, uid: &ObjectUid) {
        self.written.remove(uid);
    }

    /// Returns whether somebody else has written what is ours, so that it must be written anew.
    pub fn sees(&mut self, seen: &SeenUse<'_>) -> bool {
        let Some(written) = self.written.get_mut(seen.uid) else { return false };
        let is_later = written
            .version
            .zip(version_number(seen.version))
            .is_some_and(|(ours, shown)| shown > ours);
        let status_of = |name: &str| seen.conditions.iter().find(|it| it.condition_type == name);
        let is_ours = seen.in_use == Some(written.in_use)
            && OURS.iter().all(|name| {
                let ours = written.conditions.iter().find(|(it, _)| it == name).map(|it| it.1);
                ours == status_of(name).map(|it| it.status == "True")
            });
        if !is_later || is_ours {
            return false;
        }
        written.told = written.told.saturating_add(1);
        let of = match seen.object.kind {
            ObjectKind::Corridor => "Corridor",
            ObjectKind::MemoryBundle => "MemoryBundle",
        };
        let alarm = Alarm {
            kind: Tampering::Status,
            of,
            key: seen.object.key.clone(),
            uid: seen.uid.to_string(),
            message: "who uses it was written by somebody else; it is written anew",
        };
        self.noticed.push((alarm, written.told <= TAMPERINGS_TOLD_MAX));
        // Until the new write is answered there is nothing to compare with.
        written.version = None;
        true
    }
}

/// The conditions that are the driver's.
pub(crate) const OURS: [&str; 3] =
    [crds::condition::IN_USE, crds::condition::DRAINED, crds::condition::OVERSUBSCRIBED];

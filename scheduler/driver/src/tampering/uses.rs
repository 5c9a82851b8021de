//! What the driver has written into the status of objects: `inUse` and its conditions.

use std::collections::BTreeMap;

use model::{ObjectKind, ObjectRef, ObjectUid};
use own_writes::{TAMPERING_REPORTS_MAX, Tampering};

use super::Alarm;
use crate::act::Condition;
use crate::kinds::WireObjectCondition;
use crate::tracker::version_number;

/// What was written last about one object.
#[derive(Debug)]
struct Written {
    in_use: i64,
    conditions: Vec<(&'static str, bool)>,
    /// The object's version as the write left it; `None` while a write is under way.
    version: Option<u64>,
    /// The version of the last sight that says something else, while a write is under way: whether
    /// that was before or after the write, its answer tells.
    doubtful: Option<u64>,
    /// A condition stands there that is ours and that we do not say.
    has_stray: bool,
    reported: u8,
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
        let reported = self.written.get(uid).map_or(0, |written| written.reported);
        let written = Written {
            in_use,
            conditions,
            version: None,
            doubtful: None,
            has_stray: false,
            reported,
        };
        self.written.insert(uid.clone(), written);
    }

    /// Whether a condition has to be denied, though there is nothing to say about it.
    pub fn has_stray(&self, uid: &ObjectUid) -> bool {
        self.written.get(uid).is_some_and(|written| written.has_stray)
    }

    /// The write is answered, with this version if it succeeded. Returns whether another writer has
    /// overwritten it since.
    pub fn wrote(&mut self, object: &ObjectRef, uid: &ObjectUid, version: Option<u64>) -> bool {
        let Some(written) = self.written.get_mut(uid) else { return false };
        written.version = version;
        let is_later =
            written.doubtful.take().zip(version).is_some_and(|(shown, ours)| shown >= ours);
        is_later && self.notice(object, uid)
    }

    pub fn gone(&mut self, uid: &ObjectUid) {
        self.written.remove(uid);
    }

    /// Returns whether another writer has overwritten the status, so that it must be written anew.
    pub fn sees(&mut self, seen: &SeenUse<'_>) -> bool {
        let Some(written) = self.written.get_mut(seen.uid) else { return false };
        let Some(shown) = version_number(seen.version) else { return false };
        let status_of = |name: &str| seen.conditions.iter().find(|it| it.condition_type == name);
        let said = |name: &str| written.conditions.iter().find(|(it, _)| *it == name);
        let is_as_said = |name: &&str| {
            said(name).map(|it| it.1) == status_of(name).map(|it| it.status == "True")
        };
        let is_ours = seen.in_use == Some(written.in_use) && OURS.iter().all(is_as_said);
        let has_stray = OURS.iter().any(|name| status_of(name).is_some() && said(name).is_none());
        match written.version {
            _ if is_ours => {
                written.doubtful = None;
                false
            }
            None => {
                (written.doubtful, written.has_stray) = (Some(shown), has_stray);
                false
            }
            Some(ours) if shown < ours => false,
            Some(_) => {
                written.has_stray = has_stray;
                self.notice(seen.object, seen.uid)
            }
        }
    }

    fn notice(&mut self, object: &ObjectRef, uid: &ObjectUid) -> bool {
        let Some(written) = self.written.get_mut(uid) else { return false };
        written.reported = written.reported.saturating_add(1);
        // Until the new write is answered there is nothing to compare with.
        written.version = None;
        let of = match object.kind {
            ObjectKind::Corridor => "Corridor",
            ObjectKind::MemoryBundle => "MemoryBundle",
        };
        let alarm = Alarm {
            kind: Tampering::Status,
            of,
            key: object.key.clone(),
            uid: uid.to_string(),
            message: "who uses it was written by somebody else; it is written anew",
        };
        self.noticed.push((alarm, written.reported <= TAMPERING_REPORTS_MAX));
        true
    }
}

/// The conditions that are the driver's.
pub(crate) const OURS: [&str; 3] =
    [crds::condition::IN_USE, crds::condition::DRAINED, crds::condition::OVERSUBSCRIBED];

#[cfg(test)]
mod tests {
    use super::*;
    use model::ObjectKey;
    use serde_json::json;

    struct Play {
        guard: UseGuard,
        object: ObjectRef,
        uid: ObjectUid,
    }

    impl Play {
        /// One user was written, as version 5.
        fn begin() -> Self {
            let object = ObjectRef { kind: ObjectKind::Corridor, key: ObjectKey::new("a", "c") };
            let mut play = Self { guard: UseGuard::default(), object, uid: "u".into() };
            play.write();
            assert!(!play.guard.wrote(&play.object, &play.uid, Some(5)));
            play
        }

        fn write(&mut self) {
            let said =
                |name, status| Condition { name, status, since: jiff::Timestamp::UNIX_EPOCH };
            let conditions =
                [said(crds::condition::IN_USE, true), said(crds::condition::OVERSUBSCRIBED, false)];
            self.guard.writes(&self.uid, 1, &conditions);
        }

        fn sees(&mut self, version: u64, in_use: i64, drained: bool) -> bool {
            let mut conditions = vec![("InUse", "True"), ("Oversubscribed", "False")];
            if drained {
                conditions.push(("Drained", "True"));
            }
            let conditions: Vec<WireObjectCondition> = conditions
                .into_iter()
                .map(|(name, status)| {
                    serde_json::from_value(json!({"type": name, "status": status})).unwrap()
                })
                .collect();
            self.guard.sees(&SeenUse {
                object: &self.object,
                uid: &self.uid,
                version: Some(&version.to_string()),
                in_use: Some(in_use),
                conditions: &conditions,
            })
        }
    }

    #[test]
    fn what_we_wrote_and_what_was_before_it_is_no_tampering() {
        let mut play = Play::begin();
        assert!(!play.sees(3, 0, false) && !play.sees(5, 1, false) && !play.sees(9, 1, false));
        assert_eq!(play.guard.noticed, []);
    }

    #[test]
    fn another_number_is_noticed_once_until_it_is_written_anew() {
        let mut play = Play::begin();
        assert!(play.sees(6, 0, false) && !play.sees(7, 0, false));
        play.write();
        assert!(!play.guard.wrote(&play.object, &play.uid, Some(8)));
        assert_eq!(play.guard.noticed.len(), 1);
    }

    #[test]
    fn a_condition_that_is_not_ours_to_say_now_is_noticed() {
        let mut play = Play::begin();
        assert!(play.sees(6, 1, true) && play.guard.has_stray(&play.uid));
    }

    #[test]
    fn what_is_seen_while_a_write_is_under_way_is_judged_by_its_answer() {
        let mut play = Play::begin();
        play.write();
        assert!(!play.sees(8, 1, true));
        assert!(!play.guard.wrote(&play.object, &play.uid, Some(9)), "it was before");
        play.write();
        assert!(!play.sees(10, 1, true));
        assert!(play.guard.wrote(&play.object, &play.uid, Some(10)), "the write left it standing");
    }
}

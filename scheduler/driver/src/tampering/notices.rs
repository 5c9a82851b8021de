//! Changes by tenants to their own Pods that have no effect, or not the intended one. These raise no alert, only an
//! Event on the Pod.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crds::annotations::EXPECTED_END;
use jiff::Timestamp;
use model::{ObjectKey, PodUid};
use own_writes::TAMPERING_REPORTS_MAX;

use crate::tracker::key;
use crate::wire::WirePod;

/// Events that wait to be written. Further ones are dropped.
const WAITING_MAX: usize = 256;
/// Pods whose end cannot be read, so that each is reported once. Beyond this many, some are reported again.
const UNREADABLE_MAX: usize = 10_000;

/// The reason of the Event.
pub(crate) const NO_EFFECT_REASON: &str = "AnnotationWithoutEffect";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub pod: ObjectKey,
    pub uid: PodUid,
    pub message: &'static str,
}

pub(super) const REFERENCES_CHANGED: &str = "what the Pod asks for was changed after it was bound, which has no effect: \
     it keeps what it was granted then; create it anew to change that";
const END_UNREADABLE: &str = "corridoros.io/expectedEnd is no RFC 3339 time, as 2026-01-31T18:00:00Z is: nothing is \
     expected of the Pod's end";

#[derive(Debug, Default)]
pub(crate) struct Notices {
    /// With the text that was reported last, and how often one was.
    unreadable_ends: HashMap<PodUid, (u64, u8)>,
    waiting: VecDeque<Notice>,
}

impl Notices {
    pub fn push(&mut self, notice: Notice) {
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back(notice);
        }
    }

    pub fn next(&mut self) -> Option<Notice> {
        self.waiting.pop_front()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn gone(&mut self, uid: &PodUid) {
        self.unreadable_ends.remove(uid);
    }

    /// Looks at when a Pod of ours says that it ends.
    pub fn look_at_end(&mut self, pod: &WirePod, uid: &PodUid) {
        let end = pod.metadata.annotations.as_ref().and_then(|it| it.get(EXPECTED_END));
        let unreadable = end.filter(|text| text.parse::<Timestamp>().is_err());
        let Some(text) = unreadable else {
            if !self.unreadable_ends.is_empty() {
                self.unreadable_ends.remove(uid);
            }
            return;
        };
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        if self.unreadable_ends.len() >= UNREADABLE_MAX {
            self.unreadable_ends.clear();
        }
        let (said, told) = self.unreadable_ends.entry(uid.clone()).or_default();
        if *told < TAMPERING_REPORTS_MAX && (*told == 0 || *said != hasher.finish()) {
            (*said, *told) = (hasher.finish(), *told + 1);
            let pod = key(&pod.metadata);
            self.push(Notice { pod, uid: uid.clone(), message: END_UNREADABLE });
        }
    }
}

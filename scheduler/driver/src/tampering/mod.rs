//! Tampering: writes by others to what only the scheduler writes are noticed, reported once and counted.
//!
//! The API server keeps others from it where `config/admission/` is installed; this is for where it is
//! not. [`pods`] looks at Pods, [`uses`] at what the driver itself has written into the status of
//! objects, [`notices`] reports annotations without effect. Nothing here changes where a Pod goes, but for
//! one thing: a grant that certainly no Binding of ours has written does not count.

mod grants;
mod notices;
mod pods;
mod uses;

use std::collections::VecDeque;
use std::sync::Arc;

use model::ObjectKey;
use own_writes::Tampering;

pub(crate) use notices::{NO_EFFECT_REASON, Notice};
pub(crate) use pods::PodGuard;
pub(crate) use uses::{OURS, SeenUse, UseGuard};

/// Events that wait to be written. Further ones are counted, and not written.
const WAITING_MAX: usize = 256;

/// The report on one tampering. Its text is fixed: nothing of it comes from a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alarm {
    pub kind: Tampering,
    /// `Pod`, `Corridor`, `MemoryBundle`.
    pub of: &'static str,
    pub key: ObjectKey,
    pub uid: String,
    pub message: &'static str,
}

/// Everything that the driver remembers to notice tampering by. It grows with live objects only.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    pub pods: PodGuard,
    pub uses: UseGuard,
    waiting: VecDeque<Alarm>,
}

impl Guard {
    /// A term of leading begins, under this name if there is an election, or ends.
    pub fn leads_as(&mut self, leader: Option<Arc<str>>) {
        self.pods.leads_as(leader);
        self.uses = UseGuard::default();
    }

    /// What has been noticed since the last call: counted at once, reported later. A follower leaves the reports to the
    /// leader.
    pub fn collect(&mut self, reports: bool, count: impl Fn(Tampering)) {
        let noticed = self.pods.noticed.drain(..).chain(self.uses.noticed.drain(..));
        for (alarm, is_reported) in noticed {
            count(alarm.kind);
            if !is_reported || !reports {
                continue;
            }
            let Alarm { kind, of, key, message, .. } = &alarm;
            tracing::warn!(%kind, of, object = %key, message, "tampering");
            if self.waiting.len() < WAITING_MAX {
                self.waiting.push_back(alarm);
            }
        }
    }

    pub fn next_alarm(&mut self) -> Option<Alarm> {
        self.waiting.pop_front()
    }

    pub fn next_notice(&mut self) -> Option<Notice> {
        self.pods.notices.next()
    }

    pub fn has_pending(&self) -> bool {
        !self.waiting.is_empty() || !self.pods.notices.is_empty()
    }
}

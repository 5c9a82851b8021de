//! Pods of ours: which account put them on their Node, and whether their result annotations stay as they were.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::Bind;
use model::{NodeName, PodUid};
use own_writes::{TAMPERING_REPORTS_MAX, Tampering};

use super::Alarm;
use super::grants::{Look, Results};
use super::notices::{Notice, Notices, REFERENCES_CHANGED};
use crate::profile_names::ProfileNames;
use crate::tracker::key;
use crate::translate::grant_text;
use crate::wire::WirePod;

/// A Binding that an earlier process of this replica sent can still take effect when we have begun to decide: the API
/// server gives up on it after 10 s. Generous, because a clock is not what a Pod should be lost for.
const LATE_BINDING_MAX: Duration = Duration::from_secs(30);

/// What is remembered of a Pod of ours.
#[derive(Debug, Default)]
struct Known {
    /// The Binding that this process sent last: its Node and grant.
    sent: Option<(NodeName, Option<String>)>,
    /// It was there before this process began to decide.
    is_inherited: bool,
    /// As it was when it was first seen on a Node.
    bound_with: Option<Results>,
    /// What was noticed last: the same is not reported again.
    noticed: Option<Results>,
    is_forged: bool,
    reported: u8,
}

#[derive(Debug, Default)]
pub(crate) struct PodGuard {
    known: HashMap<PodUid, Known>,
    /// Since when this process is the one that binds. A follower only looks on.
    deciding_since: Option<Instant>,
    /// The name under which it binds, if it has one.
    own_leader: Option<Arc<str>>,
    /// With whether an Event is written, or it is only counted.
    pub(super) noticed: Vec<(Alarm, bool)>,
    pub(super) notices: Notices,
}

/// What a look at a Pod has found.
enum Found {
    Tampering(Tampering, &'static str),
    /// The tenant has changed its own annotations, without effect.
    WithoutEffect(&'static str),
}

impl PodGuard {
    /// This process decides now, so that no other writer may bind Pods of ours.
    pub fn decides(&mut self, now: Instant) {
        self.deciding_since.get_or_insert(now);
    }

    /// A term begins or ends. Until it decides, Bindings of others are none of its business.
    pub fn leads_as(&mut self, leader: Option<Arc<str>>) {
        (self.deciding_since, self.own_leader) = (None, leader);
    }

    pub fn binds(&mut self, bind: &Bind) {
        let sent = (bind.node.clone(), bind.grant.as_ref().map(grant_text));
        self.known.entry(bind.uid.clone()).or_default().sent = Some(sent);
    }

    pub fn gone(&mut self, uid: &PodUid) {
        self.known.remove(uid);
        self.notices.gone(uid);
    }

    /// Looks at a Pod. Returns whether its grant, if it has one, counts.
    pub fn sees(&mut self, pod: &WirePod, profiles: &ProfileNames, now: Instant) -> bool {
        let Some(uid) = pod.metadata.uid.as_deref().map(PodUid::new) else { return true };
        let is_ours = profiles.has(&pod.spec.scheduler_name);
        if !is_ours || pod.is_completed() {
            self.known.remove(&uid);
            return true;
        }
        if self.deciding_since.is_some() {
            self.notices.look_at_end(pod, &uid);
        }
        let look = Look::at(pod);
        let deciding_since = self.deciding_since;
        let known = self.known.entry(uid.clone()).or_insert_with(|| Known {
            is_inherited: deciding_since.is_none(),
            ..Known::default()
        });
        let found = if pod.spec.node_name.is_empty() {
            known.waits(&look)
        } else if known.bound_with.is_some() {
            known.stays(&look)
        } else {
            let is_late = known.is_inherited
                && deciding_since.is_some_and(|since| now - since < LATE_BINDING_MAX);
            let decides = deciding_since.is_some() && !is_late;
            known.bound_with = Some(look.results());
            // Whatever an earlier leader bound was in the list that we made before we decided.
            let own = self.own_leader.as_deref();
            let is_led = own.is_some() && deciding_since.is_some();
            let names_another = look.leader().is_some_and(|leader| Some(leader) != own);
            let is_overlap = names_another && (decides || is_led);
            known.is_bound(&look, &pod.spec.node_name, decides, is_overlap)
        };
        let counts = !known.is_forged;
        let (kind, message) = match found {
            None => return counts,
            Some(Found::WithoutEffect(message)) => {
                known.reported = known.reported.saturating_add(1);
                if known.reported > TAMPERING_REPORTS_MAX {
                    return counts;
                }
                self.notices.push(Notice { pod: key(&pod.metadata), uid, message });
                return counts;
            }
            Some(Found::Tampering(kind, message)) => (kind, message),
        };
        known.reported = known.reported.saturating_add(1);
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let alarm = Alarm { kind, of: "Pod", key: key(&pod.metadata), uid, message };
        self.noticed.push((alarm, known.reported <= TAMPERING_REPORTS_MAX));
        counts
    }
}

impl Known {
    /// Only a Binding writes results, and it sets the Node in the same moment.
    fn waits(&mut self, look: &Look<'_>) -> Option<Found> {
        let results = Some(look.results());
        if !look.has_results() || self.noticed == results {
            return None;
        }
        self.noticed = results;
        Some(Found::Tampering(
            Tampering::Grant,
            "result annotations were set by somebody else; the Pod waits until they are removed",
        ))
    }

    /// On the Node where it was, with the results that it had?
    fn stays(&mut self, look: &Look<'_>) -> Option<Found> {
        let results = look.results();
        if Some(results) == self.bound_with {
            // Put right again: the next change is another one.
            self.noticed = None;
            return None;
        }
        if self.noticed == Some(results) {
            return None;
        }
        let before = self.noticed.replace(results).or(self.bound_with);
        let is_granted = self.bound_with.is_some_and(|it| it.granted == results.granted);
        let is_led = self.bound_with.is_some_and(|it| it.leader == results.leader);
        if is_granted && is_led {
            let is_new = before.is_some_and(|it| it.asked != results.asked);
            return is_new.then_some(Found::WithoutEffect(REFERENCES_CHANGED));
        }
        if is_granted {
            return Some(Found::Tampering(
                Tampering::Leader,
                "corridoros.io/leader of the bound Pod was changed by somebody else",
            ));
        }
        Some(Found::Tampering(
            Tampering::Grant,
            "result annotations of the bound Pod were changed by somebody else; what was granted \
             when it was bound still counts until the scheduler restarts",
        ))
    }

    /// It is on a Node for the first time. `decides`: only this process may have bound it.
    /// `is_overlap`: it is there in the name of another leader, though this process leads.
    fn is_bound(
        &mut self,
        look: &Look<'_>,
        node: &str,
        decides: bool,
        is_overlap: bool,
    ) -> Option<Found> {
        if let Some((sent_to, sent_grant)) = &self.sent
            && sent_to.as_str() == node
        {
            let is_as_sent = sent_grant.as_deref() == look.grant();
            let other = "the grant is not the one of its Binding";
            return (!is_as_sent).then_some(Found::Tampering(Tampering::Grant, other));
        }
        if !look.refers() && !look.has_results() {
            return None;
        }
        if is_overlap {
            return Some(Found::Tampering(
                Tampering::Leader,
                "bound in the name of another leader than the one that leads",
            ));
        }
        if decides {
            self.is_forged = true;
            return Some(Found::Tampering(
                Tampering::Placement,
                "put on its Node by somebody else; it holds no grant, whatever its annotations say",
            ));
        }
        inherited(look)
    }
}

/// Bound before this process decided, so by a former one or another replica: does it hang together?
fn inherited(look: &Look<'_>) -> Option<Found> {
    if look.grant().is_none() && !look.has_results() {
        return Some(Found::Tampering(
            Tampering::Placement,
            "on a Node without a grant, though it refers to a Corridor or MemoryBundle",
        ));
    }
    if look.is_edited {
        return Some(Found::Tampering(
            Tampering::Grant,
            "result annotations were written by somebody else than a Binding",
        ));
    }
    // Whether the grant was edited or what the Pod asks for cannot be determined any more.
    let disagrees = "the grant does not agree with what the Pod asks for";
    (!look.grant_agrees()).then_some(Found::Tampering(Tampering::Grant, disagrees))
}

#[cfg(test)]
mod tests;

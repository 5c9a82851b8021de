//! A second look where each claim's first choice leaves another without any. kube-scheduler rejects the Node there.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{ObjectKey, PersistentVolume, PersistentVolumeClaim};

use super::filter::Parts;
use super::provision::check_provisions;
use super::static_binding::{StaticBindings, choices};

/// An assignment in which every claim has a PersistentVolume for which none can be made, and as much as possible of
/// the rest, the largest first. `None`: there is no such assignment.
pub(super) fn rearranged<'a>(parts: &Parts<'a>) -> Option<StaticBindings<'a>> {
    let can_be_made = |claim: &PersistentVolumeClaim| {
        check_provisions(parts.cluster, &parts.node.node.labels, &[], &[claim]).is_ok()
    };
    let (optional, required): (Vec<_>, Vec<_>) =
        parts.free.iter().copied().partition(|claim| can_be_made(claim));
    let mut matching = Matching {
        choices: parts.free.iter().map(|it| (&it.key, choices(parts, it))).collect(),
        taken: BTreeMap::new(),
    };
    if !required.iter().all(|claim| matching.place(&claim.key, &mut Vec::new())) {
        return None;
    }
    for claim in optional.iter().rev() {
        matching.place(&claim.key, &mut Vec::new());
    }
    Some(matching.taken.into_values().map(|(claim, volume)| (claim.clone(), volume)).collect())
}

/// By augmenting paths: a claim that has a PersistentVolume keeps one.
struct Matching<'p, 'a> {
    choices: BTreeMap<&'p ObjectKey, Vec<&'a PersistentVolume>>,
    taken: BTreeMap<&'a Arc<str>, (&'p ObjectKey, &'a PersistentVolume)>,
}

impl<'p, 'a> Matching<'p, 'a> {
    fn place(&mut self, claim: &'p ObjectKey, asked: &mut Vec<&'a Arc<str>>) -> bool {
        for volume in self.choices.get(claim).cloned().unwrap_or_default() {
            if asked.contains(&&volume.name) {
                continue;
            }
            asked.push(&volume.name);
            let holder = self.taken.get(&volume.name).map(|(holder, _)| *holder);
            if holder.is_none_or(|holder| self.place(holder, asked)) {
                self.taken.insert(&volume.name, (claim, volume));
                return true;
            }
        }
        false
    }
}

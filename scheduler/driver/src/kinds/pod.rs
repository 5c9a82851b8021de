//! Pods. Their wire type is in `wire/pod.rs`, their translation in `translate/pod.rs`.

use engine::{Event, WatchedKind};
use model::{NodeName, PodUid};

use super::{Gone, WatchState, WatchedResource, WirePod};
use crate::run::Driver;
use crate::watch::{Unreadable, WatchEvent};

/// Pods are known by their UIDs. One that does not concern us, or does no more, is gone for us.
impl WatchedResource for WirePod {
    const KIND: WatchedKind = WatchedKind::Pods;

    fn seen(self, watched: &mut WatchState) -> Option<Event> {
        let gone = || self.metadata.uid.as_deref().map(|uid| Event::gone(PodUid::new(uid)));
        watched.pod(&self).map(Event::seen).or_else(gone)
    }

    fn gone((_, version): Gone, watched: &mut WatchState) -> Option<Event> {
        let uid = PodUid::from(version.uid);
        watched.guard.pods.gone(&uid);
        Some(Event::gone(uid))
    }

    fn replaced(gone: Gone, watched: &mut WatchState) -> Option<Event> {
        Self::gone(gone, watched)
    }

    /// What it uses of its Node may not be known: then nothing more is put there.
    fn unreadable(left: &Unreadable) -> Option<Event> {
        let (pod, node) = (left.metadata.uid.as_deref()?, left.node.as_deref()?);
        Some(Event::PodUnreadable { pod: pod.into(), node: NodeName::new(node) })
    }

    fn take(event: WatchEvent<Self>, driver: &mut Driver) {
        if let Some(shadow) = &mut driver.shadow {
            shadow.follow(&driver.engine, &event);
        }
        if let WatchEvent::Seen(pod) = &event {
            driver.note_kubelet_rejection(pod);
        }
        driver.take_event_of(match event {
            // It uses nothing, and is not kept until it is deleted.
            WatchEvent::Seen(pod) if pod.is_completed() => WatchEvent::Gone(pod),
            event => event,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::seen;
    use super::*;
    use engine::{Watched, WatchedId};
    use serde_json::json;

    #[test]
    fn a_foreign_pod_that_lost_its_nomination_is_gone_for_us() {
        let watched = &mut WatchState::default();
        let mut pod = json!({
            "metadata": {"namespace": "a", "name": "p", "uid": "u", "resourceVersion": "1"},
            "spec": {"schedulerName": "other", "containers": [{}]},
            "status": {"nominatedNodeName": "n1"},
        });
        let event = seen::<WirePod>(watched, pod.clone());
        assert!(matches!(event, Some(Event::Seen(Watched::Pod(_)))));
        pod["status"] = json!({});
        let event = seen::<WirePod>(watched, pod);
        assert!(
            matches!(&event, Some(Event::Gone(WatchedId::Pod(uid))) if uid.as_str() == "u"),
            "{event:?}"
        );
    }
}

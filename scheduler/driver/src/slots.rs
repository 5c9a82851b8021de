//! Which calls are under way, and what must wait for what.
//!
//! For one Pod a condition write and a Binding never overlap: the write would move the
//! resourceVersion on which the Binding is conditioned.

use std::collections::{HashMap, HashSet};

use engine::Bind;
use model::{Pod, PodUid};

/// Bindings in flight. Measured: enough to keep the API server busy; each holds a connection.
pub(crate) const BINDS_MAX: usize = 64;
/// Conditions and Events in flight when nothing is to be bound …
const WRITES_MAX: usize = 16;
/// … and beside Bindings: an Event costs the API server as much as a Binding.
const WRITES_BESIDE_BINDS_MAX: usize = 2;

#[derive(Debug, Default)]
pub(crate) struct Slots {
    binding: HashSet<PodUid>,
    /// Decided, but their condition is still being written.
    waiting: HashMap<PodUid, Bind>,
    writing: HashSet<PodUid>,
    writes: usize,
}

impl Slots {
    pub fn can_bind(&self) -> bool {
        self.binding.len() < BINDS_MAX
    }

    pub fn can_write(&self) -> bool {
        let max = if self.binding.is_empty() { WRITES_MAX } else { WRITES_BESIDE_BINDS_MAX };
        self.writes < max
    }

    /// The Binding to send now; none if it must wait for the Pod's condition.
    pub fn begin_bind(&mut self, bind: Bind) -> Option<Bind> {
        self.binding.insert(bind.uid.clone());
        if self.writing.contains(&bind.uid) {
            self.waiting.insert(bind.uid.clone(), bind);
            return None;
        }
        Some(bind)
    }

    pub fn end_bind(&mut self, pod: &PodUid) {
        self.binding.remove(pod);
        self.waiting.remove(pod);
    }

    /// A write about the Pod; `moves_version` if it changes the Pod itself.
    pub fn begin_write(&mut self, pod: &PodUid, moves_version: bool) {
        self.writes += 1;
        if moves_version {
            self.writing.insert(pod.clone());
        }
    }

    /// The Pod's condition is written: its Binding, if one was waiting, may go, conditioned on
    /// the version that the write made. If somebody else has changed what the Pod asks for, the
    /// old version stays, and the API server refuses the Binding.
    pub fn condition_written(&mut self, uid: &PodUid, written: Option<&Pod>) -> Option<Bind> {
        self.writing.remove(uid);
        let mut bind = self.waiting.remove(uid)?;
        if let (Some(version), Some(pod)) = (&mut bind.resource_version, written)
            && pod.spec == bind.spec
        {
            *version = pod.resource_version.clone();
        }
        Some(bind)
    }

    pub fn end_write(&mut self) {
        self.writes = self.writes.saturating_sub(1);
    }

    pub fn binds_in_flight(&self) -> usize {
        self.binding.len()
    }

    pub fn is_idle(&self) -> bool {
        self.binding.is_empty() && self.writes == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Assignment, ObjectKey, PodSpec, Shape};
    use std::sync::Arc;

    fn spec(priority: i32) -> Arc<PodSpec> {
        let shape = Arc::new(Shape::default());
        Arc::new(PodSpec { namespace: "a".into(), priority, shape, corridor: None, hold: None })
    }

    fn written(version: &str, spec: Arc<PodSpec>) -> Pod {
        Pod {
            key: ObjectKey::new("a", "p"),
            uid: "p".into(),
            resource_version: version.into(),
            created_at_unix_s: 0,
            spec,
            assignment: Assignment::Waiting,
            condition_message: None,
        }
    }

    fn bind(uid: &str) -> Bind {
        Bind {
            pod: ObjectKey::new("a", uid),
            uid: uid.into(),
            node: "n".into(),
            spec: spec(0),
            resource_version: Some("1".into()),
            corridor_id: None,
            grant: None,
        }
    }

    #[test]
    fn a_binding_waits_for_the_pods_condition_and_uses_its_version() {
        let mut slots = Slots::default();
        slots.begin_write(&"p".into(), true);
        assert_eq!(slots.begin_bind(bind("p")), None);
        assert!(slots.begin_bind(bind("other")).is_some());
        let freed = slots.condition_written(&"p".into(), Some(&written("9", spec(0)))).unwrap();
        assert_eq!(freed.resource_version.as_deref(), Some("9"));
        assert_eq!(slots.binds_in_flight(), 2);
    }

    #[test]
    fn a_failed_condition_write_frees_the_binding_with_its_old_version() {
        let mut slots = Slots::default();
        slots.begin_write(&"p".into(), true);
        slots.begin_bind(bind("p"));
        let freed = slots.condition_written(&"p".into(), None).unwrap();
        assert_eq!(freed.resource_version.as_deref(), Some("1"));
    }

    #[test]
    fn a_pod_that_was_changed_meanwhile_is_bound_on_the_version_that_was_decided() {
        let mut slots = Slots::default();
        slots.begin_write(&"p".into(), true);
        slots.begin_bind(bind("p"));
        let freed = slots.condition_written(&"p".into(), Some(&written("9", spec(7)))).unwrap();
        assert_eq!(freed.resource_version.as_deref(), Some("1"));
    }

    #[test]
    fn writes_step_back_while_bindings_are_under_way() {
        let mut slots = Slots::default();
        for _ in 0..WRITES_BESIDE_BINDS_MAX {
            assert!(slots.can_write());
            slots.begin_write(&"p".into(), false);
        }
        assert!(slots.can_write());
        slots.begin_bind(bind("b"));
        assert!(!slots.can_write());
        slots.end_bind(&"b".into());
        assert!(slots.can_write());
    }
}

//! Wakes the owners of objects that a controller creates.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::PartialObjectMeta;
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::api::ApiClient;
use crate::controller::Controller;
use crate::triggers::Triggers;
use crate::watch::{self, EVENTS_MAX, WatchEvent};

/// A kind of objects that the controller `C` creates.
pub struct Owned<C> {
    pub(crate) wake_owners: fn(ApiClient, Arc<Triggers>) -> BoxFuture<'static, ()>,
    of: PhantomData<C>,
}

impl<C: Controller> Owned<C> {
    pub fn kind<K>() -> Self
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let wake_owners = |api, triggers| wake_owners::<C::Object, K>(api, triggers).boxed();
        Self { wake_owners, of: PhantomData }
    }
}

impl<C> Debug for Owned<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned").finish_non_exhaustive()
    }
}

/// Watches the kind `K`, of which only metadata is read, and wakes the object of kind `O` that the controller
/// ownerReference of each changed or deleted object names. An owner that is not known yet is reconciled when it is first
/// seen, so that wake-up is not missed. Runs until it is dropped, or until the watch ends.
async fn wake_owners<O, K>(api: ApiClient, triggers: Arc<Triggers>)
where
    O: Resource<DynamicType = ()>,
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let (sender, mut events) = mpsc::channel(EVENTS_MAX);
    let mut watching = JoinSet::new();
    watching.spawn(watch::follow(api.all::<PartialObjectMeta<K>>(), sender));
    let mut owners = Owners::default();
    while let Some(event) = events.recv().await {
        triggers.wake_each(owners.handle::<O, _>(&event).into_iter());
    }
}

/// Owners of the objects that the watch shows, so that an object which is missing from a list wakes its owner too.
#[derive(Debug, Default)]
struct Owners {
    by_owned: HashMap<String, String>,
    listed: HashSet<String>,
}

impl Owners {
    /// The UIDs of owners to wake.
    fn handle<O, K>(&mut self, event: &WatchEvent<K>) -> Vec<String>
    where
        O: Resource<DynamicType = ()>,
        K: Resource,
    {
        match event {
            WatchEvent::ListStarted => self.listed.clear(),
            WatchEvent::Listed(object) => {
                self.listed.extend(object.uid());
                return self.applied::<O>(object.meta());
            }
            WatchEvent::Applied(object) => return self.applied::<O>(object.meta()),
            WatchEvent::Deleted(object) => {
                return object
                    .uid()
                    .and_then(|uid| self.by_owned.remove(&uid))
                    .into_iter()
                    .collect();
            }
            WatchEvent::ListDone | WatchEvent::NotInstalled => {
                let listed = std::mem::take(&mut self.listed);
                let missing = self.by_owned.extract_if(|uid, _| !listed.contains(uid));
                return missing.map(|(_, owner)| owner).collect();
            }
        }
        Vec::new()
    }

    fn applied<O: Resource<DynamicType = ()>>(&mut self, metadata: &ObjectMeta) -> Vec<String> {
        let owner = controller_of::<O>(metadata);
        if let (Some(uid), Some(owner)) = (&metadata.uid, &owner) {
            self.by_owned.insert(uid.clone(), owner.clone());
        }
        owner.into_iter().collect()
    }
}

/// The UID of the owner, if its controller is an object of kind `O`, in any version.
fn controller_of<O: Resource<DynamicType = ()>>(metadata: &ObjectMeta) -> Option<String> {
    let references = metadata.owner_references.iter().flatten();
    let mut controllers = references.filter(|it| it.controller == Some(true));
    let group = |api_version: &str| api_version.split_once('/').map_or("", |it| it.0).to_owned();
    controllers
        .find(|it| it.kind == O::kind(&()) && group(&it.api_version) == O::group(&()))
        .map(|it| it.uid.clone())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::ReplicaSet;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, api_version: &str, kind: &str, is_controller: bool) -> Pod {
        let owner = json!({
            "apiVersion": api_version, "kind": kind, "name": "o", "uid": format!("of-{uid}"),
            "controller": is_controller,
        });
        serde_json::from_value(json!({
            "metadata": {"name": uid, "uid": uid, "ownerReferences": [owner]},
        }))
        .unwrap()
    }

    fn owned(uid: &str) -> Pod {
        pod(uid, "apps/v1", "ReplicaSet", true)
    }

    #[test]
    fn only_the_controller_of_the_right_kind_is_woken() {
        let of = |pod: Pod| controller_of::<ReplicaSet>(&pod.metadata);
        assert_eq!(of(owned("a")), Some("of-a".to_owned()));
        assert_eq!(of(pod("a", "apps/v2", "ReplicaSet", true)), Some("of-a".to_owned()));
        assert_eq!(
            of(pod("a", "apps/v1", "ReplicaSet", false)),
            None,
            "an owner, not its controller"
        );
        assert_eq!(of(pod("a", "apps/v1", "DaemonSet", true)), None);
        assert_eq!(of(pod("a", "other/v1", "ReplicaSet", true)), None);
        assert_eq!(of(Pod::default()), None);
    }

    #[test]
    fn changes_deletions_and_absence_from_a_list_wake_the_owner() {
        let mut owners = Owners::default();
        let mut woken = |event| owners.handle::<ReplicaSet, Pod>(&event);
        assert_eq!(woken(WatchEvent::Applied(owned("a"))), ["of-a"]);
        assert_eq!(woken(WatchEvent::Applied(owned("b"))), ["of-b"]);
        assert_eq!(woken(WatchEvent::Deleted(owned("b"))), ["of-b"]);
        assert!(woken(WatchEvent::ListStarted).is_empty());
        assert_eq!(woken(WatchEvent::Listed(owned("c"))), ["of-c"]);
        assert_eq!(woken(WatchEvent::ListDone), ["of-a"], "deleted while the watch was broken");
        assert_eq!(woken(WatchEvent::NotInstalled), ["of-c"]);
    }
}

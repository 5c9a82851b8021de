//! An external provisioner without storage behind it: it follows claims, makes the objects that a CSI
//! provisioner makes, and fails as the parameters of a class say.

mod conduct;
mod volume;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::sleep;

pub use conduct::Fault;
use conduct::{Answer, Conduct};

use crate::error::{Doing as _, Result};
use crate::objects::volumes::{ClaimState as _, ClassTemplate, SELECTED_NODE, VolumeState as _};

/// The name by which classes ask for it, and the CSI driver of its volumes.
pub const NAME: &str = "provisioner.e2e.corridoros.io";

/// The controller writes here who is to provision a claim.
const PROVISIONED_BY: &str = "volume.kubernetes.io/storage-provisioner";

/// A class of this provisioner, whose claims wait for their first Pod.
pub fn class() -> ClassTemplate {
    ClassTemplate::of(NAME)
}

/// A running provisioner. It stops when this is dropped; what it made stays.
#[derive(Debug)]
pub struct Provisioner {
    task: JoinHandle<()>,
}

impl Provisioner {
    /// Serves the claims there are and those to come, with the faults of their classes.
    pub fn start(client: &Client) -> Self {
        Self::start_work(client, true)
    }

    /// The same, whatever the classes say: as after a repair.
    pub fn start_repaired(client: &Client) -> Self {
        Self::start_work(client, false)
    }

    fn start_work(client: &Client, has_faults: bool) -> Self {
        let refused = Mutex::new(BTreeSet::new());
        let work = Work { client: client.clone(), has_faults, refused };
        let task = tokio::spawn(async move {
            tokio::join!(work.follow_claims(), work.follow_volumes());
        });
        Self { task }
    }
}

impl Drop for Provisioner {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Work {
    client: Client,
    has_faults: bool,
    /// The claims that were refused, by UID.
    refused: Mutex<BTreeSet<String>>,
}

impl Work {
    /// One claim is worked on once at a time; what happens to it meanwhile is looked at afterwards.
    async fn follow_claims(&self) {
        let claims: Api<PersistentVolumeClaim> = Api::all(self.client.clone());
        let mut events = watcher::watcher(claims, watcher::Config::default()).boxed();
        let mut working = FuturesUnordered::new();
        // By key, whether it must be looked at again.
        let mut busy = BTreeMap::<(String, String), bool>::new();
        loop {
            let key = tokio::select! {
                event = events.next() => match event {
                    Some(Ok(Event::Apply(claim) | Event::InitApply(claim))) => {
                        (claim.namespace().unwrap_or_default(), claim.name_any())
                    }
                    // The watcher lists or watches again by itself.
                    Some(_) => continue,
                    None => return,
                },
                Some(key) = working.next() => match busy.remove(&key) {
                    Some(true) => key,
                    _ => continue,
                },
            };
            if let Some(again) = busy.get_mut(&key) {
                *again = true;
                continue;
            }
            busy.insert(key.clone(), false);
            working.push(async move {
                // A conflict is followed by an event; what else fails shows in what waits for it.
                let _ = self.look_at(&key.0, &key.1).await;
                key
            });
        }
    }

    async fn look_at(&self, namespace: &str, name: &str) -> Result<()> {
        let doing = format!("looking at claim {namespace}/{name}");
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), namespace);
        let Some(claim) = claims.get_opt(name).await.doing(doing.clone())? else { return Ok(()) };
        let annotations = claim.annotations();
        if annotations.get(PROVISIONED_BY).is_none_or(|by| by != NAME) || claim.volume().is_some() {
            return Ok(());
        }
        let class = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.clone());
        let classes: Api<StorageClass> = Api::all(self.client.clone());
        let class = classes.get(&class.unwrap_or_default()).await.doing(doing.clone())?;
        let node = match claim.selected_node() {
            Some(name) => {
                let nodes: Api<Node> = Api::all(self.client.clone());
                Some(nodes.get(name).await.doing(doing.clone())?)
            }
            None if volume::waits_for_a_node(&class) => return Ok(()),
            None => None,
        };
        let conduct = self.conduct(&class)?;
        sleep(conduct.delay).await;
        let was_refused = self.refused().contains(claim.uid_str());
        match conduct.answer(claim.selected_node(), was_refused) {
            Answer::Never => Ok(()),
            Answer::Exhausted => self.refuse(&claims, &claim).await,
            Answer::Volume => {
                let volume = volume::volume_for(&claim, &class, node.as_ref(), &conduct)?;
                let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
                match volumes.create(&PostParams::default(), &volume).await {
                    // It was made before, and the controller has not got round to it.
                    Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
                    created => created.map(drop).doing(doing),
                }
            }
        }
    }

    fn conduct(&self, class: &StorageClass) -> Result<Conduct> {
        let parameters = class.parameters.as_ref().filter(|_| self.has_faults);
        Conduct::of(parameters)
    }

    fn refused(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the choice of a node back, unless the claim has changed since it was read.
    async fn refuse(
        &self,
        claims: &Api<PersistentVolumeClaim>,
        claim: &PersistentVolumeClaim,
    ) -> Result<()> {
        let patch = json!({ "metadata": {
            "resourceVersion": claim.resource_version(),
            "annotations": { SELECTED_NODE: null },
        }});
        let name = claim.name_any();
        let patched = claims.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.doing(format!("refusing claim {name}"))?;
        self.refused().insert(claim.uid_str().to_owned());
        Ok(())
    }

    /// Volumes whose claims are gone are deleted.
    async fn follow_volumes(&self) {
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let mut events = watcher::watcher(volumes.clone(), watcher::Config::default()).boxed();
        while let Some(event) = events.next().await {
            let Ok(Event::Apply(volume) | Event::InitApply(volume)) = event else { continue };
            if volume.phase() == "Released" && volume::is_ours(&volume) {
                // Gone already, or the next event tries again.
                let _ = volumes.delete(&volume.name_any(), &DeleteParams::default()).await;
            }
        }
    }
}

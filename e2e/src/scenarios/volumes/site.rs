//! A cluster with volumes, and a record of everything that happens to claims, volumes and Pods in it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::{Client, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::TEAM;
use crate::checkers::{VolumeView, claims_of};
use crate::cluster::Cluster;
use crate::error::{Doing as _, Error, Result, ensure};
use crate::objects::pods::{PodState as _, PodTemplate};
use crate::objects::volumes::{ClaimState, VolumeState as _, VolumeTemplate};
use crate::observe::PATIENCE;
use crate::versions::{Key, Versions, kind};

const PODS: &str = "pods";
const CLAIMS: &str = "persistentvolumeclaims";
const VOLUMES: &str = "persistentvolumes";

/// A promise to users: so long after what a Pod waited for it goes on.
const GOES_ON_WITHIN: Duration = Duration::from_secs(1);

/// The scheduler's back-off (docs/bounds.md), up to 8 s of its 10.
const BACKOFF_FIRST: Duration = Duration::from_secs(1);
const DOUBLINGS_MAX: u32 = 3;

#[derive(Debug)]
pub struct VolumeSite {
    pub cluster: Cluster,
    versions: Versions,
}

/// A Pod that is bound, with its one claim.
#[derive(Debug)]
pub(super) struct Bound {
    pub node: String,
    pub claim: PersistentVolumeClaim,
    pub volume: PersistentVolume,
}

impl VolumeSite {
    /// Records from now on.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        cluster.ensure_namespace(TEAM).await?;
        let kinds = [kind(PODS), kind(CLAIMS), kind(VOLUMES)];
        let versions = Versions::start(cluster.admin(), &kinds).await?;
        Ok(Self { cluster: cluster.clone(), versions })
    }

    /// To be called when the story is over: what must be true of volumes, whatever happened.
    pub async fn finish(&self) -> Result<()> {
        VolumeView::read(self.admin()).await?.check()?;
        self.ensure_no_claim_had_two_volumes()
    }

    pub fn admin(&self) -> &Client {
        self.cluster.admin()
    }

    /// Creates a volume and waits until it can be claimed.
    pub async fn create_volume(&self, name: &str, template: &VolumeTemplate) -> Result<()> {
        template.create(self.admin(), name).await?;
        self.until_volume(name, "Available", |volume| volume.phase() == "Available").await.map(drop)
    }

    pub async fn create_pod(&self, name: &str, template: &PodTemplate) -> Result<Pod> {
        template.create(self.admin(), TEAM, name).await
    }

    pub(super) async fn until_bound(&self, pod: &str) -> Result<Pod> {
        self.cluster.until_pod(TEAM, pod, "bound", |pod| pod.node().is_some()).await
    }

    /// Waits until a Pod is bound, and makes sure that its only claim is, and to a volume that is its own.
    pub(super) async fn until_bound_with_claim(&self, pod: &str) -> Result<Bound> {
        let pod = self.until_bound(pod).await?;
        let [claim] = &claims_of(&pod)[..] else {
            return Err(Error::malformed("looking for the claim of a Pod", "it has not one"));
        };
        let (_, name) = claim.split_once('/').unwrap_or_default();
        let claim = self.until_claim(name, "bound when its Pod is", ClaimState::is_bound).await?;
        let volume = claim.volume().unwrap_or_default();
        let volume = self.until_volume(volume, "there", |_| true).await?;
        let claimant = volume.claim().and_then(|claim| claim.uid.as_deref());
        ensure(claimant == Some(claim.uid_str()), || {
            format!("claim {name} has {}, which belongs to {claimant:?}", volume.name_any())
        })?;
        Ok(Bound { node: pod.node().unwrap_or_default().to_owned(), claim, volume })
    }

    /// Waits until a Pod has said all this with this reason, maybe for a moment only. Returns the message.
    pub(super) async fn until_said(
        &self,
        pod: &str,
        reason: &str,
        parts: &[&str],
    ) -> Result<String> {
        let key = key(PODS, TEAM, pod);
        let said = |pod: &Pod| {
            let has_reason = pod.scheduled_condition().and_then(|it| it.reason.as_deref());
            let message = pod.waiting_message().unwrap_or_default();
            let all = has_reason == Some(reason) && parts.iter().all(|part| message.contains(part));
            all.then(|| message.to_owned())
        };
        let awaited = format!("held with the reason {reason} and the words {parts:?}");
        let mut found = None;
        let look = |_: Option<&Value>| {
            found = self.typed(&key).iter().find_map(|(_, pod)| said(pod));
            found.is_some()
        };
        self.versions.until(&key, &awaited, PATIENCE, look).await?;
        Ok(found.unwrap_or_default())
    }

    /// Waits until a Pod is held with all this, and makes sure that it is not bound.
    pub(super) async fn until_held(&self, pod: &str, parts: &[&str]) -> Result<String> {
        let message = self.until_said(pod, "Unschedulable", parts).await?;
        let was_bound = self.first_seen::<Pod>(&key(PODS, TEAM, pod), |pod| pod.node().is_some());
        ensure(was_bound.is_none(), || format!("Pod {pod} is bound, and should be held"))?;
        Ok(message)
    }

    pub(super) async fn until_claim(
        &self,
        name: &str,
        awaited: &str,
        is: impl Fn(&PersistentVolumeClaim) -> bool,
    ) -> Result<PersistentVolumeClaim> {
        self.until(&key(CLAIMS, TEAM, name), awaited, is).await
    }

    pub(super) async fn until_volume(
        &self,
        name: &str,
        awaited: &str,
        is: impl Fn(&PersistentVolume) -> bool,
    ) -> Result<PersistentVolume> {
        self.until(&key(VOLUMES, "", name), awaited, is).await
    }

    pub(super) async fn until_claim_is_gone(&self, name: &str) -> Result<()> {
        let gone = |claim: Option<&Value>| claim.is_none();
        self.versions.until(&key(CLAIMS, TEAM, name), "gone", PATIENCE, gone).await.map(drop)
    }

    pub(super) async fn until_volume_is_gone(&self, name: &str) -> Result<()> {
        let gone = |volume: Option<&Value>| volume.is_none();
        self.versions.until(&key(VOLUMES, "", name), "gone", PATIENCE, gone).await.map(drop)
    }

    async fn until<K: DeserializeOwned>(
        &self,
        key: &Key,
        awaited: &str,
        is: impl Fn(&K) -> bool,
    ) -> Result<K> {
        let mut found = None;
        let look = |now: Option<&Value>| {
            found = now.and_then(|now| serde_json::from_value(now.clone()).ok()).filter(&is);
            found.is_some()
        };
        self.versions.until(key, awaited, PATIENCE, look).await?;
        found.ok_or_else(|| Error::malformed(format!("waiting for {}", key.2), "it vanished"))
    }

    /// Every version of a claim so far, oldest first.
    pub(super) fn claim_versions(&self, name: &str) -> Vec<PersistentVolumeClaim> {
        self.typed(&key(CLAIMS, TEAM, name)).into_iter().map(|(_, claim)| claim).collect()
    }

    /// No version of this volume was ever claimed.
    pub(super) fn ensure_unclaimed(&self, volume: &str) -> Result<()> {
        let claimed = |volume: &PersistentVolume| volume.claim().is_some();
        let seen = self.first_seen(&key(VOLUMES, "", volume), claimed);
        ensure(seen.is_none(), || format!("volume {volume} was claimed, and should not be"))
    }

    /// When the claim was first seen bound.
    pub(super) fn claim_bound_at(&self, claim: &str) -> Result<Instant> {
        let bound = |claim: &PersistentVolumeClaim| claim.is_bound();
        let seen = self.first_seen(&key(CLAIMS, TEAM, claim), bound);
        seen.ok_or_else(|| Error::Violated(format!("claim {claim} was never bound")))
    }

    /// When the volume was first seen Available.
    pub(super) fn available_at(&self, volume: &str) -> Result<Instant> {
        let available = |volume: &PersistentVolume| volume.phase() == "Available";
        let seen = self.first_seen(&key(VOLUMES, "", volume), available);
        seen.ok_or_else(|| Error::Violated(format!("volume {volume} was never Available")))
    }

    /// When the Pod was first seen bound. Waits for the record, which may be behind another watch.
    pub(super) async fn pod_bound_at(&self, pod: &str) -> Result<Instant> {
        let (key, is_bound) = (key(PODS, TEAM, pod), |pod: &Pod| pod.node().is_some());
        self.until(&key, "bound", is_bound).await?;
        let seen = self.first_seen(&key, is_bound);
        seen.ok_or_else(|| Error::Violated(format!("Pod {pod} was never bound")))
    }

    /// The Pod was bound soon after what it waited for had come.
    pub(super) async fn ensure_prompt(&self, pod: &str, came: Instant) -> Result<()> {
        let bound = self.pod_bound_at(pod).await?;
        ensure_soon(&format!("Pod {pod} was bound"), self.can_go_on(pod, came), bound)
    }

    /// The volume was claimed for the Pod soon after what that waited for had come.
    pub(super) fn ensure_claimed_promptly(
        &self,
        volume: &str,
        pod: &str,
        came: Instant,
    ) -> Result<()> {
        let claimed = |volume: &PersistentVolume| volume.claim().is_some();
        let seen = self.first_seen(&key(VOLUMES, "", volume), claimed);
        let seen =
            seen.ok_or_else(|| Error::Violated(format!("volume {volume} was never claimed")))?;
        ensure_soon(&format!("volume {volume} was claimed"), self.can_go_on(pod, came), seen)
    }

    /// When a Pod can be tried again for which something came at that moment: an attempt that failed is
    /// followed by a back-off, which grows with each.
    fn can_go_on(&self, pod: &str, came: Instant) -> Instant {
        let versions = self.typed::<Pod>(&key(PODS, TEAM, pod));
        let told = |pod: &Pod| pod.waiting_message().map(str::to_owned);
        let mut failures: Vec<_> =
            versions.iter().filter_map(|(seen, pod)| Some((told(pod)?, *seen))).collect();
        failures.dedup_by(|later, earlier| later.0 == earlier.0);
        let Some((_, last)) = failures.last() else { return came };
        let doublings = u32::try_from(failures.len() - 1).unwrap_or(u32::MAX).min(DOUBLINGS_MAX);
        came.max(*last + BACKOFF_FIRST * 2_u32.pow(doublings))
    }

    fn first_seen<K: DeserializeOwned>(
        &self,
        key: &Key,
        is: impl Fn(&K) -> bool,
    ) -> Option<Instant> {
        self.typed(key).into_iter().find(|(_, object)| is(object)).map(|(seen, _)| seen)
    }

    fn typed<K: DeserializeOwned>(&self, key: &Key) -> Vec<(Instant, K)> {
        let history = self.versions.history(key).into_iter();
        let typed = history.map(|version| {
            let object = serde_json::from_value(version.object).doing("reading a version");
            object.map(|object| (version.seen, object))
        });
        typed.filter_map(Result::ok).collect()
    }

    /// In no version: a second volume that was claimed and given back would not show at the end.
    fn ensure_no_claim_had_two_volumes(&self) -> Result<()> {
        let mut volumes = BTreeMap::<String, BTreeSet<String>>::new();
        for version in self.versions.histories(VOLUMES).into_iter().flatten() {
            let claim = &version.object["spec"]["claimRef"]["uid"];
            let name = &version.object["metadata"]["name"];
            if let (Some(claim), Some(name)) = (claim.as_str(), name.as_str()) {
                volumes.entry(claim.to_owned()).or_default().insert(name.to_owned());
            }
        }
        let many = volumes.into_iter().find(|(_, names)| names.len() > 1);
        ensure(many.is_none(), || format!("a claim had several volumes: {many:?}"))
    }
}

/// What happened at `at` was soon enough after `since`.
fn ensure_soon(what: &str, since: Instant, at: Instant) -> Result<()> {
    let took = at.saturating_duration_since(since);
    ensure(took <= GOES_ON_WITHIN, || format!("{what} only after {took:?}"))
}

fn key(plural: &str, namespace: &str, name: &str) -> Key {
    (plural.to_owned(), namespace.to_owned(), name.to_owned())
}

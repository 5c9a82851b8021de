//! The scheduler is killed again and again while Pods with claims come and go.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt as _};
use tokio::time::sleep;

use super::super::corridoros::count_from;
use super::{FAST, LOCAL, TEAM, VolumeSite};
use crate::checkers::VolumeView;
use crate::error::{Doing as _, Result, ensure};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{PodState as _, PodTemplate, delete_pod};
use crate::objects::volumes::{
    ClaimState as _, ClaimTemplate, ClassTemplate, VolumeState as _, VolumeTemplate,
};
use crate::observe::{PATIENCE, Seen, until, until_pods};
use crate::provisioner::{self, Provisioner};
use crate::random::Random;

const KILLS: usize = 3;
const SEED: u64 = 11;
const NODES: usize = 4;
/// Of each kind in each round: with a volume that people made, with one that is provisioned, with both.
const PODS_OF_A_KIND: usize = 2;
/// Rounds whose Pods live beside each other.
const ROUNDS_ALIVE: usize = 2;
/// Longer than the scheduler takes to start and to bind what is there, so that kills fall everywhere.
const LIFE_MS_MAX: usize = 1500;
const PROVISIONED_AFTER: Duration = Duration::from_millis(100);

/// `CORRIDOR_E2E_VOLUME_KILLS` kills at random moments. In the end every Pod is bound, each claim to a volume of
/// its own; no volume belongs to a claim that no Pod asked for; when all Pods are gone nothing is left of them.
pub async fn killed_again_and_again_with_claims(site: &VolumeSite) -> Result<()> {
    let kills = count_from("CORRIDOR_E2E_VOLUME_KILLS", KILLS)?;
    let admin = site.admin();
    site.cluster.create_nodes(NODES, &NodeTemplate::new("4", "16Gi")).await?;
    ClassTemplate::made_by_hand().create(admin, LOCAL).await?;
    provisioner::class().delay(PROVISIONED_AFTER).create(admin, FAST).await?;
    let _provisioner = Provisioner::start(admin);
    let mut random = Random::new(SEED);
    let mut rounds = Rounds { site, asked: BTreeSet::new(), made: 0 };
    for round in 0..kills {
        rounds.begin(round, &mut random).await?;
        let scheduler = site.cluster.start_scheduler().await?;
        sleep(Duration::from_millis(random.below(LIFE_MS_MAX) as u64)).await;
        if let Some(old) = round.checked_sub(ROUNDS_ALIVE) {
            rounds.end(old).await?;
        }
        scheduler.kill9_quietly().await?;
    }
    let scheduler = site.cluster.start_scheduler().await?;
    let done = |seen: &Seen<Pod>| seen.values().all(|pod| pod.node().is_some());
    until_pods(&site.cluster.pods(TEAM), "every Pod to be bound", PATIENCE, done).await?;
    VolumeView::read(admin).await?.check()?;
    for round in kills.saturating_sub(ROUNDS_ALIVE)..kills {
        rounds.end(round).await?;
    }
    rounds.ensure_nothing_is_left().await?;
    let code = scheduler.terminate().await?;
    ensure(code == 0, || format!("the scheduler ended with exit code {code} after SIGTERM"))
}

struct Rounds<'a> {
    site: &'a VolumeSite,
    /// The claims that Pods asked for.
    asked: BTreeSet<String>,
    /// Volumes that people made.
    made: usize,
}

impl Rounds<'_> {
    /// Makes volumes, more than are needed and on every node, then claims and the Pods that use them. One claim
    /// of each class is used by no Pod.
    async fn begin(&mut self, round: usize, random: &mut Random) -> Result<()> {
        let admin = self.site.admin();
        for class in [LOCAL, FAST] {
            let unused = format!("unused-{round}-{class}");
            ClaimTemplate::new(class, "1Gi").create(admin, TEAM, &unused).await?;
        }
        for number in 1..=NODES {
            let size = format!("{}Gi", random.between(1, 9));
            let volume = VolumeTemplate::local(LOCAL, &size, &format!("node-{number}"));
            for _ in 0..PODS_OF_A_KIND {
                volume.create(admin, &format!("made-{}", self.made)).await?;
                self.made += 1;
            }
        }
        for number in 0..PODS_OF_A_KIND {
            for (kind, classes) in
                [("local", &[LOCAL][..]), ("fast", &[FAST]), ("both", &[FAST, LOCAL])]
            {
                let pod = format!("{kind}-{round}-{number}");
                let claims: Vec<_> = classes.iter().map(|class| format!("{pod}-{class}")).collect();
                for (claim, class) in claims.iter().zip(classes) {
                    ClaimTemplate::new(class, "1Gi").create(admin, TEAM, claim).await?;
                }
                let names: Vec<&str> = claims.iter().map(String::as_str).collect();
                self.site.create_pod(&pod, &PodTemplate::small().claims(&names)).await?;
                self.asked.extend(claims);
            }
        }
        Ok(())
    }

    /// Deletes the Pods and the claims of a round, bound or not, and what people had made for them.
    async fn end(&self, round: usize) -> Result<()> {
        self.ensure_only_asked().await?;
        let doing = format!("ending round {round}");
        let pods = self.site.cluster.pods(TEAM);
        let is_of_it = |name: &str| name.split('-').nth(1) == Some(&round.to_string());
        for pod in pods.list(&ListParams::default()).await.doing(doing.clone())? {
            if is_of_it(&pod.name_any()) {
                delete_pod(self.site.admin(), TEAM, &pod.name_any()).await?;
            }
        }
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.site.admin().clone(), TEAM);
        for claim in claims.list(&ListParams::default()).await.doing(doing.clone())? {
            if is_of_it(&claim.name_any()) {
                let deleted = claims.delete(&claim.name_any(), &DeleteParams::default()).await;
                deleted.map(drop).doing(doing.clone())?;
            }
        }
        let volumes: Api<PersistentVolume> = Api::all(self.site.admin().clone());
        for volume in volumes.list(&ListParams::default()).await.doing(doing.clone())? {
            if volume.phase() == "Released" && volume.name_any().starts_with("made-") {
                let deleted = volumes.delete(&volume.name_any(), &DeleteParams::default()).await;
                deleted.map(drop).doing(doing.clone())?;
            }
        }
        Ok(())
    }

    /// Every claim that has a volume, or a node to have one, is that of a Pod.
    async fn ensure_only_asked(&self) -> Result<()> {
        let doing = "listing what was claimed";
        let volumes: Api<PersistentVolume> = Api::all(self.site.admin().clone());
        for volume in volumes.list(&ListParams::default()).await.doing(doing)? {
            let claimant = volume.claimant();
            let name = claimant.as_deref().and_then(|claimant| claimant.split('/').nth(1));
            ensure(name.is_none_or(|name| self.asked.contains(name)), || {
                format!("{} belongs to {name:?}, which no Pod asked for", volume.name_any())
            })?;
        }
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.site.admin().clone(), TEAM);
        for claim in claims.list(&ListParams::default()).await.doing(doing)? {
            let name = claim.name_any();
            ensure(claim.selected_node().is_none() || self.asked.contains(&name), || {
                format!("a node was chosen for {name}, which no Pod asked for")
            })?;
        }
        Ok(())
    }

    /// What was provisioned is gone, and a Pod of the size of a node finds room on each.
    async fn ensure_nothing_is_left(&self) -> Result<()> {
        let volumes: Api<PersistentVolume> = Api::all(self.site.admin().clone());
        let none = |seen: &Seen<PersistentVolume>| {
            !seen.keys().any(|name| name.starts_with("pvc-"))
                && seen.values().all(|volume| matches!(volume.phase(), "Available" | "Released"))
        };
        until(&volumes, "every provisioned volume to be gone", PATIENCE, none).await?;
        let whole = PodTemplate::new("4", "1Gi");
        self.site.cluster.create_pods(TEAM, "whole", NODES, &whole).await?;
        let done =
            |seen: &Seen<Pod>| seen.len() == NODES && seen.values().all(|pod| pod.node().is_some());
        let awaited = "Pods of the size of a node to find room on each";
        until_pods(&self.site.cluster.pods(TEAM), awaited, PATIENCE, done).await.map(drop)
    }
}

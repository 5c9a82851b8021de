//! What came of an attack, by what there is: Pods on Nodes, allocations of the daemons, the status, and
//! the sum of what is reserved.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::case::Outcome;
use super::world::{FAIR, INTRUDER, VICTIM, WAITER, World, until_bound, until_held};
use crate::error::{Doing as _, Error, Result, ensure};
use crate::metrics::sum;
use crate::objects::custom::{Custom, CustomKind, is_true};
use crate::objects::pods::{CORRIDOR_ID, FFM_HANDLE, PodState as _, PodTemplate};
use crate::observe::PATIENCE;
use crate::site::Site;

/// Reason of the Events that are looked for.
const REASON: &str = "TamperingDetected";
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Names of Events: those of before a restart say nothing about after it.
pub type Told = BTreeSet<String>;

impl World {
    /// While the scheduler that saw it all lives.
    pub async fn judge_living(&self, site: &Site) -> Result<()> {
        let case = &self.case;
        if let Some(expected) = &case.intruder {
            self.judge_intruder(site, expected).await?;
        }
        match case.without {
            Outcome::NoEffect | Outcome::Refused => {
                if case.below_floor {
                    self.ensure_still_below_floor(site).await?;
                }
                self.take_the_rest(site).await?;
                self.ensure_untouched(site).await?;
            }
            Outcome::Detected | Outcome::Oversubscribed => {}
            Outcome::ObjectGone => {
                self.object.until_gone().await?;
                site.until_allocations(&self.object, "swept", <[Value]>::is_empty).await?;
            }
            Outcome::ObjectAnew => self.judge_successor(site).await?,
        }
        let kind = self.case.kind.as_deref();
        self.ensure_told(site, kind, &Told::new(), "while it lived").await
    }

    /// After a restart.
    pub async fn judge_restarted(&self, site: &Site, told_before: &Told) -> Result<()> {
        match self.case.after_restart {
            Outcome::NoEffect | Outcome::Refused => self.ensure_untouched(site).await?,
            Outcome::Detected => {
                let kind = self.case.kind_after.as_deref().or(self.case.kind.as_deref());
                self.ensure_told(site, kind, told_before, "after the restart").await?;
            }
            Outcome::Oversubscribed => {
                let says_so = |it: &Value| is_true(it, "Oversubscribed");
                self.object
                    .until("oversubscribed", says_so)
                    .await
                    .map_err(|why| self.wrong(&why))?;
            }
            Outcome::ObjectGone => {}
            Outcome::ObjectAnew => {
                let successor = self.successor(site).await?;
                self.ensure_reserved(site, &successor).await?;
            }
        }
        // A Pod that was on a Node stays there, whatever became of the rest.
        let victim = self.pod(site, VICTIM).await?;
        ensure(victim.node().is_some(), || self.says("the victim is on no Node"))
    }

    async fn judge_intruder(&self, site: &Site, expected: &str) -> Result<()> {
        let namespace = if self.case.steps.iter().any(|step| step.guest && step.to == INTRUDER) {
            self.words.get("guest")
        } else {
            &self.namespace
        };
        match expected.split_once(": ") {
            Some(("held", words)) => {
                let message = until_held(site, namespace, INTRUDER).await?;
                ensure(message.contains(words), || {
                    self.says(&format!("{message:?} lacks {words:?}"))
                })
            }
            // By hand: it is there, and what it holds is seen by what is left.
            _ if expected == "placed" => Ok(()),
            _ => Err(Error::malformed("reading a case", expected)),
        }
    }

    /// A forged status lets no Pod pass; the daemon's own readings do, once they allow it.
    async fn ensure_still_below_floor(&self, site: &Site) -> Result<()> {
        self.create_fair(site).await?;
        until_held(site, &self.namespace, FAIR).await?;
        self.attack(site).await?;
        self.object
            .until("below its floor, by its controller's word", |it| {
                it["status"]["phase"] == "Degraded"
            })
            .await?;
        let fair = self.pod(site, FAIR).await?;
        ensure(fair.node().is_none(), || self.says("a Pod was bound below the floor"))?;
        self.relieve(site).await
    }

    async fn create_fair(&self, site: &Site) -> Result<()> {
        let rest = self.case.rest().to_string();
        let fair = PodTemplate::small().refer(&self.object, Some(&rest));
        fair.create(site.admin(), &self.namespace, FAIR).await.map(drop)
    }

    /// What is left goes to a Pod that asks for no more.
    async fn take_the_rest(&self, site: &Site) -> Result<()> {
        if !self.case.below_floor {
            self.create_fair(site).await?;
        }
        until_bound(site, &self.namespace, FAIR).await.map(drop)
    }

    /// Everything is as if nothing had happened.
    async fn ensure_untouched(&self, site: &Site) -> Result<()> {
        self.ensure_reserved(site, &self.object).await?;
        let (floor, handle) = (self.case.floor(), &self.handle);
        let (field, measured) = if self.case.bundle {
            ("floorGBs", "achievedGBs")
        } else {
            ("floorGbps", "achievableGbps")
        };
        let is_true_to_life = |it: &Value| {
            let status = &it["status"];
            let measured = status[measured].as_f64().unwrap_or_default();
            status["phase"] == "Ready"
                && status[self.object.kind.handle_field()] == handle.as_str()
                && status[field].as_f64() == Some(floor.into())
                && (f64::from(floor)..f64::from(floor) * 4.0).contains(&measured)
                && status["inUse"] == 2
                && !is_true(it, "Drained")
                && is_true(it, "Attested") == self.case.attested
                && it["metadata"]["finalizers"].as_array().is_some_and(|it| it.len() == 1)
        };
        self.object.until("as it was", is_true_to_life).await.map_err(|why| self.wrong(&why))?;
        for (name, is_bound) in [(VICTIM, true), (WAITER, false), (FAIR, true)] {
            let pod = self.pod(site, name).await?;
            ensure(pod.node().is_some() == is_bound, || {
                self.says(&format!("{name} is on {:?}", pod.node()))
            })?;
        }
        let fair = self.pod(site, FAIR).await?;
        let of_daemon = if self.case.bundle { FFM_HANDLE } else { CORRIDOR_ID };
        ensure(fair.annotation(of_daemon) == Some(handle), || {
            self.says(&format!("a Pod was bound with {:?}", fair.annotation(of_daemon)))
        })?;
        let member = if self.case.bundle { "ffm_handle" } else { "corridor_id" };
        let held = site.allocations_of(&self.object).await?;
        ensure(held.len() == 1 && held[0][member] == handle.as_str(), || {
            self.says(&format!("the daemon holds {held:?}, not just {handle}"))
        })
    }

    async fn judge_successor(&self, site: &Site) -> Result<()> {
        let successor = self.successor(site).await?;
        successor.until_ready().await?;
        until_bound(site, &self.namespace, WAITER).await?;
        self.create_fair(site).await?;
        until_bound(site, &self.namespace, FAIR).await?;
        self.ensure_reserved(site, &successor).await?;
        site.until_allocations(&self.object, "swept", <[Value]>::is_empty).await.map(drop)
    }

    async fn successor(&self, site: &Site) -> Result<Custom> {
        let now = self.object.get().await?;
        let uid = now["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        ensure(uid != self.object.uid, || self.says("the object is still the old one"))?;
        let api = self.object.kind.objects_in(site.admin(), &self.namespace);
        Ok(Custom { api, uid, ..self.object.clone() })
    }

    /// The whole floor is reserved: no more, no less.
    async fn ensure_reserved(&self, site: &Site, object: &Custom) -> Result<()> {
        let expected = f64::from(self.case.floor());
        let metric = match object.kind {
            CustomKind::MemoryBundle => "ffm_reserved_gbs",
            _ => "corridor_reserved_gbps",
        };
        let of_it = format!("namespace=\"{}\"", self.namespace);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let reserved = sum(&site.scheduler.metrics().await?, metric, &[&of_it]);
            if (reserved - expected).abs() < 0.001 {
                return Ok(());
            }
            ensure(Instant::now() < deadline, || {
                self.says(&format!("{reserved} are reserved of {expected}"))
            })?;
            sleep(LOOK_EVERY).await;
        }
    }

    /// That the tampering which the case names was reported, and none if it names none.
    async fn ensure_told(
        &self,
        site: &Site,
        kind: Option<&str>,
        before: &Told,
        when: &str,
    ) -> Result<()> {
        let Some(kind) = kind else {
            let told = self.told(site).await?;
            return ensure(told.is_empty(), || self.says(&format!("cries wolf: {told:?}")));
        };
        let deadline = Instant::now() + PATIENCE;
        loop {
            let told = self.told(site).await?;
            let is_it = |(name, message): &(String, String)| {
                !before.contains(name) && message.starts_with(&format!("{kind}: "))
            };
            if told.iter().any(is_it) {
                return Ok(());
            }
            ensure(Instant::now() < deadline, || {
                self.says(&format!("no Event tells of {kind} {when}: {told:?}"))
            })?;
            sleep(LOOK_EVERY).await;
        }
    }

    /// Name and message of every Event about tampering in the namespaces of this world.
    pub async fn told(&self, site: &Site) -> Result<Vec<(String, String)>> {
        let mut told = vec![];
        for namespace in [self.namespace.as_str(), self.words.get("guest")] {
            let events: Api<Event> = Api::namespaced(site.admin().clone(), namespace);
            let params = ListParams::default().fields(&format!("reason={REASON}"));
            let listed = events.list(&params).await.doing("listing Events")?;
            told.extend(listed.items.into_iter().map(|event| {
                (event.metadata.name.unwrap_or_default(), event.message.unwrap_or_default())
            }));
        }
        Ok(told)
    }

    async fn pod(&self, site: &Site, name: &str) -> Result<Pod> {
        let pods = site.cluster.pods(&self.namespace);
        pods.get(name).await.doing(format!("reading Pod {}/{name}", self.namespace))
    }

    fn says(&self, problem: &str) -> String {
        format!("{}: {problem}", self.case.title())
    }

    fn wrong(&self, problem: &Error) -> Error {
        Error::Violated(self.says(&problem.to_string()))
    }
}

/// Of each kind, what the scheduler has counted.
pub async fn counted(site: &Site, kind: &str) -> Result<f64> {
    let labels = format!("kind=\"{kind}\"");
    Ok(sum(&site.scheduler.metrics().await?, "corridor_tampering_total", &[&labels]))
}

//! Where one case plays, and the attack itself.

use std::time::Duration;

use futures::future::try_join;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::case::{Case, Outcome, Verb, Words, Write};
use crate::daemons_process::DaemonsProcess;
use crate::error::{Result, ensure};
use crate::objects::custom::{Custom, CustomKind, handle_of, ticket_of};
use crate::objects::pods::{GRANT, PodState as _, PodTemplate};
use crate::observe::PATIENCE;
use crate::site::Site;

const LOOK_EVERY: Duration = Duration::from_millis(50);
const BRIEF_SECONDS: &str = "1";
/// Longer than that.
const UNTIL_EXPIRED: Duration = Duration::from_secs(2);

pub const VICTIM: &str = "victim";
pub const WAITER: &str = "waiter";
pub const INTRUDER: &str = "intruder";
/// Takes what is left, when all is well.
pub const FAIR: &str = "fair";

/// A tenant whose object and ticket attackers may copy.
#[derive(Debug)]
pub struct Neighbour {
    pub object: Custom,
    pub ticket: String,
    /// An attestd with the site's own keys, whose tickets end at once.
    brief: DaemonsProcess,
}

impl Neighbour {
    const NAMESPACE: &str = "neighbour";

    pub async fn build(site: &Site) -> Result<Self> {
        site.cluster.ensure_namespace(Self::NAMESPACE).await?;
        let spec =
            json!({ "lanes": 4, "lambdaNm": [1550], "minGbps": 100, "attestationRequired": true });
        let object = site.create(CustomKind::Corridor, Self::NAMESPACE, "object", spec).await?;
        let ready = object.until_ready().await?;
        let ticket = ticket_of(&ready).unwrap_or_default().to_owned();
        ensure(!ticket.is_empty(), || "an attested Corridor has no ticket".into())?;
        let brief = ["--ticket-ttl-seconds", BRIEF_SECONDS].map(str::to_owned);
        let brief = DaemonsProcess::start(site.cluster.scheduler_binary(), &brief).await?;
        Ok(Self { object, ticket, brief })
    }

    /// A good ticket in every way for this object and its device, but that its time is over.
    async fn expired_ticket(&self, site: &Site, object: &Custom) -> Result<String> {
        let allocations = site.allocations_of(object).await?;
        let device = allocations.first().and_then(|it| it["device_id"].as_str());
        let device = device.unwrap_or_default();
        let ticket = self.brief.ticket_for(device, &object.uid, &object.namespace).await?;
        sleep(UNTIL_EXPIRED).await;
        Ok(ticket)
    }
}

/// One case, ready to be attacked.
#[derive(Debug)]
pub struct World {
    pub case: Case,
    pub namespace: String,
    pub object: Custom,
    /// The daemon's.
    pub handle: String,
    pub words: Words,
}

impl World {
    pub async fn build(
        site: &Site,
        neighbour: &Neighbour,
        case: Case,
        number: usize,
    ) -> Result<Self> {
        let namespace = format!("h-{number}");
        let guest = format!("{namespace}-guest");
        try_join(site.cluster.ensure_namespace(&namespace), site.cluster.ensure_namespace(&guest))
            .await?;
        let kind = if case.bundle { CustomKind::MemoryBundle } else { CustomKind::Corridor };
        let object = site.create(kind, &namespace, "object", case.spec()).await?;
        let ready = object.until_ready().await?;
        let handle = handle_of(&ready, kind);
        let asks = PodTemplate::small().refer(&object, Some(&case.larger_part().to_string()));
        asks.create(site.admin(), &namespace, VICTIM).await?;
        let victim = until_bound(site, &namespace, VICTIM).await?;
        asks.create(site.admin(), &namespace, WAITER).await?;
        until_held(site, &namespace, WAITER).await?;
        if case.below_floor {
            force(site, &object, &handle, case.floor() / 10).await?;
            object.until_phase("Degraded").await?;
        }
        let expired = if case.mentions("$expired_ticket") {
            neighbour.expired_ticket(site, &object).await?
        } else {
            String::new()
        };
        let words = Words(vec![
            ("namespace", namespace.clone()),
            ("guest", guest),
            ("reference", object.reference()),
            ("uid", object.uid.clone()),
            ("handle", handle.clone()),
            ("grant", victim.annotation(GRANT).unwrap_or_default().to_owned()),
            ("ticket", ticket_of(&ready).unwrap_or_default().to_owned()),
            ("expired_ticket", expired),
            ("neighbours_reference", neighbour.object.reference()),
            ("neighbours_uid", neighbour.object.uid.clone()),
            ("neighbours_ticket", neighbour.ticket.clone()),
        ]);
        Ok(Self { case, namespace, object, handle, words })
    }

    /// Does what the case says. Where policies are not installed no write is refused, unless the case
    /// says that the API server itself refuses it.
    pub async fn attack(&self, site: &Site) -> Result<()> {
        let mut refusals = vec![];
        for step in &self.case.steps {
            for _ in 0..step.times {
                let write = self.case.write(step, &self.words);
                if step.does == Verb::Await {
                    until_it_has_a_status(site, &write).await?;
                    continue;
                }
                refusals.extend(write.refusal(site.admin(), false).await?);
            }
        }
        let is_refused = self.case.without == Outcome::Refused;
        ensure(refusals.is_empty() != is_refused, || {
            format!("{}: the API server said {refusals:?}", self.case.title())
        })
    }

    /// The daemon measures what it should again.
    pub async fn relieve(&self, site: &Site) -> Result<()> {
        match self.object.kind {
            CustomKind::MemoryBundle => site.daemons.force_bundle(&self.handle, json!({})).await,
            _ => site.daemons.force_corridor(&self.handle, json!({})).await,
        }
    }
}

async fn until_it_has_a_status(site: &Site, read: &Write) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while read.read(site.admin()).await?["status"].is_null() {
        ensure(Instant::now() < deadline, || format!("{} never gets a status", read.path))?;
        sleep(LOOK_EVERY).await;
    }
    Ok(())
}

async fn force(site: &Site, object: &Custom, handle: &str, amount: u32) -> Result<()> {
    match object.kind {
        CustomKind::MemoryBundle => {
            site.daemons.force_bundle(handle, json!({ "achieved_GBs": amount })).await
        }
        _ => site.daemons.force_corridor(handle, json!({ "achievable_gbps": amount })).await,
    }
}

pub(super) async fn until_bound(site: &Site, namespace: &str, name: &str) -> Result<Pod> {
    site.cluster.until_pod(namespace, name, "bound", |pod| pod.node().is_some()).await
}

/// Waits until the scheduler says why the Pod waits, and returns its words.
pub(super) async fn until_held(site: &Site, namespace: &str, name: &str) -> Result<String> {
    let held = |pod: &Pod| pod.waiting_message().is_some() || pod.node().is_some();
    let pod = site.cluster.until_pod(namespace, name, "held with a reason", held).await?;
    ensure(pod.node().is_none(), || format!("Pod {namespace}/{name} must be held, but is bound"))?;
    Ok(pod.waiting_message().unwrap_or_default().to_owned())
}

//! A cluster with daemons beside it, and the scheduler with its controllers between both.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Namespace};
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::SYSTEM_NAMESPACE;
use crate::cluster::Cluster;
use crate::daemons_process::DaemonsProcess;
use crate::error::{Doing as _, Error, Result, ensure};
use crate::meddler::Meddler;
use crate::objects::custom::{Custom, CustomKind};
use crate::objects::nodes::NodeTemplate;
use crate::observe::{PATIENCE, until};
use crate::scheduler_process::SchedulerProcess;
use crate::supervised::Supervised;

/// The daemons have no watch; a look costs them nothing.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What differs from one site to another.
#[derive(Debug, Clone, Default)]
pub struct SiteOptions {
    /// Flags of the daemons beyond those that every test needs.
    pub daemons: Vec<String>,
    /// Flags of the scheduler beyond those that every site has.
    pub scheduler: Vec<String>,
    /// Merged into the `CorridorConfiguration`.
    pub settings: Value,
    /// `CorridorArgs` of the profile; null: no such document.
    pub corridor_args: Value,
    /// Whether the scheduler reaches the daemons only through a [`Meddler`].
    pub meddled: bool,
    /// Whether the scenario tampers with what only the scheduler writes. Else its log must not say so.
    pub tampered: bool,
}

/// Everything runs; all of it ends when this is dropped.
#[derive(Debug)]
pub struct Site {
    pub cluster: Cluster,
    // Dropped in this order: the scheduler first, so that it does not miss its daemons.
    pub scheduler: SchedulerProcess,
    pub meddler: Option<Meddler>,
    pub daemons: DaemonsProcess,
    /// Never started: the folder of the configuration, which goes with the test process.
    #[expect(dead_code, reason = "kept as long as the scheduler reads what is in it")]
    files: Supervised,
    /// The scheduler's, for its successors and replicas.
    flags: Vec<String>,
    is_tampered: bool,
    /// What the owners of this cluster's allocations begin with.
    pub owner_prefix: String,
}

impl Site {
    /// Starts daemons with nothing in them, and a scheduler that works with them.
    pub async fn start(cluster: &Cluster, options: SiteOptions) -> Result<Self> {
        cluster.ensure_namespace(SYSTEM_NAMESPACE).await?;
        cluster.create_nodes(3, &NodeTemplate::new("64", "256Gi")).await?;
        let daemons = DaemonsProcess::start(cluster.scheduler_binary(), &options.daemons).await?;
        let files = Supervised::prepare("configuration", Path::new("/bin/true"), |_| vec![])?;
        let configuration = configuration(&daemons.trusted_keys(), &options)?;
        let path = config_path(&files);
        fs::write(&path, configuration).doing(format!("writing {}", path.display()))?;
        let meddler =
            if options.meddled { Some(Meddler::start(daemons.port()).await?) } else { None };
        let flags = flags(&daemons, meddler.as_ref(), &files, &options.scheduler);
        let scheduler = start(cluster, &flags).await?;
        let owner_prefix = format!("{}/", cluster_uid(cluster.admin()).await?);
        let (cluster, is_tampered) = (cluster.clone(), options.tampered);
        Ok(Self { cluster, scheduler, meddler, daemons, files, flags, is_tampered, owner_prefix })
    }

    pub fn admin(&self) -> &Client {
        self.cluster.admin()
    }

    /// Ends the scheduler without a chance to do anything more, and leaves the site without one.
    pub async fn kill_scheduler(&mut self) -> Result<()> {
        self.scheduler.kill9_in_place().await
    }

    /// Starts the scheduler anew, with the same configuration. The former one must have ended.
    pub async fn restart_scheduler(&mut self) -> Result<()> {
        self.scheduler.kill9_in_place().await?;
        self.ensure_no_wolf();
        self.scheduler = start(&self.cluster, &self.flags).await?;
        Ok(())
    }

    /// Another scheduler with the same flags. They should elect a leader.
    pub async fn start_replica(&self) -> Result<SchedulerProcess> {
        start(&self.cluster, &self.flags).await
    }

    pub async fn create(
        &self,
        kind: CustomKind,
        namespace: &str,
        name: &str,
        spec: Value,
    ) -> Result<Custom> {
        Custom::create(self.admin(), kind, namespace, name, spec).await
    }

    pub fn owner_of(&self, object: &Custom) -> String {
        format!("{}{}", self.owner_prefix, object.uid)
    }

    /// What the daemon of its kind has allocated to an object.
    pub async fn allocations_of(&self, object: &Custom) -> Result<Vec<Value>> {
        self.allocations(object.kind, &self.owner_of(object)).await
    }

    async fn allocations(&self, kind: CustomKind, owner_prefix: &str) -> Result<Vec<Value>> {
        match kind {
            CustomKind::MemoryBundle => self.daemons.bundles(owner_prefix).await,
            CustomKind::Corridor | CustomKind::AttestationPolicy => {
                self.daemons.corridors(owner_prefix).await
            }
        }
    }

    /// Waits until what the daemon has allocated to an object is as `done` says.
    pub async fn until_allocations(
        &self,
        object: &Custom,
        awaited: &str,
        done: impl Fn(&[Value]) -> bool,
    ) -> Result<Vec<Value>> {
        self.until_allocations_within(PATIENCE, object, awaited, done).await
    }

    pub async fn until_allocations_within(
        &self,
        patience: Duration,
        object: &Custom,
        awaited: &str,
        done: impl Fn(&[Value]) -> bool,
    ) -> Result<Vec<Value>> {
        let deadline = Instant::now() + patience;
        loop {
            let allocations = self.allocations_of(object).await?;
            if done(&allocations) {
                return Ok(allocations);
            }
            if Instant::now() > deadline {
                return Err(Error::TimedOut {
                    awaited: format!("the allocations of {} to be {awaited}", object.title()),
                    seconds: patience.as_secs(),
                    seen: format!("{allocations:?}"),
                });
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// The daemons keep nothing for this cluster any more.
    pub async fn ensure_nothing_left(&self) -> Result<()> {
        for kind in [CustomKind::Corridor, CustomKind::MemoryBundle] {
            let left = self.allocations(kind, &self.owner_prefix).await?;
            ensure(left.is_empty(), || {
                format!("{} allocations of {}s are left: {left:?}", left.len(), kind.name())
            })?;
        }
        Ok(())
    }

    /// Waits for an Event about an object whose message contains all of `parts`.
    pub async fn until_event_saying(&self, object: &Custom, parts: &[&str]) -> Result<Event> {
        let says_it = |event: &Event| {
            let message = event.message.as_deref().unwrap_or_default();
            parts.iter().all(|part| message.contains(part))
        };
        self.until_event_that(object, &format!("that says {parts:?}"), says_it).await
    }

    /// Waits for an Event about an object with this reason.
    pub async fn until_event(&self, object: &Custom, reason: &str) -> Result<Event> {
        let is_it = |event: &Event| event.reason.as_deref() == Some(reason);
        self.until_event_that(object, &format!("with the reason {reason}"), is_it).await
    }

    async fn until_event_that(
        &self,
        object: &Custom,
        which: &str,
        is_it: impl Fn(&Event) -> bool,
    ) -> Result<Event> {
        let awaited = format!("an Event about {} {which}", object.title());
        let events: Api<Event> = Api::namespaced(self.admin().clone(), &object.namespace);
        let is_it = |event: &Event| is_about(event, object) && is_it(event);
        let seen = until(&events, &awaited, PATIENCE, |seen| seen.values().any(&is_it)).await?;
        let found = seen.into_values().find(is_it);
        found.ok_or_else(|| Error::malformed(awaited, "it vanished"))
    }

    /// How many Events there are about an object with this reason, now.
    pub async fn count_events(&self, object: &Custom, reason: &str) -> Result<usize> {
        let events: Api<Event> = Api::namespaced(self.admin().clone(), &object.namespace);
        let all = events.list(&ListParams::default()).await.doing("listing Events")?;
        let is_it =
            |event: &&Event| is_about(event, object) && event.reason.as_deref() == Some(reason);
        Ok(all.iter().filter(is_it).count())
    }
}

fn is_about(event: &Event, object: &Custom) -> bool {
    event.involved_object.uid.as_deref() == Some(&object.uid)
}

impl Site {
    /// Reports of tampering where there was none would soon be ignored.
    fn ensure_no_wolf(&self) {
        let log = self.scheduler.log();
        let wolf = log.lines().find(|line| line.contains("\"message\":\"tampering"));
        let is_fine = self.is_tampered || wolf.is_none() || std::thread::panicking();
        assert!(is_fine, "the scheduler cries wolf: {wolf:?}");
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.ensure_no_wolf();
    }
}

async fn start(cluster: &Cluster, flags: &[String]) -> Result<SchedulerProcess> {
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    cluster.start_scheduler_with(&flags).await
}

fn flags(
    daemons: &DaemonsProcess,
    meddler: Option<&Meddler>,
    files: &Supervised,
    extra: &[String],
) -> Vec<String> {
    let url = meddler.map_or_else(|| daemons.url(), Meddler::url);
    let config = config_path(files);
    let config = config.to_string_lossy();
    let flags = [
        ["--backends", "http"],
        ["--corrd-url", &url],
        ["--memqosd-url", &url],
        ["--attestd-url", &url],
        ["--config", &config],
    ];
    flags.as_flattened().iter().map(ToString::to_string).chain(extra.to_vec()).collect()
}

fn config_path(files: &Supervised) -> PathBuf {
    files.folder().join("config.yaml")
}

/// The daemons' own document with these settings merged in.
pub(crate) fn with_settings(trusted_keys: &Path, settings: &Value) -> Result<Value> {
    let doing = || format!("reading {}", trusted_keys.display());
    let text = fs::read_to_string(trusted_keys).doing(doing())?;
    let mut process: Value =
        serde_saphyr::from_str(&text).map_err(|problem| Error::malformed(doing(), problem))?;
    merge(&mut process, settings);
    Ok(process)
}

/// The same, and the profile's. JSON is YAML too.
fn configuration(trusted_keys: &Path, options: &SiteOptions) -> Result<String> {
    let process = with_settings(trusted_keys, &options.settings)?;
    if options.corridor_args.is_null() {
        return Ok(process.to_string());
    }
    let mut args = json!({ "apiVersion": "corridoros.io/v1alpha1", "kind": "CorridorArgs" });
    merge(&mut args, &options.corridor_args);
    let profile = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{
            "schedulerName": crate::SCHEDULER_NAME,
            "pluginConfig": [{ "name": "Corridor", "args": args }],
        }],
    });
    Ok(format!("{process}\n---\n{profile}\n"))
}

/// As a JSON merge patch, without its removals.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (_, Value::Null) => {}
        (into, from) => *into = from.clone(),
    }
}

async fn cluster_uid(client: &Client) -> Result<String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let awaited = "the namespace kube-system";
    let mut seen =
        until(&namespaces, awaited, PATIENCE, |seen| seen.contains_key("kube-system")).await?;
    let uid = seen.remove("kube-system").and_then(|namespace| namespace.metadata.uid);
    uid.ok_or_else(|| Error::malformed(awaited, "it has no UID"))
}

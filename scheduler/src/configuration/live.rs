//! Settings that change while the process runs. A new version holds at once, or is refused and the last good
//! one stays; either way an Event on the ConfigMap and metrics report it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use controllers::Settings;
use driver::Notice;
use engine::EngineConfig;
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client};
use prometheus::{IntCounterVec, IntGauge, Opts, Registry};
use tokio::sync::watch::Sender;
use tracing::{info, warn};

use super::change::SettingsChange;
use super::config_map::{self, ConfigMapName};
use super::{Configuration, Known};
use crate::client::WATCH_SECONDS_MAX;

/// The ConfigMap that the settings come from, and the configuration that runs.
pub struct Live {
    name: ConfigMapName,
    replace_default: bool,
    running: Configuration,
    /// The version that was judged last: a list shows it again.
    judged: Option<ConfigMap>,
}

/// The parts of the process that act on new settings.
pub struct Listeners {
    pub engine: Arc<Sender<EngineConfig>>,
    pub controllers: Sender<Settings>,
    pub reloads: Reloads,
    /// Writes Events, while this replica leads.
    pub client: Client,
}

#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    #[error(
        "--config-map {name}: it cannot be read: {source}; create it, and let the ServiceAccount get, list \
         and watch it"
    )]
    Unreachable { name: ConfigMapName, source: Box<kube::Error> },
    #[error("--config-map {name}: {why}")]
    Refused { name: ConfigMapName, why: String },
}

impl Live {
    /// Reads it once, for the start.
    pub async fn read(
        client: &Client,
        name: ConfigMapName,
        replace_default: bool,
        known: Known<'_>,
    ) -> Result<Self, LiveError> {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &name.namespace);
        let map = match until_there(&maps, &name).await {
            Ok(map) => map,
            Err(source) => {
                return Err(LiveError::Unreachable { name, source: Box::new(source) });
            }
        };
        match config_map::read(&map, replace_default) {
            Ok(running) => {
                let running = running.of(known);
                Ok(Self { name, replace_default, running, judged: Some(map) })
            }
            Err(why) => Err(LiveError::Refused { name, why }),
        }
    }

    /// What holds.
    pub fn configuration(&self) -> &Configuration {
        &self.running
    }

    /// Follows it for ever.
    pub async fn follow(mut self, client: Client, listeners: Listeners) {
        let maps: Api<ConfigMap> = Api::namespaced(client, &self.name.namespace);
        let only = watcher::Config::default()
            .fields(&format!("metadata.name={}", self.name.name))
            .timeout(WATCH_SECONDS_MAX);
        let mut news = watch(maps, only).default_backoff().boxed();
        while let Some(next) = news.next().await {
            match next {
                Ok(Event::Apply(map) | Event::InitApply(map)) => {
                    self.judge(map, &listeners).await;
                }
                Ok(Event::Delete(_)) => {
                    warn!(config_map = %self.name, "deleted; the settings stay as they are");
                    self.judged = None;
                }
                Ok(Event::Init | Event::InitDone) => {}
                Err(error) => {
                    warn!(config_map = %self.name, %error, "cannot be followed; trying again");
                }
            }
        }
    }

    async fn judge(&mut self, map: ConfigMap, listeners: &Listeners) {
        if self.judged.as_ref().is_some_and(|judged| judged.data == map.data) {
            return;
        }
        let verdict = config_map::read(&map, self.replace_default);
        let (is_warning, reason, message) = match verdict {
            Ok(new) => {
                let change = SettingsChange::between(&self.running, &new);
                let message = self.take(change, &new, listeners);
                (false, "ConfigurationApplied", message)
            }
            Err(why) => {
                (true, "ConfigurationRefused", format!("{why}; the settings before it stay"))
            }
        };
        listeners.reloads.count(!is_warning);
        if is_warning {
            warn!(config_map = %self.name, message, "configuration refused");
        } else {
            info!(config_map = %self.name, message, "configuration applied");
        }
        let notice = Notice {
            api_version: "v1",
            kind: "ConfigMap",
            namespace: &self.name.namespace,
            name: &self.name.name,
            uid: map.metadata.uid.as_deref().unwrap_or_default(),
            is_warning,
            reason,
            message: &message,
        };
        if let Err(error) = notice.write(&listeners.client).await {
            // Another replica leads, and writes it.
            tracing::debug!(%error, "the Event about the configuration was not written");
        }
        self.judged = Some(map);
    }

    fn take(
        &mut self,
        change: SettingsChange,
        new: &Configuration,
        listeners: &Listeners,
    ) -> String {
        for note in &new.scheduler.notes {
            warn!("configuration: {note}");
        }
        if change.is_nothing() {
            return "nothing changes".to_owned();
        }
        let message = change.message();
        if let Some(engine) = change.engine {
            self.running.scheduler.engine = engine.clone();
            listeners.engine.send_replace(engine);
        }
        if let Some(settings) = change.settings {
            self.running.settings = settings.clone();
            listeners.controllers.send_replace(settings);
        }
        message
    }
}

/// An installation creates the ConfigMap last: a moment later it is there.
async fn until_there(maps: &Api<ConfigMap>, name: &ConfigMapName) -> kube::Result<ConfigMap> {
    const PATIENCE: Duration = Duration::from_secs(30);
    const PAUSE: Duration = Duration::from_secs(1);
    let began = Instant::now();
    loop {
        match maps.get(&name.name).await {
            Err(kube::Error::Api(status))
                if status.is_not_found() && began.elapsed() < PATIENCE =>
            {
                info!(config_map = %name, "waiting for the settings to be created");
                tokio::time::sleep(PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}

/// How new versions were received.
#[derive(Debug)]
pub struct Reloads {
    total: IntCounterVec,
    last_successful: IntGauge,
}

impl Reloads {
    /// In the registry that the process serves.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let total = Opts::new(
            "corridor_configuration_reloads_total",
            "New versions of the ConfigMap with the settings, by result: applied, refused.",
        );
        let reloads = Self {
            total: IntCounterVec::new(total, &["result"])?,
            last_successful: IntGauge::new(
                "corridor_configuration_last_reload_successful",
                "Whether the present version of the ConfigMap with the settings was applied (1) or refused (0).",
            )?,
        };
        for result in ["applied", "refused"] {
            reloads.total.with_label_values(&[result]).reset();
        }
        // The one that the process started with.
        reloads.last_successful.set(1);
        registry.register(Box::new(reloads.total.clone()))?;
        registry.register(Box::new(reloads.last_successful.clone()))?;
        Ok(reloads)
    }

    fn count(&self, applied: bool) {
        let result = if applied { "applied" } else { "refused" };
        self.total.with_label_values(&[result]).inc();
        self.last_successful.set(i64::from(applied));
    }
}

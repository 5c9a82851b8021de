//! A control plane, daemons, and one scheduler whose every call can be stopped.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::api::ApiResource;
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::gate::{CrashGate, EVERYBODY};
use crate::error::Result;
use crate::objects::nodes::NodeTemplate;
use crate::scheduler_process::SchedulerProcess;
use crate::stage::Stage;
use crate::versions::{Versions, kind};

/// What an answer that was delivered may still set off in the process, it sets off within this time;
/// its next call is held anyway.
const LAST_THOUGHT: Duration = Duration::from_millis(30);

/// Everything that stories are played with.
#[derive(Debug)]
pub struct World {
    pub gate: Arc<CrashGate>,
    pub versions: Versions,
    pub stage: Stage,
    scheduler: Mutex<Option<SchedulerProcess>>,
}

impl World {
    /// Everything but the scheduler.
    pub async fn start() -> Result<Self> {
        let gate = CrashGate::new();
        let stage = Stage::start(Arc::clone(&gate) as _).await?;
        stage.cluster.create_nodes(2, &NodeTemplate::new("64", "256Gi")).await?;
        let versions = Versions::start(stage.cluster.admin(), &recorded_kinds()).await?;
        Ok(Self { gate, versions, stage, scheduler: Mutex::new(None) })
    }

    /// Starts the scheduler and waits until it is ready; or until it has come to the crash point that
    /// is planned for a step of no story in particular.
    pub async fn start_scheduler(&self) -> Result<()> {
        let everybody = [EVERYBODY.to_owned()];
        let starting = self.stage.start_scheduler();
        let struck = self.gate.until_struck(&everybody, Duration::MAX);
        tokio::select! {
            started = starting => *self.scheduler.lock().await = Some(started?),
            // Dropping what starts kills it, exactly where it stands.
            true = struck => sleep(LAST_THOUGHT).await,
        }
        Ok(())
    }

    /// Kills the scheduler where it stands. When this returns, nothing of it is under way.
    pub async fn kill_scheduler(&self) -> Result<()> {
        sleep(LAST_THOUGHT).await;
        if let Some(scheduler) = self.scheduler.lock().await.take() {
            scheduler.kill9_quietly().await?;
        }
        self.stage.bury().await?;
        self.gate.thaw();
        Ok(())
    }

    /// The last lines that the running scheduler has written.
    pub async fn scheduler_log(&self) -> String {
        self.scheduler.lock().await.as_ref().map(SchedulerProcess::log).unwrap_or_default()
    }

    pub fn admin(&self) -> &Client {
        self.stage.cluster.admin()
    }
}

/// The kinds that a story is told by.
fn recorded_kinds() -> [ApiResource; 4] {
    ["pods", "corridors", "memorybundles", "attestationpolicies"].map(kind)
}

//! `corridor-scheduler demo`: the whole product with nothing installed.
//!
//! An in-memory API, five fake nodes, simulated daemons, and the scheduler with its controllers,
//! unchanged: when the corridor degrades, it does so in corrd. The story is a test of its own: a step
//! that does not happen ends it with an error.

mod cast;
mod narrator;
mod story;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use controllers::{Controllers, Settings};
use driver::{Driver, Health, Metrics, Tenure};
use engine::EngineConfig;
use futures::FutureExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use sim::ApiServer;
use tempfile::TempDir;
use tokio::sync::oneshot;

use self::narrator::Narrator;
use self::story::Story;
use crate::args::DemoArgs;
use crate::backends::{self, BackendsError, Chosen};
use crate::client::{self, ClientError};
use crate::http::{self, Status};
use crate::stop;

#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error("cannot set the scene: {0}")]
    Scene(#[from] io::Error),
    #[error("cannot set up metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    #[error("the demo's own kubeconfig cannot be used: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Backends(#[from] BackendsError),
    #[error("the simulated corrd refused a call: {0}")]
    Corrd(String),
    #[error("the in-memory API refused a call: {0}")]
    Api(#[from] kube::Error),
    #[error("this did not happen within {seconds} s: {step}")]
    StepMissing { step: String, seconds: u64 },
    #[error("{step} was to have {expected}, and has not")]
    StepWrong { step: String, expected: String },
}

pub async fn demo(args: DemoArgs) -> Result<(), DemoError> {
    let stop = stop::requested()?;
    let scene = Scene::set(args.seed).await?;
    let narrator = Narrator::new();
    let story = Story::new(scene.client.clone(), &scene.backends, narrator);
    let told = tokio::select! {
        told = story.tell() => told,
        () = stop => return scene.clear().await,
    };
    if let Err(error) = told {
        scene.clear().await?;
        return Err(error);
    }
    if !args.once {
        let stop = stop::requested()?;
        narrator.invite(&scene.kubeconfig_path(), scene.http);
        stop.await;
    }
    scene.clear().await
}

/// Everything that runs behind the story.
struct Scene {
    api: ApiServer,
    client: kube::Client,
    http: SocketAddr,
    folder: TempDir,
    backends: Chosen,
    scheduler: tokio::task::JoinHandle<()>,
    stop_scheduler: oneshot::Sender<()>,
}

impl Scene {
    async fn set(seed: u64) -> Result<Self, DemoError> {
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let api = ApiServer::start(anywhere, crds::all()).await?;
        let folder = tempfile::Builder::new().prefix("corridor-demo-").tempdir()?;
        std::fs::write(folder.path().join(KUBECONFIG), api.kubeconfig())?;
        let kubeconfig = Kubeconfig::from_yaml(&api.kubeconfig())?;
        let options = KubeConfigOptions::default();
        let mut access = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        client::prepare(&mut access);
        let client = client::unfenced(&access)?;
        let tenure = Tenure::unopposed();
        let (health, metrics) = (Arc::new(Health::default()), Arc::new(Metrics::new("demo")?));
        let backends = backends::simulated(seed).await?;
        let controllers = Controllers::new(
            client.clone(),
            backends.backends.clone(),
            Settings { cluster_name: "demo".to_owned(), ..Settings::default() },
        )
        .counting_tampering(metrics.tampering());
        let engine = EngineConfig { seed, ..EngineConfig::default() };
        let driver =
            Driver::new(client.clone(), tenure.clone(), engine, metrics.clone(), health.clone())
                .with_own_writes(controllers.own_writes());
        let status = Status {
            health,
            metrics,
            controllers: controllers.metrics(),
            questions: driver.questions(),
            journal: driver.journal(),
            tenure,
            shadow: None,
        };
        let http = http::serve(anywhere, http::routes(status)).await?;
        let (stop_scheduler, stopped) = oneshot::channel();
        let scheduler = tokio::spawn(async move {
            let stop = stopped.map(drop).shared();
            let (driver, controllers) =
                tokio::join!(driver.run(stop.clone()), controllers.run(stop));
            if let Err(error) = driver {
                tracing::warn!(%error, "the scheduler did not stop in order");
            }
            if let Err(error) = controllers {
                tracing::warn!(%error, "the controllers did not stop in order");
            }
        });
        Ok(Self { api, client, http, folder, backends, scheduler, stop_scheduler })
    }

    fn kubeconfig_path(&self) -> String {
        self.folder.path().join(KUBECONFIG).display().to_string()
    }

    async fn clear(self) -> Result<(), DemoError> {
        let _ = self.stop_scheduler.send(());
        let _ = self.scheduler.await;
        self.backends.stop().await;
        self.api.stop().await;
        self.folder.close()?;
        Ok(())
    }
}

const KUBECONFIG: &str = "kubeconfig";

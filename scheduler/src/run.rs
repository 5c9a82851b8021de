//! `corridor-scheduler run`: one replica against a real API server.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use controllers::{Controllers, Settings};
use driver::{
    Driver, DriverError, Election, Fence, Health, Leaving, Metrics, ReplyCoalescing,
    SchedulerConfiguration, Stuck, Tenure,
};
use engine::EventQueue;
use futures::{FutureExt, TryFutureExt};
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use tracing::{error, info, warn};

use crate::args::RunArgs;
use crate::backends::{self, BackendsError};
use crate::client::{self, ClientError};
use crate::configuration::{
    Configuration, ConfigurationError, Known, Listeners, Live, LiveError, Reloads,
};
use crate::http::{self, HttpsError, Status};
use crate::memory::cache_limit;
use crate::own_thread::OwnThread;
use crate::{BAD_CONFIGURATION, FAILURE, account, shadow, stop};

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error(transparent)]
    Live(#[from] LiveError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] io::Error),
    #[error("cannot make the folder of --journal-dir {path}: {source}")]
    JournalDir { path: PathBuf, source: io::Error },
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    #[error("cannot set up metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    #[error("cannot serve HTTP on {address}: {source}; choose another address with --http")]
    Http { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Https(#[from] HttpsError),
    #[error(transparent)]
    Backends(#[from] BackendsError),
    #[error(transparent)]
    Controllers(#[from] controllers::RunError),
    #[error(transparent)]
    Driver(#[from] DriverError),
    #[error("{0}; only a new start helps")]
    Stuck(#[from] Stuck),
    #[error("the task that takes part in the election has ended")]
    Election,
}

impl RunError {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Client(_) | Self::Configuration(_) | Self::Live(_) | Self::JournalDir { .. } => {
                BAD_CONFIGURATION
            }
            Self::Backends(error) => error.exit_code(),
            Self::Https(error) => error.exit_code(),
            Self::Signals(_)
            | Self::Thread(_)
            | Self::Metrics(_)
            | Self::Http { .. }
            | Self::Controllers(_)
            | Self::Driver(_)
            | Self::Stuck(_)
            | Self::Election => FAILURE,
        }
    }
}

pub async fn run(args: RunArgs) -> Result<(), RunError> {
    let stop = stop::requested().map_err(RunError::Signals)?.shared();
    if let Some(of) = &args.shadow {
        return Box::pin(shadow::look_on(&args, of, stop)).await;
    }
    let access = client::find(args.kubeconfig.as_deref()).await?;
    let (configuration, live) = configure(&args, &access).await?;
    let chosen = backends::choose(&args, &configuration.corridor).await?;
    let candidacy = Candidacy::new(&args, &configuration.scheduler, &access)?;
    let client = client::fenced(&access, &candidacy.fence)?;
    tokio::spawn(account::look(client::unfenced(&access)?));
    let (health, metrics) =
        (Arc::new(Health::default()), Arc::new(Metrics::new(&args.cluster_name)?));
    let controllers =
        Controllers::new(client.clone(), chosen.backends.clone(), configuration.settings.clone())
            .counting_tampering(metrics.tampering());
    let config = configuration.scheduler.engine.clone();
    let tenure = candidacy.tenure.clone();
    let threads = Threads::new().map_err(RunError::Thread)?;
    let reading = threads.reading.inside(|| client::fenced(&access, &candidacy.fence))?;
    let writing = threads.deciding.inside(|| client::writing(&access, &candidacy.fence))?;
    let driver = Driver::new(reading, tenure.clone(), config, metrics.clone(), health.clone())
        .writing_with(writing, threads.reading.handle())
        .allowing(threads.coalescing.clone())
        .with_own_writes(controllers.own_writes())
        .expecting(chosen.configured());
    let driver = with_journal_folder(driver, args.journal_dir.as_deref()).await?;
    let new_settings = watch::Sender::new(configuration.settings);
    let for_controllers = new_settings.subscribe();
    if let Some(live) = live {
        let listeners = Listeners {
            engine: driver.settings(),
            controllers: new_settings,
            reloads: Reloads::register(&metrics.registry)?,
            client,
        };
        tokio::spawn(live.follow(client::unfenced(&access)?, listeners));
    }
    let status = Status {
        health: health.clone(),
        metrics,
        controllers: controllers.metrics(),
        questions: driver.questions(),
        journal: driver.journal(),
        tenure: tenure.clone(),
        shadow: None,
    };
    let routes = http::routes(status);
    let address = http::serve(args.http, routes.clone())
        .await
        .map_err(|source| RunError::Http { address: args.http, source })?;
    // Not behind the fence: a replica that follows is asked for its metrics, too.
    let https = http::serve_https(&args.https, routes, client::unfenced(&access)?).await?;
    log_start(address, https, candidacy.election.is_some());
    // Neither half runs on without the other: a restart of the process starts both.
    let halves = async {
        tokio::try_join!(
            drive(threads, driver, stop.clone()),
            while_leading(&controllers, &tenure, for_controllers, stop).map_err(RunError::from)
        )
    };
    Box::pin(as_candidate(candidacy.election, &health, halves.map_ok(drop))).await?;
    chosen.stop().await;
    info!("stopped");
    Ok(())
}

fn log_start(http: SocketAddr, https: Option<SocketAddr>, leader_elect: bool) {
    info!(
        version = env!("CARGO_PKG_VERSION"),
        scheduler_name = crds::SCHEDULER_NAME,
        %http,
        https = https.map(tracing::field::display),
        leader_elect,
        "started"
    );
}

/// Where the driver works: it decides and writes on one thread, and what it reads is read beside it.
struct Threads {
    deciding: OwnThread,
    reading: OwnThread,
    coalescing: ReplyCoalescing,
}

impl Threads {
    fn new() -> io::Result<Self> {
        let coalescing = ReplyCoalescing::default();
        let deciding = OwnThread::new("deciding", &coalescing)?;
        let reading = OwnThread::new("reading", &coalescing)?;
        Ok(Self { deciding, reading, coalescing })
    }
}

async fn drive(
    threads: Threads,
    driver: Driver,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), RunError> {
    let outcome = tokio::select! {
        outcome = threads.deciding.run(driver.run(stop)) => outcome,
        _ = threads.reading.run(pending::<()>()) => None,
    };
    match outcome {
        Some(outcome) => outcome.map_err(RunError::from),
        None => Err(RunError::Thread(io::Error::other("one of the driver's threads has ended"))),
    }
}

/// A folder that does not answer within this time costs files of the journal, and not the start.
const FOLDER_PATIENCE: Duration = Duration::from_secs(5);

/// A folder that cannot be made is an error at the start, and not when a journal is to be saved.
async fn with_journal_folder(driver: Driver, folder: Option<&Path>) -> Result<Driver, RunError> {
    let Some(path) = folder.map(Path::to_owned) else { return Ok(driver) };
    let to_make = path.clone();
    let made = spawn_blocking(move || std::fs::create_dir_all(to_make));
    match timeout(FOLDER_PATIENCE, made).await {
        Ok(Ok(Err(source))) => return Err(RunError::JournalDir { path, source }),
        Ok(Ok(Ok(())) | Err(_)) => {}
        Err(_) => warn!(
            path = %path.display(),
            "the folder of --journal-dir does not answer; scheduling goes on without its files"
        ),
    }
    Ok(driver.with_journal_folder(path))
}

/// The Lease is kept until the last call has ended, then given back. So it is when the work fails, or one of its threads
/// is stuck: once no write of this process can take effect any more.
async fn as_candidate(
    election: Option<Election>,
    health: &Health,
    work: impl Future<Output = Result<(), RunError>>,
) -> Result<(), RunError> {
    let (leave, leaving) = tokio::sync::oneshot::channel();
    let leaving = leaving.map(|how| how.unwrap_or(Leaving::Broken));
    let mut election = election.map(|it| tokio::spawn(it.run(leaving)));
    let outcome = tokio::select! {
        outcome = AssertUnwindSafe(work).catch_unwind() => outcome,
        stuck = health.until_stuck() => Ok(Err(stuck.into())),
        () = ended(election.as_mut()) => Ok(Err(RunError::Election)),
    };
    let how = match &outcome {
        Ok(Ok(())) => Leaving::InOrder,
        Ok(Err(error)) => {
            error!(%error, "ending");
            health.fail(error.to_string());
            Leaving::Broken
        }
        Err(_panic) => {
            health.fail("the scheduler panicked".to_owned());
            Leaving::Broken
        }
    };
    // Without an election, or where it has ended, this is not heard.
    if let (Ok(()), Some(election)) = (leave.send(how), election) {
        // It returns nothing of interest.
        let _ = election.await;
    }
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Ready when the task has ended though it was not told to: it has panicked.
async fn ended(task: Option<&mut JoinHandle<()>>) {
    match task {
        Some(task) => drop(task.await),
        None => pending().await,
    }
}

/// What holds at the start, and where it comes from if it can change.
pub async fn configure(
    args: &RunArgs,
    access: &kube::Config,
) -> Result<(Configuration, Option<Live>), RunError> {
    let events = EventQueue { waiting_max: args.events_waiting_max };
    let cache = cache_limit(args.cache_mib_max);
    let known = Known { cluster_name: &args.cluster_name, seed: args.seed, events, cache };
    let live = match &args.config_map {
        Some(name) => {
            let client = client::unfenced(access)?;
            Some(Live::read(&client, name.clone(), takes_default(args), known).await?)
        }
        None => None,
    };
    let configuration = match &live {
        Some(live) => live.configuration().clone(),
        None => Configuration::load(&args.config, takes_default(args))?.of(known),
    };
    for note in &configuration.scheduler.notes {
        warn!("configuration: {note}");
    }
    Ok((configuration, live))
}

/// A shadow takes nothing from kube-scheduler.
fn takes_default(args: &RunArgs) -> bool {
    args.replace_default || args.shadow.is_some()
}

/// How this replica comes to lead, and what keeps it from writing when it does not.
struct Candidacy {
    /// None: it is the only one.
    election: Option<Election>,
    tenure: Tenure,
    fence: Fence,
}

/// Without an election there is no deadline to meet: as long as a call may take.
const UNOPPOSED_WRITE_TIMEOUT: Duration = Duration::from_secs(10);

impl Candidacy {
    fn new(
        args: &RunArgs,
        configuration: &SchedulerConfiguration,
        access: &kube::Config,
    ) -> Result<Self, ClientError> {
        if !args.leader_elect.or(configuration.leader_elect).unwrap_or(true) {
            let tenure = Tenure::unopposed();
            let fence = Fence::new(tenure.clone(), UNOPPOSED_WRITE_TIMEOUT);
            return Ok(Self { election: None, tenure, fence });
        }
        let settings = configuration.election.clone();
        let write_timeout = settings.write_timeout();
        // Connections of its own: a renewal waits behind no other call.
        let election = Election::new(client::unfenced(access)?, settings);
        let tenure = election.tenure();
        let fence = Fence::new(tenure.clone(), write_timeout);
        Ok(Self { election: Some(election), tenure, fence })
    }
}

/// The controllers keep nothing that a look at their objects and daemons does not bring back, so they
/// run only while this replica leads, and begin anew with other settings.
pub async fn while_leading(
    controllers: &Controllers,
    tenure: &Tenure,
    mut settings: watch::Receiver<Settings>,
    stop: impl Future<Output = ()> + Send + Clone,
) -> Result<(), controllers::RunError> {
    loop {
        let term = tokio::select! {
            () = stop.clone() => return Ok(()),
            term = tenure.begun() => term,
        };
        controllers.set(settings.borrow_and_update().clone());
        let until = async {
            tokio::select! {
                () = tenure.ended(&term) => {}
                Ok(()) = settings.changed() => {}
            }
        };
        let stopped = tokio::select! {
            ended = controllers.run(until) => { ended?; false }
            () = stop.clone() => true,
        };
        if stopped {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;

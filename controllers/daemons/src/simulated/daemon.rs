//! The running daemons: ledger, store and feed behind one lock, so that a reply is given only for
//! what is on disk, and readers see every change.

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::StartError;
use super::config::SimulatedConfig;
use super::faults::Faults;
use super::feed::Feed;
use super::ledger::{Ledger, Plan, Terms};
use super::metrics::Metrics;
use super::records::Change;
use super::store::{Store, StoreError};
use crate::identity::hex;
use crate::refusal::{Refusal, RefusalReason};
use crate::telemetry::{Revision, TelemetryPage};
use crate::ticket::{Algorithm, SigningKey, TrustedKey, TrustedKeys};

#[derive(Debug)]
pub(super) struct Daemon {
    pub(super) config: SimulatedConfig,
    pub(super) terms: Terms,
    pub(super) faults: Faults,
    pub(super) metrics: Metrics,
    trusted_keys: Vec<TrustedKey>,
    state: Mutex<State>,
    /// Moves when the feed has something new.
    news: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    store: Store,
    ledger: Ledger,
    feed: Feed,
}

impl Daemon {
    pub(super) fn open(config: SimulatedConfig) -> Result<Arc<Self>, StartError> {
        let es256 = SigningKey::derive(Algorithm::Es256, config.seed)?;
        let ml_dsa = SigningKey::derive(Algorithm::MlDsa65, config.seed)?;
        let trusted_keys = vec![es256.trusted()?, ml_dsa.trusted()?];
        let terms = Terms {
            seed: config.seed,
            pools: config.pools,
            lease_ttl: config.lease_ttl,
            ticket_ttl: config.ticket_ttl,
            tickets_required: config.tickets_required,
            es256,
            ml_dsa,
            trusted: TrustedKeys::read(&trusted_keys)?,
        };
        let store = Store::open(config.state_dir.as_deref())?;
        let state = State::load(store, &config)?;
        let (news, _) = watch::channel(0);
        Ok(Arc::new(Self {
            terms,
            faults: Faults::default(),
            metrics: Metrics::new().map_err(StartError::Metrics)?,
            trusted_keys,
            state: Mutex::new(state),
            news,
            config,
        }))
    }

    pub(super) fn now(&self) -> Timestamp {
        self.config.clock.now()
    }

    pub(super) fn trusted_keys(&self) -> &[TrustedKey] {
        &self.trusted_keys
    }

    /// Plans, stores, applies. Runs on a thread that may wait for the disk.
    pub(super) async fn transact<T: Send + 'static>(
        self: &Arc<Self>,
        plan: impl FnOnce(&Ledger, &Terms, Timestamp) -> Plan<T> + Send + 'static,
    ) -> Result<T, Refusal> {
        let daemon = self.clone();
        let done = tokio::task::spawn_blocking(move || daemon.transact_here(plan)).await;
        done.unwrap_or_else(|error| Err(unavailable(&error)))
    }

    fn transact_here<T>(
        &self,
        plan: impl FnOnce(&Ledger, &Terms, Timestamp) -> Plan<T>,
    ) -> Result<T, Refusal> {
        let now = self.now();
        let mut state = self.state.lock();
        self.expire(&mut state, now).map_err(|error| unavailable(&error))?;
        let (changes, answer) = plan(&state.ledger, &self.terms, now)?;
        state.carry_out(changes).map_err(|error| unavailable(&error))?;
        self.tell(&mut state, now);
        Ok(answer)
    }

    /// Drops what was not renewed and samples what is due.
    pub(super) fn tick(&self) {
        let now = self.now();
        let mut state = self.state.lock();
        if let Err(error) = self.expire(&mut state, now) {
            tracing::error!(%error, "expired leases cannot be stored; trying again");
        }
        self.tell(&mut state, now);
    }

    fn expire(&self, state: &mut State, now: Timestamp) -> Result<(), StoreError> {
        let lost = state.ledger.plan_expiry(now);
        if lost.is_empty() {
            return Ok(());
        }
        let is_corridor = |change: &&Change| matches!(change, Change::DropCorridor(_));
        let corridors = lost.iter().filter(is_corridor).count();
        let bundles = lost.len() - corridors;
        state.carry_out(lost)?;
        self.metrics.count_expired(corridors as u64, bundles as u64);
        Ok(())
    }

    fn tell(&self, state: &mut State, now: Timestamp) {
        let State { ledger, feed, .. } = state;
        if feed.look(ledger, now) {
            self.news.send_modify(|count| *count += 1);
        }
    }

    /// To be taken before the feed is read: then no news is missed.
    pub(super) fn listen(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    pub(super) fn news_since(&self, since: Option<&Revision>) -> Option<TelemetryPage> {
        self.state.lock().feed.news_since(since)
    }

    pub(super) fn nothing_new(&self) -> TelemetryPage {
        self.state.lock().feed.nothing_new()
    }

    pub(super) fn violations(&self, handle: &str) -> u64 {
        self.state.lock().feed.violations(handle)
    }

    pub(super) fn render_metrics(&self) -> String {
        self.metrics.render(&self.state.lock().ledger, &self.config.pools)
    }

    /// As if the process had been started again, with or without its state.
    pub(super) fn restart(&self, keep_state: bool) -> Result<(), StartError> {
        let mut state = self.state.lock();
        if !keep_state {
            state.store.wipe()?;
        }
        state.ledger = Ledger::new(&self.config.devices, state.store.load()?);
        state.feed = Feed::new(new_epoch()?, self.config.seed);
        state.touch_all();
        let now = self.now();
        self.tell(&mut state, now);
        self.news.send_modify(|count| *count += 1);
        Ok(())
    }
}

impl State {
    fn load(store: Store, config: &SimulatedConfig) -> Result<Self, StartError> {
        let ledger = Ledger::new(&config.devices, store.load()?);
        let feed = Feed::new(new_epoch()?, config.seed);
        let mut state = Self { store, ledger, feed };
        state.touch_all();
        Ok(state)
    }

    fn touch_all(&mut self) {
        self.feed.touch_ids(self.ledger.corridors.keys().chain(self.ledger.bundles.keys()));
    }

    /// On disk first: what was answered is never lost.
    fn carry_out(&mut self, changes: Vec<Change>) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.store.commit(&changes)?;
        for change in changes {
            self.feed.touch(&change);
            self.ledger.apply(change);
        }
        Ok(())
    }
}

fn new_epoch() -> Result<String, StartError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(StartError::Random)?;
    Ok(hex(&bytes))
}

fn unavailable(error: &dyn std::error::Error) -> Refusal {
    tracing::error!(%error, "the request cannot be carried out");
    Refusal::new(RefusalReason::Unavailable, error.to_string())
}

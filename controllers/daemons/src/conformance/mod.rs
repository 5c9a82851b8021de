//! Whether a daemon keeps the contract: every rule as a named check, for any daemon at a URL.
//!
//! Checks that need `/admin` are skipped where there is none. With it, they force readings, order
//! faults and restart the daemon without its state: never against a daemon in use.

mod attestd;
mod bundles;
mod corridors;
mod faults;
mod feed;
mod probe;
mod refusals;

use std::fmt;

use futures::FutureExt;
use futures::future::BoxFuture;

use self::probe::{Flaw, Probe};
use crate::client::AddressError;
use crate::ticket::{KeyError, TrustedKey};

/// The daemons to check. They may share one address.
#[derive(Clone, Debug)]
pub struct Target {
    pub corrd_url: String,
    pub memqosd_url: String,
    pub attestd_url: String,
    /// attestd's public keys. Without them the signatures of tickets are not checked.
    pub trusted_keys: Vec<TrustedKey>,
}

impl Target {
    /// All daemons at one address.
    pub fn at(url: impl Into<String>) -> Self {
        let url = url.into();
        Self {
            corrd_url: url.clone(),
            memqosd_url: url.clone(),
            attestd_url: url,
            trusted_keys: Vec::new(),
        }
    }
}

/// How one check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Kept,
    Broken(String),
    /// It could not be tried, and why.
    Skipped(String),
}

/// The outcome of every check, in order.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub checks: Vec<(&'static str, Outcome)>,
}

impl Report {
    pub fn broken(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.checks.iter().filter_map(|(name, outcome)| match outcome {
            Outcome::Broken(why) => Some((*name, why.as_str())),
            _ => None,
        })
    }

    pub fn kept(&self) -> usize {
        self.checks.iter().filter(|(_, outcome)| *outcome == Outcome::Kept).count()
    }

    pub fn skipped(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.checks.iter().filter_map(|(name, outcome)| match outcome {
            Outcome::Skipped(why) => Some((*name, why.as_str())),
            _ => None,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, outcome) in &self.checks {
            match outcome {
                Outcome::Kept => writeln!(f, "kept     {name}")?,
                Outcome::Broken(why) => writeln!(f, "BROKEN   {name}: {why}")?,
                Outcome::Skipped(why) => writeln!(f, "skipped  {name}: {why}")?,
            }
        }
        let (kept, broken) = (self.kept(), self.broken().count());
        write!(f, "{kept} kept, {broken} broken, {} skipped", self.skipped().count())
    }
}

/// Tries every rule, one after the other, and cleans up.
pub async fn run(target: &Target) -> Result<Report, RunError> {
    let probe = Probe::new(target).await?;
    let mut report = Report::default();
    for Check { name, run } in checks() {
        let outcome = match run.call(&probe).await {
            Ok(()) => Outcome::Kept,
            Err(Flaw::Broken(why)) => Outcome::Broken(why),
            Err(Flaw::Skipped(why)) => Outcome::Skipped(why),
        };
        probe.clean_up().await;
        report.checks.push((name, outcome));
    }
    Ok(report)
}

/// Why the checks could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("no random numbers: {0}")]
    Random(#[from] getrandom::Error),
}

type Verdict = Result<(), Flaw>;

struct Check {
    name: &'static str,
    run: Box<dyn for<'a> AsyncCheck<'a> + Send>,
}

fn check<F>(name: &'static str, run: F) -> Check
where
    F: for<'a> AsyncCheck<'a> + Send + 'static,
{
    Check { name, run: Box::new(run) }
}

/// An async function that borrows the probe: closures cannot say that by themselves.
trait AsyncCheck<'a> {
    fn call(&self, probe: &'a Probe) -> BoxFuture<'a, Verdict>;
}

impl<'a, F, R> AsyncCheck<'a> for F
where
    F: Fn(&'a Probe) -> R,
    R: Future<Output = Verdict> + Send + 'a,
{
    fn call(&self, probe: &'a Probe) -> BoxFuture<'a, Verdict> {
        self(probe).boxed()
    }
}

fn checks() -> Vec<Check> {
    let mut checks = corridors::checks();
    checks.extend(refusals::checks());
    checks.extend(bundles::checks());
    checks.extend(attestd::checks());
    checks.extend(feed::checks());
    checks.extend(faults::checks());
    checks
}

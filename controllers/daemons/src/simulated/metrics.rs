//! The daemons' own metrics. The series of the product are the scheduler's business.

use prometheus::{Encoder, GaugeVec, IntCounterVec, Opts, Registry, TextEncoder};

use super::config::Pools;
use super::ledger::Ledger;
use crate::memqosd::LatencyClass;
use crate::refusal::RefusalReason;

/// Which daemon a route belongs to, in the order of [`NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Corrd,
    Memqosd,
    Attestd,
}

impl Role {
    pub(super) fn of_path(path: &str) -> Self {
        match path {
            path if path.starts_with("/v1/ffm") => Self::Memqosd,
            path if path.starts_with("/v1/attest") || path.starts_with("/v1/devices") => {
                Self::Attestd
            }
            _ => Self::Corrd,
        }
    }
}

const NAMES: [&str; 3] = ["corrd", "memqosd", "attestd"];

#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    /// By daemon: requests by route and code, refusals by reason.
    requests: [IntCounterVec; 3],
    refusals: [IntCounterVec; 3],
    /// corrd and memqosd: leases that were not renewed.
    expired: [IntCounterVec; 2],
    corrd_free: GaugeVec,
    memqosd_free: GaugeVec,
    objects: [GaugeVec; 3],
}

impl Metrics {
    pub(super) fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let counter = |daemon: &str, name: &str, help: &str, labels: &[&str]| {
            let counter = IntCounterVec::new(Opts::new(format!("{daemon}_{name}"), help), labels)?;
            registry.register(Box::new(counter.clone()))?;
            Ok::<_, prometheus::Error>(counter)
        };
        let gauge = |name: String, help: &str, labels: &[&str]| {
            let gauge = GaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, prometheus::Error>(gauge)
        };
        let [corrd, memqosd, attestd] = NAMES;
        let requests = |daemon| {
            counter(
                daemon,
                "requests_total",
                "Requests by route and HTTP code.",
                &["route", "code"],
            )
        };
        let refusals =
            |daemon| counter(daemon, "refusals_total", "Requests refused, by reason.", &["reason"]);
        let expired =
            |daemon| counter(daemon, "leases_expired_total", "Leases that were not renewed.", &[]);
        let objects = |daemon: &str, what: &str| {
            gauge(format!("{daemon}_{what}"), "Objects that exist now.", &[])
        };
        Ok(Self {
            requests: [requests(corrd)?, requests(memqosd)?, requests(attestd)?],
            refusals: [refusals(corrd)?, refusals(memqosd)?, refusals(attestd)?],
            expired: [expired(corrd)?, expired(memqosd)?],
            corrd_free: gauge("corrd_pool_free".into(), "What can be allocated.", &["unit"])?,
            memqosd_free: gauge(
                "memqosd_pool_free".into(),
                "What can be allocated.",
                &["tier", "unit"],
            )?,
            objects: [
                objects(corrd, "corridors")?,
                objects(memqosd, "bundles")?,
                objects(attestd, "nonces")?,
            ],
            registry,
        }
        .begun())
    }

    /// Counters exist before the first event, because the rise of a series that begins with 1 is not seen.
    fn begun(self) -> Self {
        for refusals in &self.refusals {
            for reason in RefusalReason::ALL {
                refusals.with_label_values(&[reason.as_str()]);
            }
        }
        self.count_expired(0, 0);
        self
    }

    pub(super) fn count_request(&self, role: Role, route: &str, code: u16) {
        self.requests[role as usize].with_label_values(&[route, &code.to_string()]).inc();
    }

    pub(super) fn count_refusal(&self, role: Role, reason: &str) {
        self.refusals[role as usize].with_label_values(&[reason]).inc();
    }

    pub(super) fn count_expired(&self, corridors: u64, bundles: u64) {
        self.expired[0].with_label_values::<&str>(&[]).inc_by(corridors);
        self.expired[1].with_label_values::<&str>(&[]).inc_by(bundles);
    }

    /// Everything in Prometheus' text format.
    // Amounts are far below 2^53.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn render(&self, ledger: &Ledger, pools: &Pools) -> String {
        let usage = ledger.usage();
        let free = |pool: u64, taken: u64| pool.saturating_sub(taken) as f64;
        self.corrd_free.with_label_values(&["lanes"]).set(free(pools.lanes, usage.lanes));
        self.corrd_free.with_label_values(&["gbps"]).set(free(pools.gbps, usage.gbps));
        for (class, (pool, taken)) in
            LatencyClass::ALL.into_iter().zip(pools.tiers.iter().zip(usage.tiers))
        {
            let tier = class.as_str();
            let set = |unit, value| {
                self.memqosd_free.with_label_values(&[tier, unit]).set(value);
            };
            set("bytes", free(pool.bytes, taken.bytes));
            set("gbs", free(pool.gbs, taken.gbs));
        }
        let counts = [ledger.corridors.len(), ledger.bundles.len(), ledger.nonces.len()];
        for (gauge, count) in self.objects.iter().zip(counts) {
            gauge.with_label_values::<&str>(&[]).set(count as f64);
        }
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut text) {
            tracing::error!(%error, "metrics cannot be written");
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_is_0_from_the_start() {
        let metrics = Metrics::new().unwrap();
        let text = TextEncoder::new().encode_to_string(&metrics.registry.gather()).unwrap();
        for reason in RefusalReason::ALL {
            let series = format!("attestd_refusals_total{{reason=\"{}\"}} 0", reason.as_str());
            assert!(text.contains(&series), "{series} in\n{text}");
        }
        assert!(text.contains("corrd_leases_expired_total 0"), "{text}");
    }
}

//! Attestations that passed and failed.

use controller_runtime::SeriesMaker;
use prometheus::IntCounterVec;

use super::Metrics;

/// Every reason with which a failure is counted.
const FAILURES: [&str; 9] =
    ["claim", "label", "firmware", "pqc", "signature", "nonce", "expired", "tenant", "unreachable"];

pub(super) struct AttestationSeries {
    ok: IntCounterVec,
    fail: IntCounterVec,
    /// Of all namespaces and devices. The first failure often comes from a new namespace, and Prometheus sees an increase
    /// only of a series that existed before.
    failures: IntCounterVec,
}

impl AttestationSeries {
    pub fn new(make: &SeriesMaker<'_>) -> Self {
        let this = Self {
            ok: make.counts(
                "attestation_ok_total",
                "Attestations that passed.",
                &["namespace", "device"],
            ),
            fail: make.counts(
                "attestation_fail_total",
                "Attestations that failed, by reason: claim, label, firmware, pqc, signature, nonce, \
                 expired, tenant, unreachable. A series may begin with its first failure: see \
                 corridor_attestation_failures_total.",
                &["namespace", "device", "reason"],
            ),
            failures: make.counts(
                "corridor_attestation_failures_total",
                "Attestations that failed, of all namespaces and devices, by the same reasons. All \
                 0 from the start.",
                &["reason"],
            ),
        };
        for reason in FAILURES {
            this.failures.with_label_values(&[reason]);
        }
        this
    }
}

impl Metrics {
    /// A device is about to be attested: the series of every outcome exist from now on.
    pub(crate) fn attestation_begins(&self, namespace: &str, device: &str) {
        self.attestation.ok.with_label_values(&[namespace, device]);
        for reason in FAILURES {
            self.attestation.fail.with_label_values(&[namespace, device, reason]);
        }
    }

    pub(crate) fn attestation_passed(&self, namespace: &str, device: &str) {
        self.attestation.ok.with_label_values(&[namespace, device]).inc();
    }

    /// Also of a device that was not asked because the policies refuse it.
    pub(crate) fn attestation_failed(&self, namespace: &str, device: &str, reason: &str) {
        self.attestation_begins(namespace, device);
        self.attestation.fail.with_label_values(&[namespace, device, reason]).inc();
        self.attestation.failures.with_label_values(&[reason]).inc();
    }
}

#[cfg(test)]
mod tests {
    use daemons::RefusalReason;

    use super::*;

    fn told(metrics: &Metrics) -> String {
        prometheus::TextEncoder::new().encode_to_string(&metrics.gather()).unwrap()
    }

    #[test]
    fn every_reason_of_a_failure_is_0_from_the_start() {
        let metrics = Metrics::new("here");
        let series = |reason: &str, count: u32| {
            format!(
                "corridor_attestation_failures_total{{reason=\"{reason}\",cluster=\"here\"}} {count}"
            )
        };
        let before = told(&metrics);
        for reason in FAILURES {
            assert!(before.contains(&series(reason, 0)), "{reason} in\n{before}");
        }
        metrics.attestation_failed("team", "", "claim");
        let after = told(&metrics);
        assert!(after.contains(&series("claim", 1)), "{after}");
        let other = "device=\"\",namespace=\"team\",reason=\"nonce\",cluster=\"here\"";
        assert!(after.contains(&format!("attestation_fail_total{{{other}}} 0")), "{after}");
    }

    #[test]
    fn a_refusal_of_attestd_is_counted_with_a_reason_that_is_there() {
        let reasons = RefusalReason::ALL.into_iter().filter_map(RefusalReason::attestation_label);
        for reason in reasons {
            assert!(FAILURES.contains(&reason), "{reason}");
        }
    }
}

//! What expressions say of devices, as it is evaluated outside.

use crate::engine::Engine;
use crate::event::SelectorEvaluation;

impl Engine {
    pub(crate) fn selectors_evaluated(&mut self, evaluations: Vec<SelectorEvaluation>) {
        let known = &mut self.observed.cluster.devices.verdicts;
        for SelectorEvaluation { expression, verdicts } in evaluations {
            for (device_type, verdict) in verdicts {
                known.insert(&expression, &device_type, verdict);
            }
        }
    }
}

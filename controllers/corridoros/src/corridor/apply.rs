//! Calls that change something at corrd.

use daemons::Reply;
use daemons::corrd::{Corrd, RecalibrationRequest};

use super::Corridors;
use super::plan::PathChange;
use crate::lifecycle::{ApplyStep, Target};

impl ApplyStep for Corridors {
    fn apply_change<'a>(
        corrd: &'a dyn Corrd,
        target: Target<'a, crds::Corridor>,
        change: &'a PathChange,
    ) -> Reply<'a, ()> {
        Box::pin(async move {
            let Target { object, id, owner, metrics } = target;
            // Tuned first and noted after, so that a crash in between repeats the tuning and loses nothing.
            if let Some(ask) = recalibration(change) {
                let result = corrd.recalibrate(id, owner, &ask).await?;
                let reason = ask.reason.as_deref().unwrap_or_default();
                metrics.corridor_recalibrated(object, reason);
                tracing::info!(id, reason, converged = result.converged, "recalibrated");
            }
            if let PathChange::InPlace(change) = change {
                corrd.update(id, owner, change).await?;
            }
            Ok(())
        })
    }
}

fn recalibration(change: &PathChange) -> Option<RecalibrationRequest> {
    match change {
        PathChange::Recalibrate(ask) => Some(ask.clone()),
        PathChange::InPlace(change) => change.recalibration.as_ref().map(|wanted| {
            let (target_ber, ambient_profile) = (wanted.target_ber, wanted.ambient_profile);
            RecalibrationRequest {
                target_ber,
                ambient_profile,
                reason: Some("spec_change".to_owned()),
            }
        }),
    }
}

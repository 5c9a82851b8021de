//! Calls that change something at corrd.

use daemons::corrd::{Corridor, CorridorRequest, Lease, RecalibrationRequest};
use daemons::{Owner, Released, Reply};

use super::plan::PathChange;
use crate::context::Context;
use crate::lifecycle::not_configured;

pub(super) fn allocate<'a>(
    context: &'a Context,
    object: &'a crds::Corridor,
    request: CorridorRequest,
    ticket: Option<String>,
) -> Reply<'a, Corridor> {
    let Some(corrd) = &context.backends.corrd else { return not_configured("allocate corridor") };
    Box::pin(async move {
        let (key, ask) = (request.key(), CorridorRequest { ticket, ..request });
        let allocation = corrd.allocate(&key, &ask).await?;
        context.metrics.corridor_allocated(object);
        Ok(allocation)
    })
}

pub(super) fn release<'a>(
    context: &'a Context,
    id: &'a str,
    owner: &'a Owner,
) -> Reply<'a, Released> {
    match &context.backends.corrd {
        Some(corrd) => corrd.release(id, owner),
        None => not_configured("release corridor"),
    }
}

pub(super) fn renew<'a>(context: &'a Context, id: &'a str, owner: &'a Owner) -> Reply<'a, Lease> {
    match &context.backends.corrd {
        Some(corrd) => corrd.renew_lease(id, owner),
        None => not_configured("renew the lease of a corridor"),
    }
}

pub(super) fn change<'a>(
    context: &'a Context,
    object: &'a crds::Corridor,
    id: &'a str,
    owner: &'a Owner,
    change: &'a PathChange,
) -> Reply<'a, ()> {
    let Some(corrd) = &context.backends.corrd else { return not_configured("change corridor") };
    Box::pin(async move {
        // Tuned first and noted after: a crash in between repeats the tuning, it loses nothing.
        if let Some(ask) = recalibration(change) {
            let result = corrd.recalibrate(id, owner, &ask).await?;
            let reason = ask.reason.as_deref().unwrap_or_default();
            context.metrics.corridor_recalibrated(object, reason);
            tracing::info!(id, reason, converged = result.converged, "recalibrated");
        }
        if let PathChange::InPlace(change) = change {
            corrd.update(id, owner, change).await?;
        }
        Ok(())
    })
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

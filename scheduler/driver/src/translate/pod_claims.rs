//! The ResourceClaims of a Pod: those that it names, and those that are made of templates for it.

use std::sync::Arc;

use model::{PodClaim, PodClaimSource, TemplateClaim};

use crate::wire::{WirePod, WirePodClaim};

/// In the order of `spec.resourceClaims`.
pub(super) fn pod_claims(wire: &WirePod) -> Arc<[PodClaim]> {
    let claims = wire.spec.resource_claims.iter();
    claims.map(|it| PodClaim { name: it.name.as_str().into(), source: source(wire, it) }).collect()
}

fn source(pod: &WirePod, claim: &WirePodClaim) -> PodClaimSource {
    if let Some(name) = &claim.resource_claim_name {
        return PodClaimSource::Claim(name.as_str().into());
    }
    if claim.resource_claim_template_name.is_none() {
        return PodClaimSource::Unknown;
    }
    let made = pod.status.resource_claim_statuses.iter().find(|it| it.name == claim.name);
    PodClaimSource::Template(match made.map(|it| &it.resource_claim_name) {
        None => TemplateClaim::NotMadeYet,
        Some(None) => TemplateClaim::NotNeeded,
        Some(Some(name)) => TemplateClaim::Made(name.as_str().into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_claim_is_named_or_made_of_a_template() {
        let pod: WirePod = serde_json::from_value(json!({
            "spec": {"resourceClaims": [
                {"name": "named", "resourceClaimName": "c"},
                {"name": "waits", "resourceClaimTemplateName": "t"},
                {"name": "made", "resourceClaimTemplateName": "t"},
                {"name": "none", "resourceClaimTemplateName": "t"},
                {"name": "newer", "brandNew": "x"},
            ]},
            "status": {"resourceClaimStatuses": [
                {"name": "made", "resourceClaimName": "p-made-x"}, {"name": "none"},
            ]},
        }))
        .unwrap();
        let sources: Vec<_> = pod_claims(&pod).iter().map(|it| it.source.clone()).collect();
        assert_eq!(
            sources,
            [
                PodClaimSource::Claim("c".into()),
                PodClaimSource::Template(TemplateClaim::NotMadeYet),
                PodClaimSource::Template(TemplateClaim::Made("p-made-x".into())),
                PodClaimSource::Template(TemplateClaim::NotNeeded),
                PodClaimSource::Unknown,
            ]
        );
    }
}

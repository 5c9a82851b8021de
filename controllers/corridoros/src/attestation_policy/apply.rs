//! Writes the result of an audit.

use crds::AttestationPolicy;
use jiff::Timestamp;

use super::observe::Audited;
use super::status::status;
use crate::context::Context;

pub(super) async fn apply(
    context: &Context,
    policy: &AttestationPolicy,
    audited: &Audited,
) -> kube::Result<AttestationPolicy> {
    let next = status(policy, audited, Timestamp::now());
    let value = serde_json::to_value(&next).map_err(kube::Error::SerdeError)?;
    context.api.apply_status(policy, value).await
}

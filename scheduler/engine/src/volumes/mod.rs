//! What plugins of volumes do beyond the rules: reserve what a Pod takes (Reserve), and prepare it before the Pod is
//! bound (PreBind). Their PreFilter and Filter are rules like any other (`rules/src/plugins/volume_*`).

mod awaiting;
mod diagnosis;
mod pre_bind;
mod reserve;

pub(crate) use awaiting::{AwaitedClaim, AwaitedClaims};

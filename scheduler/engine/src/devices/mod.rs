//! What DynamicResources does beyond the rules: reserve the devices that a Pod gets (Reserve), have them written into
//! the status of its claims before the Pod is bound (PreBind), and take them from a claim that nobody can use (PostFilter). Its PreFilter, Filter and Score are rules like any other
//! (`rules/src/plugins/dynamic_resources`).

mod in_flight;
mod observe;
mod post_filter;
mod pre_bind;
mod reserve;

pub(crate) use in_flight::ClaimsInFlight;

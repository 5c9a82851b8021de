//! DefaultPreemption: the victims on each Node, and the Nodes where they cost least.

mod post_filter;

pub use post_filter::{
    CLAIMS_NOT_FOUND, Candidate, Ineligible, PREEMPTION, Preemption, PreemptionDryRun,
    PreemptionRefusal, VictimCost, Victims, candidates, has_leaving_victims, preempt,
    preempt_after, protects, victims_by,
};
pub(crate) use post_filter::{candidate, may_preempt};

use super::Point::{PostFilter, PreEnqueue};
use super::Registration;

pub(super) const PLUGIN: Registration = Registration::optional(&[PreEnqueue, PostFilter]);

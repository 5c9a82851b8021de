//! Pods with devices by ResourceClaims.
//!
//! Each story is played on a [`DeviceSite`] with nothing in it, beside the controllers that claims need, and what must
//! be true of every version of every claim is checked at its end.

mod choosing;
mod conditions;
mod counting;
mod crashes;
mod ending;
mod faults;
mod gate;
mod kills;
mod named;
mod sharing;
mod site;
mod together;

pub use choosing::{
    administrator_takes_nothing, failing_expression_is_told, pool_is_used_when_it_is_complete,
    second_choice_is_taken_when_the_first_is_gone, tainted_device_waits_for_who_tolerates_it,
};
pub use conditions::{
    device_that_cannot_be_attached_is_told, pod_waits_until_its_device_is_attached,
};
pub use counting::third_pod_waits_for_a_device;
pub use crashes::{
    killed_between_any_two_writes, late_leader_gives_nothing_out,
    leaders_change_between_any_two_writes, next_leader_knows_what_the_last_gave_out,
};
pub use ending::{
    claim_at_its_end_takes_no_pods, claim_is_deleted_while_its_pod_waits,
    deleted_claim_frees_its_devices,
};
pub use faults::{
    claim_that_another_scheduler_allocates_is_followed,
    claim_that_others_change_is_reserved_nevertheless,
    claims_that_are_listed_anew_are_counted_once, devices_that_are_taken_back_are_given_again,
    lost_replies_and_refusals_lose_nothing,
};
pub use kills::killed_again_and_again_with_devices;
pub use named::{
    allocated_claim_decides_the_node, claim_has_no_room_for_another_user,
    claim_that_is_named_twice_counts_once, pods_follow_a_shared_claim,
};
pub use sharing::{capacity_of_a_shared_device_is_held, parts_and_the_whole_exclude_each_other};
pub use site::DeviceSite;
pub use together::device_volume_and_corridor_are_taken_together;

use super::TEAM;

/// kube-scheduler's words.
const CANNOT_ALLOCATE: &str = "cannot allocate all claims";

/// The driver of most stories, and its class.
const GPU: &str = "gpu.example.com";

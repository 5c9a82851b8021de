//! Pods with volumes: claims that are bound before or because of them, by people's volumes or by provisioners.
//!
//! Each story is played on a [`VolumeSite`] with nothing in it, beside the controllers that volumes need, and
//! what must be true of all claims and volumes is checked at its end.

mod attaching;
mod corridors;
mod crashes;
mod dynamic;
mod ephemeral;
mod gate;
mod immediate;
mod kills;
mod once_per_pod;
mod provisioner_faults;
mod races;
mod site;
mod stateful;
mod static_binding;
mod waiting;
mod zones;

pub use attaching::{limits_of_drivers_hold, volume_that_is_still_attached_counts_once};
pub use corridors::{claim_waits_for_the_corridor, corridor_waits_for_the_claim};
pub use crashes::killed_between_any_two_writes;
pub use dynamic::{host_paths_are_provisioned_where_the_pod_goes, zones_of_a_class_are_kept};
pub use ephemeral::{claim_of_an_ephemeral_volume_ends_with_its_pod, foreign_claim_is_refused};
pub use immediate::{bound_claim_decides_the_node, claims_at_their_end_say_so};
pub use kills::killed_again_and_again_with_claims;
pub use once_per_pod::{holder_alone_is_preempted, second_pod_waits_for_the_holder};
pub use provisioner_faults::{
    pod_goes_where_the_provisioner_has_room, provisioner_that_never_answers_reserves_nothing,
    refusal_for_ever_is_told, refused_once_is_tried_again, volume_in_the_wrong_zone_is_told,
};
pub use races::{pod_deleted_in_its_wait_leaves_nothing, taken_volume_is_replaced_by_another};
pub use site::VolumeSite;
pub use stateful::stateful_set_returns_to_its_volumes;
pub use static_binding::{claims_of_one_pod_meet_on_one_node, smallest_local_volume_is_taken};
pub use waiting::{
    pod_older_than_its_claim, pod_older_than_its_class, pod_older_than_its_volume,
    pod_older_than_what_binds_its_claim_at_once,
};
pub use zones::zone_labels_of_volumes_are_kept;

use super::{TEAM, ensure_contains};

/// kube-scheduler's words.
const NO_VOLUME: &str = "node(s) didn't find available persistent volumes to bind";
const NOT_HERE: &str = "node(s) didn't match PersistentVolume's node affinity";
const UNBOUND: &str = "pod has unbound immediate PersistentVolumeClaims";

/// The class of volumes that people made in most stories.
const LOCAL: &str = "local";
/// The class of the provisioner in most stories.
const FAST: &str = "fast";

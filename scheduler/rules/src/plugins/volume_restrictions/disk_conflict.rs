//! Which disks exclude each other on one Node.

use std::sync::Arc;

use model::InlineDisk;

/// Whether such a disk can be in another Pod's way.
pub(super) fn is_exclusive(disk: &InlineDisk) -> bool {
    matches!(
        disk,
        InlineDisk::GcePersistentDisk { .. }
            | InlineDisk::AwsElasticBlockStore { .. }
            | InlineDisk::Iscsi { .. }
            | InlineDisk::Rbd { .. }
    )
}

pub(super) fn conflict(one: &InlineDisk, other: &InlineDisk) -> bool {
    use InlineDisk::{AwsElasticBlockStore, GcePersistentDisk, Iscsi, Rbd};
    match (one, other) {
        (
            GcePersistentDisk { pd_name: a, is_read_only: a_read },
            GcePersistentDisk { pd_name: b, is_read_only: b_read },
        ) => a == b && !(*a_read && *b_read),
        (AwsElasticBlockStore { volume_id: a }, AwsElasticBlockStore { volume_id: b }) => a == b,
        // Portal and LUN do not matter, as in kube-scheduler.
        (Iscsi { iqn: a, is_read_only: a_read }, Iscsi { iqn: b, is_read_only: b_read }) => {
            a == b && !(*a_read && *b_read)
        }
        (
            Rbd { monitors: a_monitors, pool: a_pool, image: a_image, is_read_only: a_read },
            Rbd { monitors: b_monitors, pool: b_pool, image: b_image, is_read_only: b_read },
        ) => {
            let is_shared = |monitor: &Arc<str>| b_monitors.contains(monitor);
            a_monitors.iter().any(is_shared)
                && a_pool == b_pool
                && a_image == b_image
                && !(*a_read && *b_read)
        }
        _ => false,
    }
}

//! Volumes of a Pod that bear on where it can go.

use std::sync::Arc;

use model::{InlineDisk, PodVolume};

use crate::wire::{WireVolume, WireVolumeSource};

/// In the order of `spec.volumes`.
pub(super) fn volumes(pod_name: &str, wire: &[WireVolume]) -> Arc<[PodVolume]> {
    wire.iter().filter_map(|volume| pod_volume(pod_name, volume)).collect()
}

fn pod_volume(pod_name: &str, wire: &WireVolume) -> Option<PodVolume> {
    let text = |text: &String| Arc::from(text.as_str());
    let disk = match wire.source.as_ref()? {
        WireVolumeSource::Image(_) => return None,
        WireVolumeSource::Claim(it) => return Some(PodVolume::Claim(text(&it.claim_name))),
        WireVolumeSource::Ephemeral(_) => {
            return Some(PodVolume::Ephemeral(format!("{pod_name}-{}", wire.name).into()));
        }
        WireVolumeSource::GcePersistentDisk(it) => {
            InlineDisk::GcePersistentDisk { pd_name: text(&it.pd_name), is_read_only: it.read_only }
        }
        WireVolumeSource::AwsElasticBlockStore(it) => {
            InlineDisk::AwsElasticBlockStore { volume_id: text(&it.volume_id) }
        }
        WireVolumeSource::Iscsi(it) => {
            InlineDisk::Iscsi { iqn: text(&it.iqn), is_read_only: it.read_only }
        }
        WireVolumeSource::Rbd(it) => InlineDisk::Rbd {
            monitors: it.monitors.iter().map(text).collect(),
            pool: text(&it.pool),
            image: text(&it.image),
            is_read_only: it.read_only,
        },
        WireVolumeSource::AzureDisk(it) => {
            InlineDisk::AzureDisk { disk_uri: text(&it.disk_uri), kind: it.kind.as_ref().map(text) }
        }
        WireVolumeSource::Cinder(it) => InlineDisk::Cinder { volume_id: text(&it.volume_id) },
        WireVolumeSource::Portworx(it) => InlineDisk::Portworx { volume_id: text(&it.volume_id) },
    };
    Some(PodVolume::Disk(disk))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(volumes: Value) -> Arc<[PodVolume]> {
        let wire: Vec<WireVolume> = serde_json::from_value(volumes).unwrap();
        super::volumes("p", &wire)
    }

    #[test]
    fn claims_and_disks_are_read_and_what_every_node_serves_is_not() {
        let volumes = read(json!([
            {"name": "a", "persistentVolumeClaim": {"claimName": "data", "readOnly": true}},
            {"name": "b", "emptyDir": {}},
            {"name": "c", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            {"name": "d", "image": {"reference": "r"}},
            {"name": "e", "rbd": {"monitors": ["m1"], "image": "i", "pool": "q", "readOnly": true}},
            {"name": "f", "awsElasticBlockStore": {"volumeID": "vol-1"}},
        ]));
        let expected = [
            PodVolume::Claim("data".into()),
            PodVolume::Ephemeral("p-c".into()),
            PodVolume::Disk(InlineDisk::Rbd {
                monitors: vec!["m1".into()],
                pool: "q".into(),
                image: "i".into(),
                is_read_only: true,
            }),
            PodVolume::Disk(InlineDisk::AwsElasticBlockStore { volume_id: "vol-1".into() }),
        ];
        assert_eq!(*volumes, expected);
    }
}

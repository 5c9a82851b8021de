use prost::Message;

use super::fields::Fields;
use crate::wire::{WireVolume, WireVolumeSource};

#[derive(Clone, PartialEq, Message)]
pub(super) struct Volume {
    #[prost(string, tag = "1")]
    name: String,
    /// A message, of which each field is a source.
    #[prost(bytes = "vec", tag = "2")]
    source: Vec<u8>,
}

/// By their number less one.
const SOURCES: [&str; 30] = [
    "hostPath",
    "emptyDir",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "persistentVolumeClaim",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "downwardAPI",
    "fc",
    "azureFile",
    "configMap",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "projected",
    "storageos",
    "csi",
    "ephemeral",
    "image",
];

impl From<Volume> for WireVolume {
    fn from(volume: Volume) -> Self {
        // In JSON the name is always there.
        let Volume { name, source } = volume;
        let mut wire = Self { name, fields: vec!["name".to_owned()], source: None };
        for field in Fields::of(&source).map_while(Result::ok) {
            let known = (field.number as usize).checked_sub(1).and_then(|at| SOURCES.get(at));
            let name = known.map_or_else(|| newer(field.number), |known| (*known).to_owned());
            if let Some(source) = WireVolumeSource::from_protobuf(&name, field.bytes) {
                wire.source = Some(source);
            }
            wire.fields.push(name);
        }
        wire
    }
}

/// A source that is newer than this list. It must not be taken for none.
fn newer(number: u32) -> String {
    format!("source{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_is_newer_than_the_list_is_there_all_the_same() {
        // Field 31, an empty message.
        let wire =
            WireVolume::from(Volume { name: "v".to_owned(), source: vec![0xfa, 0x01, 0x00] });
        assert_eq!(wire.fields, ["name", "source31"]);
    }
}

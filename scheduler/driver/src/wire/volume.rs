use std::fmt;

use prost::Message;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::absent::null_as_default;

/// Which fields a volume has, and what is in them as far as it bears on scheduling.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WireVolume {
    pub name: String,
    /// Those that it has, `name` included.
    pub fields: Vec<String>,
    pub source: Option<WireVolumeSource>,
}

/// Defines the sources that are read, from JSON and from protobuf.
macro_rules! volume_sources {
    ($($field:literal => $name:ident($source:ty),)+) => {
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) enum WireVolumeSource {
            $($name($source),)+
        }

        impl WireVolumeSource {
            /// None of a source that is not read.
            fn from_json<'de, A: MapAccess<'de>>(
                field: &str,
                map: &mut A,
            ) -> Result<Option<Self>, A::Error> {
                match field {
                    $($field => Ok(map.next_value::<Option<$source>>()?.map(Self::$name)),)+
                    _ => map.next_value::<IgnoredAny>().map(|_| None),
                }
            }

            /// None of a source that is not read, or cannot be.
            pub fn from_protobuf(field: &str, bytes: &[u8]) -> Option<Self> {
                match field {
                    $($field => <$source>::decode(bytes).ok().map(Self::$name),)+
                    _ => None,
                }
            }
        }
    };
}

volume_sources! {
    "image" => Image(WireImageSource),
    "persistentVolumeClaim" => Claim(WireClaimSource),
    "ephemeral" => Ephemeral(WireEphemeralSource),
    "gcePersistentDisk" => GcePersistentDisk(WireGcePersistentDisk),
    "awsElasticBlockStore" => AwsElasticBlockStore(WireVolumeId),
    "iscsi" => Iscsi(WireIscsi),
    "rbd" => Rbd(WireRbd),
    "azureDisk" => AzureDisk(WireAzureDisk),
    "cinder" => Cinder(WireVolumeId),
    "portworxVolume" => Portworx(WireVolumeId),
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default)]
pub(crate) struct WireImageSource {
    #[prost(string, tag = "1")]
    pub reference: String,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireClaimSource {
    #[prost(string, tag = "1")]
    pub claim_name: String,
}

/// The claim is made of it by others.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default)]
pub(crate) struct WireEphemeralSource {}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireGcePersistentDisk {
    #[prost(string, tag = "1")]
    pub pd_name: String,
    #[prost(bool, tag = "4")]
    pub read_only: bool,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default)]
pub(crate) struct WireVolumeId {
    #[prost(string, tag = "1")]
    #[serde(rename = "volumeID")]
    pub volume_id: String,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireIscsi {
    #[prost(string, tag = "2")]
    pub iqn: String,
    #[prost(bool, tag = "6")]
    pub read_only: bool,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireRbd {
    #[prost(string, repeated, tag = "1")]
    #[serde(deserialize_with = "null_as_default")]
    pub monitors: Vec<String>,
    #[prost(string, tag = "2")]
    pub image: String,
    #[prost(string, tag = "4")]
    pub pool: String,
    #[prost(bool, tag = "8")]
    pub read_only: bool,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default)]
pub(crate) struct WireAzureDisk {
    #[prost(string, tag = "2")]
    #[serde(rename = "diskURI")]
    pub disk_uri: String,
    #[prost(string, optional, tag = "6")]
    pub kind: Option<String>,
}

impl<'de> Deserialize<'de> for WireVolume {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = WireVolume;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a volume")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WireVolume, A::Error> {
                let mut volume = WireVolume::default();
                while let Some(field) = map.next_key::<String>()? {
                    if field == "name" {
                        volume.name = map.next_value::<Option<String>>()?.unwrap_or_default();
                    } else if let Some(source) = WireVolumeSource::from_json(&field, &mut map)? {
                        volume.source = Some(source);
                    }
                    volume.fields.push(field);
                }
                Ok(volume)
            }
        }
        from.deserialize_map(Fields)
    }
}

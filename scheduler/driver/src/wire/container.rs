use std::collections::BTreeMap;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireContainer {
    pub name: String,
    pub image: String,
    pub resources: WireResourceLists,
    pub ports: Vec<WirePort>,
    /// On an init container, `Always` makes it a sidecar.
    pub restart_policy: String,
    pub restart_policy_rules: Vec<WireRestartRule>,
}

impl WireContainer {
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy == "Always"
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct WireResourceLists {
    pub requests: BTreeMap<String, String>,
}

/// With `hostNetwork` the API server has made container ports host ports.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WirePort {
    pub host_port: i32,
    #[serde(rename = "hostIP")]
    pub host_ip: String,
    pub protocol: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct WireRestartRule {
    pub action: String,
}

/// What the kubelet has admitted and applied; differs from the spec during a resize.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireContainerStatus {
    pub name: String,
    pub allocated_resources: BTreeMap<String, String>,
    pub resources: Option<WireResourceLists>,
}

/// Which fields a volume has, without what is in them, and the image it mounts if it does.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WireVolume {
    pub fields: Vec<String>,
    pub image: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireImageVolume {
    reference: String,
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
                    if field == "image" {
                        let image: Option<WireImageVolume> = map.next_value()?;
                        volume.image = image.map(|image| image.reference);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                    volume.fields.push(field);
                }
                Ok(volume)
            }
        }
        from.deserialize_map(Fields)
    }
}

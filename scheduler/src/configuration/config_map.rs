//! `--config-map NS/NAME`: the same documents, as the values of a ConfigMap.

use std::fmt;
use std::str::FromStr;

use k8s_openapi::api::core::v1::ConfigMap;

use super::{Configuration, read_documents};

/// The keys that are read, in this order.
const KEYS: [&str; 2] = ["config.yaml", "corridor.yaml"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigMapName {
    pub namespace: String,
    pub name: String,
}

impl FromStr for ConfigMapName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, name))
                if !namespace.is_empty() && !name.is_empty() && !name.contains('/') =>
            {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err(format!("{text:?} is not NAMESPACE/NAME")),
        }
    }
}

impl fmt::Display for ConfigMapName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// What all its keys say together; what is left out keeps its default.
pub(super) fn read(map: &ConfigMap, replace_default: bool) -> Result<Configuration, String> {
    let data = map.data.clone().unwrap_or_default();
    if let Some(key) = data.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("key {key:?} is not read; the keys are {}", KEYS.join(" and ")));
    }
    let mut documents = Vec::new();
    for key in KEYS {
        let text = data.get(key).map(String::as_str).unwrap_or_default();
        documents.extend(read_documents(text).map_err(|why| format!("{key}: {why}"))?);
    }
    Configuration::join(documents, replace_default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map<const N: usize>(data: [(&str, &str); N]) -> ConfigMap {
        let data = data.map(|(key, text)| (key.to_owned(), text.to_owned()));
        ConfigMap { data: Some(data.into()), ..ConfigMap::default() }
    }

    #[test]
    fn both_keys_are_read_and_either_may_be_missing() {
        let corridor = "kind: CorridorConfiguration\napiVersion: corridoros.io/v1alpha1\n\
                        ber: {dwellSeconds: 7}\n";
        let read_one = read(&map([("corridor.yaml", corridor)]), false).unwrap();
        assert_eq!(read_one.settings.ber_dwell.as_secs(), 7);
        read(&map([]), false).unwrap();
    }

    #[test]
    fn what_is_wrong_is_told_with_its_key() {
        let error = read(&map([("config.yaml", "kind: [")]), false).unwrap_err();
        assert!(error.starts_with("config.yaml: "), "{error}");
        let error = read(&map([("conifg.yaml", "")]), false).unwrap_err();
        assert!(error.contains("\"conifg.yaml\" is not read"), "{error}");
    }

    #[test]
    fn a_name_has_two_parts() {
        assert_eq!("a/b".parse::<ConfigMapName>().unwrap().to_string(), "a/b");
        for bad in ["a", "/b", "a/", "a/b/c", ""] {
            assert!(bad.parse::<ConfigMapName>().is_err(), "{bad}");
        }
    }
}

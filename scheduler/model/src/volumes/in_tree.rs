//! The disks that Kubernetes once attached itself and CSI drivers do now, in the words of both.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::in_tree_affinity::{BETA_ZONE, ZONE, ZONES_DELIMITER, translate_affinity};
use crate::{Labels, NodeSelector, RawNodeTerm};

/// Such a disk, with what tells it from others of its plugin.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum InTreeDisk {
    AwsElasticBlockStore { volume_id: Arc<str> },
    GcePersistentDisk { pd_name: Arc<str> },
    AzureDisk { disk_uri: Arc<str>, kind: Option<Arc<str>> },
    Cinder { volume_id: Arc<str> },
    Portworx { volume_id: Arc<str> },
}

/// The plugins of those disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum InTreePlugin {
    AwsElasticBlockStore,
    GcePersistentDisk,
    AzureDisk,
    Cinder,
    Portworx,
}

impl InTreePlugin {
    pub const ALL: [Self; 5] = [
        Self::AwsElasticBlockStore,
        Self::GcePersistentDisk,
        Self::AzureDisk,
        Self::Cinder,
        Self::Portworx,
    ];

    /// As StorageClasses and CSINodes name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AwsElasticBlockStore => "kubernetes.io/aws-ebs",
            Self::GcePersistentDisk => "kubernetes.io/gce-pd",
            Self::AzureDisk => "kubernetes.io/azure-disk",
            Self::Cinder => "kubernetes.io/cinder",
            Self::Portworx => "kubernetes.io/portworx-volume",
        }
    }

    /// The CSI driver that took over.
    pub const fn driver(self) -> &'static str {
        match self {
            Self::AwsElasticBlockStore => "ebs.csi.aws.com",
            Self::GcePersistentDisk => "pd.csi.storage.gke.io",
            Self::AzureDisk => "disk.csi.azure.com",
            Self::Cinder => "cinder.csi.openstack.org",
            Self::Portworx => "pxd.portworx.com",
        }
    }

    /// The label by which that driver tells zones apart, where it has one.
    pub(super) const fn zone_key(self) -> Option<&'static str> {
        match self {
            Self::AwsElasticBlockStore => Some("topology.ebs.csi.aws.com/zone"),
            Self::GcePersistentDisk => Some("topology.gke.io/zone"),
            Self::Cinder => Some("topology.cinder.csi.openstack.org/zone"),
            Self::AzureDisk | Self::Portworx => None,
        }
    }

    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plugin| plugin.name() == name)
    }
}

/// A PersistentVolume as its CSI driver knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranslatedVolume {
    pub driver: Arc<str>,
    pub handle: Arc<str>,
    /// The node affinity by the labels of the driver.
    pub node_affinity: Option<NodeSelector>,
}

/// Why a disk cannot be given to its CSI driver, in kube-scheduler's words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TranslationError {
    why: Arc<str>,
}

impl TranslationError {
    fn new(why: String) -> Self {
        Self { why: why.into() }
    }
}

impl fmt::Display for TranslationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for TranslationError {}

const UNSPECIFIED: &str = "UNSPECIFIED";
const MANAGED: &str = "Managed";

impl InTreeDisk {
    pub const fn plugin(&self) -> InTreePlugin {
        match self {
            Self::AwsElasticBlockStore { .. } => InTreePlugin::AwsElasticBlockStore,
            Self::GcePersistentDisk { .. } => InTreePlugin::GcePersistentDisk,
            Self::AzureDisk { .. } => InTreePlugin::AzureDisk,
            Self::Cinder { .. } => InTreePlugin::Cinder,
            Self::Portworx { .. } => InTreePlugin::Portworx,
        }
    }

    /// What the CSI driver calls a disk that a Pod names itself.
    pub fn inline_handle(&self) -> Result<Arc<str>, TranslationError> {
        self.handle(&Labels::new())
    }

    pub(super) fn translate_volume(
        &self,
        labels: &Labels,
        terms: Option<&[RawNodeTerm]>,
    ) -> Result<TranslatedVolume, TranslationError> {
        let handle = self.handle(labels)?;
        let plugin = self.plugin();
        let node_affinity = match plugin.zone_key() {
            Some(zone_key) => translate_affinity(zone_key, labels, terms),
            None => terms.map(NodeSelector::parse),
        };
        Ok(TranslatedVolume { driver: plugin.driver().into(), handle, node_affinity })
    }

    /// The labels are those of the PersistentVolume.
    fn handle(&self, labels: &Labels) -> Result<Arc<str>, TranslationError> {
        match self {
            Self::AwsElasticBlockStore { volume_id } => ebs_handle(volume_id),
            Self::GcePersistentDisk { pd_name } => gce_handle(pd_name, labels),
            Self::AzureDisk { disk_uri, kind } => match kind {
                Some(kind) if !kind.eq_ignore_ascii_case(MANAGED) => Err(TranslationError::new(
                    format!("kind({kind}) is not supported in csi migration"),
                )),
                _ => Ok(disk_uri.clone()),
            },
            Self::Cinder { volume_id } | Self::Portworx { volume_id } => Ok(volume_id.clone()),
        }
    }
}

/// `vol-1`, or `aws://zone/vol-1`.
fn ebs_handle(volume_id: &Arc<str>) -> Result<Arc<str>, TranslationError> {
    let Some(address) = volume_id.strip_prefix("aws://") else { return Ok(volume_id.clone()) };
    let address = address.split(['?', '#']).next().unwrap_or_default();
    let path = address.split_once('/').map_or("", |(_, path)| path).trim_matches('/');
    if path.starts_with("vol-") && !path.contains('/') {
        return Ok(path.into());
    }
    Err(TranslationError::new(format!(
        "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({volume_id})"
    )))
}

fn gce_handle(pd_name: &str, labels: &Labels) -> Result<Arc<str>, TranslationError> {
    let label = |key| labels.get(key).map(|value| &**value).filter(|value| !value.is_empty());
    let zones = label(BETA_ZONE).or_else(|| label(ZONE)).unwrap_or(UNSPECIFIED);
    if !zones.contains(ZONES_DELIMITER) {
        return Ok(format!("projects/{UNSPECIFIED}/zones/{zones}/disks/{pd_name}").into());
    }
    let region = gce_region(zones)
        .map_err(|why| TranslationError::new(format!("failed to get region from zones: {why}")))?;
    Ok(format!("projects/{UNSPECIFIED}/regions/{region}/disks/{pd_name}").into())
}

/// The one region of zones like `europe-west1-b`.
fn gce_region(zones: &str) -> Result<String, String> {
    let mut regions = std::collections::BTreeSet::new();
    for zone in zones.split(ZONES_DELIMITER) {
        let parts: Vec<_> = zone.split('-').collect();
        let [locale, region, _] = parts.as_slice() else {
            return Err(format!(
                "zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            ));
        };
        regions.insert(format!("{locale}-{region}"));
    }
    match (regions.pop_first(), regions.is_empty()) {
        (Some(region), true) => Ok(region),
        (first, _) => {
            regions.extend(first);
            let all = regions.iter().map(|region| format!("{region}:{{}}"));
            let all = all.collect::<Vec<_>>().join(" ");
            Err(format!("multiple or no regions gotten from zones, got: map[{all}]"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(disk: &InTreeDisk, labels: &[(&str, &str)]) -> Result<String, String> {
        let labels = labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        disk.handle(&labels).map(|it| it.to_string()).map_err(|it| it.to_string())
    }

    #[test]
    fn an_ebs_volume_is_known_by_the_last_part_of_its_address() {
        let ebs =
            |id: &str| handle(&InTreeDisk::AwsElasticBlockStore { volume_id: id.into() }, &[]);
        assert_eq!(ebs("vol-1"), Ok("vol-1".to_owned()));
        assert_eq!(ebs("anything"), Ok("anything".to_owned()));
        assert_eq!(ebs("aws://zone/vol-1"), Ok("vol-1".to_owned()));
        assert_eq!(ebs("aws:///vol-1"), Ok("vol-1".to_owned()));
        for bad in ["aws://zone/disk", "aws://vol-1", "aws://zone/a/vol-1"] {
            assert!(ebs(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_gce_disk_is_known_by_its_zone_or_its_region() {
        let gce = |labels: &[(&str, &str)]| {
            handle(&InTreeDisk::GcePersistentDisk { pd_name: "pd".into() }, labels)
        };
        let zonal = |zone: &str| Ok(format!("projects/UNSPECIFIED/zones/{zone}/disks/pd"));
        assert_eq!(gce(&[]), zonal("UNSPECIFIED"));
        assert_eq!(gce(&[(ZONE, "a")]), zonal("a"));
        assert_eq!(gce(&[(ZONE, "a"), (BETA_ZONE, "b")]), zonal("b"), "beta first");
        assert_eq!(gce(&[(ZONE, "a"), (BETA_ZONE, "")]), zonal("a"));
        assert_eq!(
            gce(&[(ZONE, "eu-west1-a__eu-west1-b")]),
            Ok("projects/UNSPECIFIED/regions/eu-west1/disks/pd".to_owned())
        );
        assert!(gce(&[(ZONE, "eu-west1-a__us-west1-b")]).is_err(), "two regions");
        assert!(gce(&[(ZONE, "a__b")]).is_err(), "no region");
    }

    #[test]
    fn an_azure_disk_must_be_managed() {
        let azure = |kind: Option<&str>| {
            let kind = kind.map(Arc::from);
            handle(&InTreeDisk::AzureDisk { disk_uri: "uri".into(), kind }, &[])
        };
        assert_eq!(azure(None), Ok("uri".to_owned()));
        assert_eq!(azure(Some("managed")), Ok("uri".to_owned()));
        assert!(azure(Some("Shared")).is_err());
    }
}

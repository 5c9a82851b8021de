//! The diagnosis in words: what follows kube-scheduler's in the Pod's condition.

use std::fmt;

use super::problem::{ClaimProblem, PublishedCapacity};
use super::volumes::{VolumeLack, VolumesLacking, VolumesLookedAt};
use super::{ClaimDiagnosis, VolumeDiagnosis};

/// What introduces the diagnosis: what comes before are kube-scheduler's words, and it ends the message.
pub const VOLUMES: &str = "Volumes: ";

/// Enough to see what kind of trouble it is; `explain` has the others.
const CLAIMS_NAMED_MAX: usize = 3;

/// A name may take 253 bytes, and a claim brings several; `kubectl describe` shows all of it. An Event takes 1,024.
const MESSAGE_BYTES_MAX: usize = 768;
const CUT: &str = "…";

impl VolumeDiagnosis {
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// `None`: there is nothing to say.
    pub fn message(&self) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let named = self.claims.iter().take(CLAIMS_NAMED_MAX).map(ToString::to_string);
        let mut parts: Vec<String> = named.collect();
        let more = self.claims.len() - parts.len() + self.more;
        parts.extend((more > 0).then(|| format!("and {more} more")));
        let mut text = parts.join("; ");
        if text.len() > MESSAGE_BYTES_MAX {
            text.truncate(text.floor_char_boundary(MESSAGE_BYTES_MAX - CUT.len()));
            text.push_str(CUT);
        } else {
            text.push('.');
        }
        Some(format!("{VOLUMES}{text}"))
    }

    /// The same without figures: a Pod is reported anew when this changes.
    pub fn substance(&self) -> Vec<String> {
        let of = |it: &ClaimDiagnosis| {
            format!("{} {} {}", it.claim, it.problem.label(), it.problem.names())
        };
        self.claims.iter().map(of).collect()
    }
}

impl fmt::Display for ClaimDiagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { claim, class, request, problem, .. } = self;
        match (&**class, problem) {
            (_, ClaimProblem::ClassNotFound) => {
                return write!(
                    f,
                    "claim {claim} names StorageClass {class:?}, which does not exist"
                );
            }
            ("", ClaimProblem::NotFound | ClaimProblem::NotMade) => write!(f, "claim {claim}"),
            ("", _) => write!(f, "claim {claim} (no class, {request})"),
            (class, _) => write!(f, "claim {claim} (class {class}, {request})"),
        }?;
        write!(f, "{problem}")
    }
}

/// What follows the name of the claim.
impl fmt::Display for ClaimProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str(" does not exist"),
            Self::NotMade => {
                f.write_str(" is not made yet: the controller of ephemeral volumes has to make it")
            }
            Self::NotOwned => {
                f.write_str(" was not made for this Pod, whose ephemeral volume needs the name")
            }
            Self::Lost { volume } => {
                write!(f, " was bound to PersistentVolume {volume}, which is gone: create it anew")
            }
            Self::Deleted => f.write_str(" is being deleted"),
            Self::VolumeNotFound { volume } => {
                write!(f, " is bound to PersistentVolume {volume}, which does not exist")
            }
            Self::ClassNotFound => f.write_str(" names a StorageClass that does not exist"),
            Self::NotBound { volume, provisioner, volumes } => {
                let provisioner = provisioner.as_deref();
                write_not_bound(f, volume.as_deref(), provisioner, volumes.as_ref())
            }
            Self::OtherNode { node, is_written, is_known } => {
                write_other_node(f, node.as_str(), *is_written, *is_known)
            }
            Self::NoVolume(volumes) => write!(f, ": {volumes}"),
            Self::Topology { allowed } => {
                write!(f, ": its class makes volumes only where {allowed} (allowedTopologies)")
            }
            Self::NotEnoughStorage { provisioner, largest } => {
                write_capacity(f, provisioner, largest.as_ref())
            }
            Self::NotEnoughStorageTogether { provisioner } => {
                write!(
                    f,
                    ": {provisioner} has room for each claim of the Pod, not for all together"
                )
            }
            Self::NodeAffinity { volume, wants } => {
                write!(f, " is bound to PersistentVolume {volume}, which wants a node with {wants}")
            }
            Self::Zone { volume, label, value } => {
                write!(f, " is bound to PersistentVolume {volume}, which is in {label}={value}")
            }
            Self::AttachLimit { driver, nodes, node, limit, used, brings } => write!(
                f,
                ": no more volumes of driver {driver} on {nodes} node(s) ({node} has {used} of \
                 {limit}, the Pod brings {brings})"
            ),
            Self::InUse { pod, node } => {
                write!(f, " is ReadWriteOncePod and in use by Pod {pod}")?;
                node.as_ref().map_or(Ok(()), |node| write!(f, " on node {node}"))
            }
        }
    }
}

fn write_not_bound(
    f: &mut fmt::Formatter<'_>,
    volume: Option<&str>,
    provisioner: Option<&str>,
    volumes: Option<&VolumesLookedAt>,
) -> fmt::Result {
    if let Some(volume) = volume {
        return write!(
            f,
            " names PersistentVolume {volume}: the PersistentVolume controller has to bind them first"
        );
    }
    f.write_str(" is to be bound at once: ")?;
    if let Some(provisioner) = provisioner {
        write!(f, "{provisioner} has to make a volume, and ")?;
    }
    f.write_str("the PersistentVolume controller has to bind it first")?;
    volumes.map_or(Ok(()), |volumes| write!(f, " ({volumes})"))
}

fn write_other_node(
    f: &mut fmt::Formatter<'_>,
    node: &str,
    is_written: bool,
    is_known: bool,
) -> fmt::Result {
    const ANNOTATION: &str = "annotation volume.kubernetes.io/selected-node";
    if !is_written {
        return write!(f, " is being given a volume on node {node} for another Pod");
    }
    if node.is_empty() {
        return write!(f, " was promised to no node ({ANNOTATION}, empty): remove the annotation");
    }
    let trouble = if is_known { "does not take the Pod" } else { "does not exist" };
    write!(
        f,
        " was promised to node {node} ({ANNOTATION}), which {trouble}: remove the annotation to \
         have another node chosen"
    )
}

fn write_capacity(
    f: &mut fmt::Formatter<'_>,
    provisioner: &str,
    largest: Option<&PublishedCapacity>,
) -> fmt::Result {
    let Some(PublishedCapacity { size, node, is_enough }) = largest else {
        return write!(f, ": {provisioner} publishes no capacity of the class");
    };
    match (node, is_enough) {
        (Some(node), false) => {
            write!(f, ": {provisioner} has room for {size} at most (node {node})")
        }
        (Some(node), true) => {
            write!(f, ": {provisioner} has room for it only elsewhere ({size} on node {node})")
        }
        (None, _) => write!(f, ": {provisioner} has room for {size} at most, and on no node"),
    }
}

impl fmt::Display for VolumesLookedAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.looked_at {
            0 => f.write_str("there is no volume of the class"),
            1 => f.write_str("1 volume of the class"),
            count => write!(f, "{count} volumes of the class"),
        }?;
        self.reasons.iter().try_for_each(|reason| write!(f, ", {reason}"))
    }
}

impl fmt::Display for VolumesLacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lack, count, largest, .. } = self;
        write!(f, "{count} {lack}")?;
        if *lack == VolumeLack::TooSmall { write!(f, " (largest free {largest})") } else { Ok(()) }
    }
}

impl fmt::Display for VolumeLack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BoundToOthers => "bound to other claims",
            Self::Released => "released by claims that are gone",
            Self::TooSmall => "too small",
            Self::VolumeMode => "with another volumeMode",
            Self::AttributesClass => "with another volumeAttributesClassName",
            Self::Deleting => "being deleted",
            Self::NotAvailable => "not Available",
            Self::Selector => "not selected by the claim",
            Self::AccessModes => "without its access modes",
            Self::AnotherIsReserved => "not taken, since another is reserved for it",
            Self::OtherClaimOfPod => "wanted by other claims of the Pod",
            Self::Nodes => "on nodes that do not fit",
        })
    }
}

impl VolumeLack {
    /// One word.
    pub const fn label(self) -> &'static str {
        match self {
            Self::BoundToOthers => "BoundToOthers",
            Self::Released => "Released",
            Self::TooSmall => "TooSmall",
            Self::VolumeMode => "VolumeMode",
            Self::AttributesClass => "AttributesClass",
            Self::Deleting => "Deleting",
            Self::NotAvailable => "NotAvailable",
            Self::Selector => "Selector",
            Self::AccessModes => "AccessModes",
            Self::AnotherIsReserved => "AnotherIsReserved",
            Self::OtherClaimOfPod => "OtherClaimOfPod",
            Self::Nodes => "Nodes",
        }
    }
}

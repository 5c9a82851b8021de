//! Faults of kube-scheduler with volumes that the plain rules do not repeat. Each is known by what a case must have for
//! it to show: only then may the answers differ. Places are in the tree of Kubernetes v1.36.4, under
//! `pkg/scheduler/framework/plugins`.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    AccessMode, BindingMode, ClusterPod, ObjectKey, PersistentVolumeClaim, PodVolume, VolumeSource,
};
use rules::Cluster;

use crate::compare::{About, Difference};

pub struct Fault {
    pub name: &'static str,
    #[expect(dead_code, reason = "for whoever reads this list")]
    pub why: &'static str,
    #[expect(dead_code, reason = "for whoever reads this list")]
    pub source: &'static str,
    may_show: fn(&Cluster, &ClusterPod, &[Difference]) -> bool,
}

/// Where several may show, the first is named: those that are easiest to tell come first.
pub const FAULTS: [Fault; 7] = [
    Fault {
        name: "a placed Pod with a foreign ephemeral claim or a malformed disk ends every attempt",
        why: "One Pod would keep all Pods with volumes from being placed anywhere.",
        source: "nodevolumelimits/csi.go, filterAttachableVolumes",
        may_show: |cluster, pod, differences| {
            // In a dry run of preemption, it is a victim that nothing can save.
            let is_told = |it: &Difference| it.real.contains("\"NodeVolumeLimits\" filter plugin");
            has_unusable_neighbour(cluster, pod)
                && differences.iter().any(|it| is_told(it) || it.about == About::Victims)
        },
    },
    Fault {
        name: "a claim that is listed twice needs two volumes",
        why: "One is taken for nothing, or the Pod fits nowhere.",
        source: "volumebinding/binder.go, GetPodVolumeClaims",
        may_show: |cluster, pod, _| lists_claim_twice(cluster, pod),
    },
    Fault {
        name: "holders of a ReadWriteOncePod claim are counted by its name alone, and per volume",
        why: "Pods of other namespaces would block, and be preempted for nothing.",
        source: "volumerestrictions/volume_restrictions.go, conflictingPVCRefCountForPod",
        may_show: |cluster, pod, _| has_ambiguous_holders(cluster, pod),
    },
    Fault {
        name: "a volume attached without a Pod counts twice when its Pod comes",
        why: "A full Node would refuse the very Pod whose volume it holds.",
        source: "nodevolumelimits/csi.go, Filter",
        may_show: |cluster, pod, differences| {
            has_own_attachment(cluster, pod) && may_be_limits(differences, |it| &it.real)
        },
    },
    Fault {
        name: "claims of one Pod are compared with the capacity one by one",
        why: "The Pod would stay on a Node that has room for one of them.",
        source: "volumebinding/binder.go, hasEnoughCapacity",
        may_show: |cluster, pod, _| {
            competing(cluster, pod, |claim| {
                let class = cluster.objects.storage_classes.get(&claim.class);
                let driver = class.and_then(|it| cluster.objects.csi_drivers.get(&it.provisioner));
                driver.is_some_and(|driver| driver.has_storage_capacity)
            })
        },
    },
    Fault {
        name: "a claim takes the only volume that another can take",
        why: "The Node is refused although an assignment exists.",
        source: "volumebinding/binder.go, findMatchingVolumes",
        may_show: |cluster, pod, _| competing(cluster, pod, |_| true),
    },
    Fault {
        name: "a claim of a class without provisioner counts for no driver",
        why: "The limit of the driver whose PersistentVolume it takes would be exceeded.",
        source: "nodevolumelimits/csi.go, getCSIDriverInfoFromSC",
        may_show: |cluster, pod, differences| {
            takes_counted_volumes(cluster, pod) && may_be_limits(differences, |it| &it.ours)
        },
    },
];

/// The first that may show in a case that differs so.
pub fn fault(
    cluster: &Cluster,
    pod: &ClusterPod,
    differences: &[Difference],
) -> Option<&'static Fault> {
    FAULTS.iter().find(|fault| (fault.may_show)(cluster, pod, differences))
}

/// Whether one side may have rejected a Node for its limit that the other took.
fn may_be_limits(differences: &[Difference], side: fn(&Difference) -> &str) -> bool {
    differences.iter().any(|it| {
        let is_said = side(it).contains("exceed max volume count");
        is_said || matches!(it.about, About::ScoredNodes | About::ChosenNode)
    })
}

fn claims<'a>(
    cluster: &'a Cluster,
    pod: &'a ClusterPod,
) -> impl Iterator<Item = &'a Arc<PersistentVolumeClaim>> {
    let names = pod.volumes.iter().filter_map(PodVolume::claim);
    names.filter_map(|name| {
        let key = ObjectKey { namespace: pod.namespace().clone(), name: name.clone() };
        cluster.objects.claims.get(&key)
    })
}

/// Those that wait for the Pod to have a Node, each once.
fn delayed<'a>(cluster: &'a Cluster, pod: &'a ClusterPod) -> Vec<&'a Arc<PersistentVolumeClaim>> {
    let mut seen = BTreeSet::new();
    let unbound = claims(cluster, pod).filter(|claim| claim.volume_name.is_none());
    let delayed = unbound.filter(|claim| {
        let class = cluster.objects.storage_classes.get(&claim.class);
        class.is_some_and(|it| it.binding_mode == Some(BindingMode::WaitForFirstConsumer))
    });
    delayed.filter(|claim| seen.insert(&claim.key)).collect()
}

fn has_own_attachment(cluster: &Cluster, pod: &ClusterPod) -> bool {
    let objects = &cluster.objects;
    let volumes =
        claims(cluster, pod).filter_map(|it| objects.volumes.get(it.volume_name.as_ref()?));
    let handles: BTreeSet<_> = volumes
        .filter_map(|volume| match &volume.source {
            VolumeSource::Csi { handle, .. } => Some(handle),
            VolumeSource::InTree { .. } | VolumeSource::Other => None,
        })
        .collect();
    let attached = objects
        .attachments
        .values()
        .filter_map(|attachment| objects.volumes.get(attachment.volume_name.as_ref()?));
    attached
        .filter_map(|volume| match &volume.source {
            VolumeSource::Csi { handle, .. } => Some(handle),
            VolumeSource::InTree { .. } | VolumeSource::Other => None,
        })
        .any(|handle| handles.contains(handle))
}

fn has_ambiguous_holders(cluster: &Cluster, pod: &ClusterPod) -> bool {
    let exclusive: BTreeSet<_> = claims(cluster, pod)
        .filter(|claim| claim.access_modes.contains(AccessMode::ReadWriteOncePod))
        .map(|claim| &claim.key.name)
        .collect();
    let entries = |other: &ClusterPod| {
        let names = other.volumes.iter().filter_map(|volume| match volume {
            PodVolume::Claim(name) => Some(name),
            _ => None,
        });
        names.filter(|name| exclusive.contains(name)).count()
    };
    let holders: Vec<_> = cluster.pods().values().filter(|other| entries(other) > 0).collect();
    holders.len() > 1
        || holders.iter().any(|it| it.namespace() != pod.namespace() || entries(it) > 1)
}

fn takes_counted_volumes(cluster: &Cluster, pod: &ClusterPod) -> bool {
    let by_hand = |claim: &Arc<PersistentVolumeClaim>| {
        let class = cluster.objects.storage_classes.get(&claim.class);
        class.is_some_and(|class| &*class.provisioner == "kubernetes.io/no-provisioner")
    };
    let everyone = cluster.pods().values().map(|pod| &**pod).chain([pod]);
    let classes: BTreeSet<_> = everyone
        .flat_map(|pod| claims(cluster, pod))
        .filter(|claim| by_hand(claim))
        .map(|claim| &claim.class)
        .collect();
    let volumes = cluster.objects.volumes.values();
    volumes
        .filter(|volume| classes.contains(&volume.class))
        .any(|volume| !matches!(volume.source, VolumeSource::Other))
}

fn lists_claim_twice(cluster: &Cluster, pod: &ClusterPod) -> bool {
    let mut seen = BTreeSet::new();
    let twice: Vec<_> = pod
        .volumes
        .iter()
        .filter_map(PodVolume::claim)
        .filter(|name| !seen.insert(*name))
        .collect();
    delayed(cluster, pod).iter().any(|claim| twice.contains(&&claim.key.name))
}

/// Whether two such claims of the Pod are of one class.
fn competing(
    cluster: &Cluster,
    pod: &ClusterPod,
    is_such: impl Fn(&PersistentVolumeClaim) -> bool,
) -> bool {
    let mut classes = BTreeSet::new();
    let delayed = delayed(cluster, pod);
    let mut such = delayed.iter().filter(|claim| is_such(claim));
    such.any(|claim| !classes.insert(&claim.class))
}

fn has_unusable_neighbour(cluster: &Cluster, pod: &ClusterPod) -> bool {
    let others = cluster.pods().values().filter(|other| other.uid != pod.uid);
    others.into_iter().any(|other| {
        other.volumes.iter().any(|volume| match volume {
            PodVolume::Ephemeral(name) => {
                let key = ObjectKey { namespace: other.namespace().clone(), name: name.clone() };
                let claim = cluster.objects.claims.get(&key);
                claim.is_some_and(|claim| claim.controller.as_ref() != Some(&other.uid))
            }
            PodVolume::Disk(disk) => {
                disk.in_tree().is_some_and(|disk| disk.inline_handle().is_err())
            }
            PodVolume::Claim(_) => false,
        })
    })
}

//! Faults of kube-scheduler with volumes that this scheduler does not repeat. Each is known by what a case must have for
//! it to show: only then may the answers differ. Places are in the tree of Kubernetes v1.36.4, under
//! `pkg/scheduler/framework/plugins`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{key_of, name_of};

/// What a fault is looked for in. The UID of a Pod is its `namespace/name`.
#[derive(Debug, Clone)]
pub struct Scene<'a> {
    /// The one to schedule.
    pub pod: &'a Value,
    /// Those that are placed, or promised a Node.
    pub others: Vec<&'a Value>,
    pub claims: Vec<&'a Value>,
    pub volumes: &'a [Value],
    pub classes: &'a [Value],
    pub csi_nodes: &'a [Value],
    pub csi_drivers: &'a [Value],
    pub attachments: &'a [Value],
}

/// What differs, as far as it tells of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// Which Nodes a Pod can be placed on, or the choice among them.
    Nodes,
    /// The Node that is nominated, or who must go from it.
    Victims,
    /// What is written for its claims.
    Volumes,
    /// What is said.
    Other,
}

/// What both said.
#[derive(Debug, Clone, Copy)]
pub struct Difference<'a> {
    pub about: About,
    pub ours: &'a str,
    pub real: &'a str,
}

#[derive(Debug)]
pub struct Fault {
    pub name: &'static str,
    /// Why it is not repeated.
    pub why: &'static str,
    pub source: &'static str,
    may_show: fn(&Scene<'_>, &[Difference<'_>]) -> bool,
}

/// Where several may show, the first is named: those that are easiest to tell come first.
pub const FAULTS: [Fault; 7] = [
    Fault {
        name: "a placed Pod with a foreign ephemeral claim or a malformed disk ends every attempt",
        why: "One Pod would keep all Pods with volumes from being placed anywhere.",
        source: "nodevolumelimits/csi.go, filterAttachableVolumes",
        may_show: |scene, differences| {
            // In a dry run of preemption, it is a victim that nothing can save.
            let is_told =
                |it: &Difference<'_>| it.real.contains("\"NodeVolumeLimits\" filter plugin");
            scene.has_unusable_neighbour()
                && differences.iter().any(|it| is_told(it) || it.about == About::Victims)
        },
    },
    Fault {
        name: "a claim that is listed twice needs two volumes",
        why: "One is taken for nothing, or the Pod fits nowhere.",
        source: "volumebinding/binder.go, GetPodVolumeClaims",
        may_show: |scene, differences| {
            scene.lists_claim_twice() && may_be_said(differences, &BINDING)
        },
    },
    Fault {
        name: "holders of a ReadWriteOncePod claim are counted by its name alone, and per volume",
        why: "Pods of other namespaces would block, and be preempted for nothing.",
        source: "volumerestrictions/volume_restrictions.go, conflictingPVCRefCountForPod",
        may_show: |scene, differences| {
            scene.has_ambiguous_holders() && may_be_said(differences, &["ReadWriteOncePod"])
        },
    },
    Fault {
        name: "a volume attached without a Pod counts twice when its Pod comes",
        why: "A full Node would refuse the very Pod whose volume it holds.",
        source: "nodevolumelimits/csi.go, Filter",
        may_show: |scene, differences| {
            scene.has_own_attachment() && scene.may_be_limits(differences, |it| it.real)
        },
    },
    Fault {
        name: "claims of one Pod are compared with the capacity one by one",
        why: "The Pod would stay on a Node that has room for one of them.",
        source: "volumebinding/binder.go, hasEnoughCapacity",
        may_show: |scene, differences| {
            may_be_said(differences, &BINDING)
                && scene.has_competing_claims(|class| {
                    let provisioner = &class["provisioner"];
                    let mut drivers = scene.csi_drivers.iter();
                    let driver = drivers.find(|driver| driver["metadata"]["name"] == *provisioner);
                    driver.is_some_and(|driver| driver["spec"]["storageCapacity"] == true)
                })
        },
    },
    Fault {
        name: "a claim takes the only volume that another can take",
        why: "The Node is refused although an assignment exists.",
        source: "volumebinding/binder.go, findMatchingVolumes",
        may_show: |scene, differences| {
            may_be_said(differences, &BINDING) && scene.has_competing_claims(|_| true)
        },
    },
    Fault {
        name: "a claim of a class without provisioner counts for no driver",
        why: "The limit of the driver whose PersistentVolume it takes would be exceeded.",
        source: "nodevolumelimits/csi.go, getCSIDriverInfoFromSC",
        may_show: |scene, differences| {
            scene.has_uncounted_claims() && scene.may_be_limits(differences, |it| it.ours)
        },
    },
];

/// The first that may show in a case that differs so.
pub fn fault(scene: &Scene<'_>, differences: &[Difference<'_>]) -> Option<&'static Fault> {
    FAULTS.iter().find(|fault| (fault.may_show)(scene, differences))
}

/// What the binding of volumes says of a Node.
const BINDING: [&str; 3] =
    ["persistent volumes to bind", "enough free storage", "plugin \"VolumeBinding\": "];

/// Whether one side may have rejected a Node with one of these reasons that the other did not.
fn may_be_said(differences: &[Difference<'_>], reasons: &[&str]) -> bool {
    differences.iter().any(|it| {
        let is_said = |reason: &&str| it.ours.contains(reason) || it.real.contains(reason);
        it.about != About::Other || reasons.iter().any(is_said)
    })
}

const IN_TREE: [&str; 5] =
    ["gcePersistentDisk", "awsElasticBlockStore", "azureDisk", "cinder", "portworxVolume"];

impl<'a> Scene<'a> {
    fn claims_of(&self, pod: &Value) -> impl Iterator<Item = &'a Value> {
        let (namespace, _) = name_of(pod);
        let keys = claim_names(pod).into_iter().map(move |name| format!("{namespace}/{name}"));
        keys.filter_map(|key| self.claims.iter().find(|claim| key_of(claim) == key).copied())
    }

    fn class_of(&self, claim: &Value) -> Option<&'a Value> {
        self.classes.iter().find(|class| text(&class["metadata"]["name"]) == class_name(claim))
    }

    fn volume(&self, name: &Value) -> Option<&'a Value> {
        self.volumes.iter().find(|volume| volume["metadata"]["name"] == *name)
    }

    /// Whether one side may have rejected a Node for its limit that the other took.
    fn may_be_limits<'d>(
        &self,
        differences: &[Difference<'d>],
        side: impl Fn(&Difference<'d>) -> &'d str,
    ) -> bool {
        let has_limit = |driver: &Value| driver["allocatable"]["count"].is_number();
        let drivers = self.csi_nodes.iter().filter_map(|node| node["spec"]["drivers"].as_array());
        drivers.flatten().any(has_limit)
            && differences
                .iter()
                .any(|it| side(it).contains("exceed max volume count") || it.about == About::Nodes)
    }

    /// Claims that wait for the Pod to have a Node, each once.
    fn delayed(&self) -> Vec<&'a Value> {
        let mut seen = BTreeSet::new();
        let unbound =
            self.claims_of(self.pod).filter(|claim| claim["spec"]["volumeName"].is_null());
        let delayed = unbound.filter(|claim| {
            let class = self.class_of(claim);
            class.is_some_and(|it| it["volumeBindingMode"] == "WaitForFirstConsumer")
        });
        delayed.filter(|claim| seen.insert(key_of(claim))).collect()
    }

    fn has_own_attachment(&self) -> bool {
        let handle = |volume: &'a Value| volume["spec"]["csi"]["volumeHandle"].as_str();
        let own = self.claims_of(self.pod);
        let own = own.filter_map(|claim| self.volume(&claim["spec"]["volumeName"]));
        let handles: BTreeSet<_> = own.filter_map(handle).collect();
        let attached = self.attachments.iter().filter_map(|attachment| {
            self.volume(&attachment["spec"]["source"]["persistentVolumeName"])
        });
        attached.filter_map(handle).any(|handle| handles.contains(handle))
    }

    fn has_ambiguous_holders(&self) -> bool {
        let is_exclusive = |claim: &&Value| {
            let modes = claim["spec"]["accessModes"].as_array();
            modes.is_some_and(|modes| modes.iter().any(|mode| mode == "ReadWriteOncePod"))
        };
        let exclusive = self.claims_of(self.pod).filter(is_exclusive);
        let exclusive: BTreeSet<_> = exclusive.map(|claim| name_of(claim).1).collect();
        let entries = |pod: &Value| {
            let names = volumes_of(pod)
                .filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str());
            names.filter(|name| exclusive.contains(name)).count()
        };
        let holders: Vec<_> = self.others.iter().filter(|other| entries(other) > 0).collect();
        let is_elsewhere = |other: &Value| name_of(other).0 != name_of(self.pod).0;
        holders.len() > 1 || holders.iter().any(|it| is_elsewhere(it) || entries(it) > 1)
    }

    fn has_uncounted_claims(&self) -> bool {
        let by_hand = |claim: &&Value| {
            let class = self.class_of(claim);
            class.is_some_and(|class| class["provisioner"] == "kubernetes.io/no-provisioner")
        };
        let everyone = self.others.iter().copied().chain([self.pod]);
        let claims: Vec<_> = everyone.flat_map(|pod| self.claims_of(pod)).filter(by_hand).collect();
        // One that is reserved for the claim may be of any class.
        let is_for = |volume: &Value, claim: &Value| {
            let reference = &volume["spec"]["claimRef"];
            let named = (text(&reference["namespace"]), text(&reference["name"]));
            class_name(volume) == class_name(claim) || named == name_of(claim)
        };
        let is_counted = |volume: &Value| {
            let spec = &volume["spec"];
            IN_TREE.iter().chain(&["csi"]).any(|source| !spec[*source].is_null())
        };
        let mut counted = self.volumes.iter().filter(|volume| is_counted(volume));
        counted.any(|volume| claims.iter().any(|claim| is_for(volume, claim)))
    }

    fn lists_claim_twice(&self) -> bool {
        let mut seen = BTreeSet::new();
        let names = claim_names(self.pod).into_iter();
        let twice: Vec<_> = names.filter(|name| !seen.insert(name.clone())).collect();
        self.delayed().iter().any(|claim| twice.iter().any(|name| name == name_of(claim).1))
    }

    /// Whether two delayed claims of the Pod are of one such class.
    fn has_competing_claims(&self, is_such: impl Fn(&Value) -> bool) -> bool {
        let mut classes = BTreeSet::new();
        let delayed = self.delayed();
        let such = |claim: &&&Value| self.class_of(claim).is_some_and(&is_such);
        let mut such = delayed.iter().filter(such);
        such.any(|claim| !classes.insert(class_name(claim)))
    }

    fn has_unusable_neighbour(&self) -> bool {
        let is_foreign = |pod: &Value, volume: &Value| {
            let key = format!("{}-{}", key_of(pod), text(&volume["name"]));
            let claim = self.claims.iter().find(|claim| key_of(claim) == key);
            claim.is_some_and(|claim| controller(claim) != Some(&key_of(pod)))
        };
        self.others.iter().any(|other| {
            volumes_of(other).any(|volume| {
                let is_ephemeral = !volume["ephemeral"].is_null();
                is_ephemeral && is_foreign(other, volume) || is_malformed(volume)
            })
        })
    }
}

fn volumes_of(pod: &Value) -> impl Iterator<Item = &Value> {
    pod["spec"]["volumes"].as_array().into_iter().flatten()
}

fn claim_names(pod: &Value) -> Vec<String> {
    let name = |volume: &Value| {
        if volume["ephemeral"].is_null() {
            volume["persistentVolumeClaim"]["claimName"].as_str().map(str::to_owned)
        } else {
            Some(format!("{}-{}", name_of(pod).1, text(&volume["name"])))
        }
    };
    volumes_of(pod).filter_map(name).collect()
}

/// Of a claim or PersistentVolume.
fn class_name(object: &Value) -> &str {
    let annotations = &object["metadata"]["annotations"];
    let annotated = annotations["volume.beta.kubernetes.io/storage-class"].as_str();
    annotated.unwrap_or_else(|| text(&object["spec"]["storageClassName"]))
}

fn controller(claim: &Value) -> Option<&str> {
    let mut owners = claim["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.find(|owner| owner["controller"] == true).and_then(|owner| owner["uid"].as_str())
}

/// A disk in a Pod that kube-scheduler cannot translate to what a CSI driver calls it.
fn is_malformed(volume: &Value) -> bool {
    let ebs = text(&volume["awsElasticBlockStore"]["volumeID"]);
    let is_strange = ebs.strip_prefix("aws://").is_some_and(|address| {
        address.split_once('/').is_none_or(|(_, id)| !id.starts_with("vol-") || id.contains('/'))
    });
    let kind = volume["azureDisk"]["kind"].as_str();
    is_strange || kind.is_some_and(|kind| kind != "Managed")
}

fn text(field: &Value) -> &str {
    field.as_str().unwrap_or_default()
}

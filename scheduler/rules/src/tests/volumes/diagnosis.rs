//! What a Pod that waits for its volumes is told.

use std::collections::BTreeMap;

use model::{ClaimRef, NodeName, VolumeMode};

use super::*;
use crate::testkit::{cluster, node, pod, rejected};
use crate::{ClaimState, ReasonSeen, VolumeDiagnosis, VolumeLack, diagnose_volumes};

fn diagnosis(cluster: &Cluster, pod: &ClusterPod) -> VolumeDiagnosis {
    let mut nodes: BTreeMap<Reason, Vec<NodeName>> = BTreeMap::new();
    for (node, reasons) in rejected(cluster, pod).nodes {
        for reason in reasons {
            nodes.entry(reason).or_default().push(node.clone());
        }
    }
    let seen = nodes.iter().map(|(reason, nodes)| ReasonSeen {
        reason,
        nodes: nodes.len(),
        examples: &nodes[..nodes.len().min(3)],
    });
    diagnose_volumes(&Rules::default(), cluster, pod, &seen.collect::<Vec<_>>())
}

/// Without what introduces it, for a Pod with these claims.
fn told(cluster: &Cluster, claims: &[&str]) -> String {
    let message = diagnosis(cluster, &pod("incoming").claims(claims).build()).message();
    message.and_then(|it| Some(it.strip_prefix(crate::VOLUMES)?.to_owned())).unwrap_or_default()
}

/// Nodes `n1` and `n2` in zones `a` and `b`.
fn two_nodes() -> Cluster {
    cluster([node("n1").labels("zone=a"), node("n2").labels("zone=b")], [])
}

fn of_another(volume: PersistentVolume) -> PersistentVolume {
    let claim_ref = Some(ClaimRef { key: ObjectKey::new("team-a", "other"), uid: None });
    PersistentVolume { claim_ref, phase: VolumePhase::Bound, ..volume }
}

fn sized(volume: PersistentVolume, gibs: i64) -> PersistentVolume {
    PersistentVolume { capacity: gib(gibs), ..volume }
}

fn large(name: &str, class: &str, gibs: i64) -> PersistentVolumeClaim {
    PersistentVolumeClaim { request: gib(gibs), ..claim(name, class) }
}

#[test]
fn the_volumes_of_the_class_are_counted_by_what_they_lack() {
    let mut cluster = two_nodes();
    cluster.put(by_hand());
    cluster.put(large("data-db-0", "local", 50));
    for number in 0..9 {
        cluster.put(sized(of_another(volume(&format!("bound-{number}"), "local")), 100));
    }
    cluster.put(sized(volume("small-1", "local"), 30));
    cluster.put(sized(volume("small-2", "local"), 40));
    cluster.put(sized(near(volume("far", "local"), "zone", "c"), 50));
    cluster.put(sized(volume("of another class", "else"), 50));
    assert_eq!(
        told(&cluster, &["data-db-0"]),
        "claim team-a/data-db-0 (class local, 50Gi): 12 volumes of the class, 9 bound to other \
         claims, 2 too small (largest free 40Gi), 1 on nodes that do not fit."
    );
    let diagnosis = diagnosis(&cluster, &pod("incoming").claims(&["data-db-0"]).build());
    let volumes = diagnosis.claims[0].problem.volumes().unwrap();
    let small = &volumes.reasons[1];
    assert_eq!((small.lack, small.count, &*small.example), (VolumeLack::TooSmall, 2, "small-2"));
    assert_eq!(diagnosis.claims[0].state, ClaimState::Pending);
}

#[test]
fn each_volume_is_counted_for_the_first_that_it_lacks() {
    let free = |name| volume(name, "local");
    let mut cluster = two_nodes();
    cluster.put(by_hand());
    let selector = Some(crate::testkit::selector("disk=fast"));
    cluster.put(PersistentVolumeClaim { selector, ..claim("c", "local") });
    let fast = |volume| PersistentVolume { labels: labels("disk=fast"), ..volume };
    cluster.put(PersistentVolume { phase: VolumePhase::Released, ..of_another(free("released")) });
    cluster.put(PersistentVolume { volume_mode: VolumeMode::Block, ..free("block") });
    cluster.put(PersistentVolume { attributes_class: "gold".into(), ..free("gold") });
    cluster.put(PersistentVolume { is_deleting: true, ..free("deleting") });
    cluster.put(PersistentVolume { phase: VolumePhase::Pending, ..free("pending") });
    cluster.put(free("unlabelled"));
    let access_modes = [AccessMode::ReadOnlyMany].into_iter().collect();
    cluster.put(PersistentVolume { access_modes, ..fast(free("read-only")) });
    assert_eq!(
        told(&cluster, &["c"]),
        "claim team-a/c (class local, 1Gi): 7 volumes of the class, 1 released by claims that are \
         gone, 1 with another volumeMode, 1 with another volumeAttributesClassName, 1 being \
         deleted, 1 not Available, 1 not selected by the claim, 1 without its access modes."
    );
}

#[test]
fn a_volume_that_is_reserved_keeps_the_claim_from_others() {
    let mut cluster = two_nodes();
    cluster.put(by_hand());
    cluster.put(claim("c", "local"));
    let claim_ref = Some(ClaimRef { key: ObjectKey::new("team-a", "c"), uid: None });
    cluster.put(PersistentVolume { claim_ref, ..near(volume("own", "local"), "zone", "c") });
    cluster.put(volume("free", "local"));
    assert_eq!(
        told(&cluster, &["c"]),
        "claim team-a/c (class local, 1Gi): 2 volumes of the class, 1 not taken, since another is \
         reserved for it, 1 on nodes that do not fit."
    );
}

#[test]
fn of_two_claims_the_one_that_gets_none_is_named() {
    let mut cluster = two_nodes();
    cluster.put(by_hand());
    cluster.put(claim("c", "local"));
    cluster.put(claim("d", "local"));
    cluster.put(volume("only", "local"));
    assert_eq!(
        told(&cluster, &["c", "d"]),
        "claim team-a/d (class local, 1Gi): 1 volume of the class, 1 wanted by other claims of \
         the Pod."
    );
    cluster.objects.volumes.clear();
    assert!(told(&cluster, &["c"]).ends_with(": there is no volume of the class."));
}

#[test]
fn a_claim_that_was_promised_to_a_node_names_it_and_the_annotation() {
    let selected = |name: &str| PersistentVolumeClaim {
        selected_node: Some(name.into()),
        ..claim("c", "made")
    };
    let mut cluster = cluster([node("n1"), node("n3").cordoned()], []);
    cluster.put(class("made", "x.csi"));
    cluster.put(selected("n3"));
    let annotation = "(annotation volume.kubernetes.io/selected-node";
    assert_eq!(
        told(&cluster, &["c"]),
        format!(
            "claim team-a/c (class made, 1Gi) was promised to node n3 {annotation}), which does not \
             take the Pod: remove the annotation to have another node chosen."
        )
    );
    cluster.put(selected("gone"));
    assert!(told(&cluster, &["c"]).contains("node gone (annotation"));
    assert!(told(&cluster, &["c"]).contains("which does not exist: remove"));
    cluster.put(selected(""));
    assert!(told(&cluster, &["c"]).contains(&format!("promised to no node {annotation}, empty)")));
    cluster.put(claim("c", "made"));
    let bindings = model::PodVolumeBindings {
        dynamic_provisions: vec![ObjectKey::new("team-a", "c")],
        ..Default::default()
    };
    cluster.assumed_volumes.assume(&bindings, &"n3".into());
    assert_eq!(
        told(&cluster, &["c"]),
        "claim team-a/c (class made, 1Gi) is being given a volume on node n3 for another Pod."
    );
}

#[test]
fn a_claim_that_others_have_to_bind_says_who() {
    let mut cluster = two_nodes();
    let at_once = Some(BindingMode::Immediate);
    cluster.put(StorageClass { binding_mode: at_once, ..class("now", "x.csi") });
    cluster.put(StorageClass { binding_mode: at_once, ..by_hand() });
    cluster.put(volume("small", "local"));
    cluster.put(claim("c", "fast"));
    assert_eq!(
        told(&cluster, &["c"]),
        "claim team-a/c names StorageClass \"fast\", which does not exist."
    );
    cluster.put(claim("c", "now"));
    assert_eq!(
        told(&cluster, &["c"]),
        "claim team-a/c (class now, 1Gi) is to be bound at once: x.csi has to make a volume, and \
         the PersistentVolume controller has to bind it first."
    );
    cluster.put(large("c", "local", 2));
    assert_eq!(
        told(&cluster, &["c"]),
        "claim team-a/c (class local, 2Gi) is to be bound at once: the PersistentVolume controller \
         has to bind it first (1 volume of the class, 1 too small (largest free 1Gi))."
    );
    let volume_name = Some("pv".into());
    cluster.put(PersistentVolumeClaim { volume_name, ..claim("c", "now") });
    assert_eq!(
        told(&cluster, &["c"]),
        "claim team-a/c (class now, 1Gi) names PersistentVolume pv: the PersistentVolume controller \
         has to bind them first."
    );
    cluster.put(claim("c", ""));
    assert!(told(&cluster, &["c"]).starts_with("claim team-a/c (no class, 1Gi) is to be bound"));
}

#[test]
fn only_the_claims_that_are_not_bound_are_named() {
    let mut cluster = two_nodes();
    cluster.put(volume("pv", ""));
    cluster.put(bound("ready", "pv"));
    cluster.put(class("waits", "x.csi"));
    cluster.put(claim("waiting", "waits"));
    cluster.put(claim("c", "fast"));
    let told = told(&cluster, &["ready", "waiting", "c"]);
    assert_eq!(told, "claim team-a/c names StorageClass \"fast\", which does not exist.");
}

#[test]
fn a_bound_volume_that_is_elsewhere_says_which_label_it_wants() {
    let mut cluster = two_nodes();
    cluster.put(near(volume("pv", "local"), "zone", "c"));
    cluster.put(PersistentVolumeClaim { class: "local".into(), ..bound("c", "pv") });
    assert_eq!(
        told(&cluster, &["c"]),
        "claim team-a/c (class local, 1Gi) is bound to PersistentVolume pv, which wants a node with \
         zone=c."
    );
    cluster.put(volume("pv", "local"));
    let zone = "topology.kubernetes.io/zone";
    let zoned =
        PersistentVolume { labels: labels(&format!("{zone}=c__d")), ..volume("pv", "local") };
    cluster.put(zoned);
    for node in cluster.nodes.values_mut() {
        node.node.labels.insert(zone.into(), "a".into());
    }
    assert_eq!(
        told(&cluster, &["c"]),
        format!(
            "claim team-a/c (class local, 1Gi) is bound to PersistentVolume pv, which is in \
             {zone}=c__d."
        )
    );
    cluster.objects.volumes.clear();
    assert!(told(&cluster, &["c"]).ends_with("PersistentVolume pv, which does not exist."));
}

#[test]
fn storage_that_is_not_enough_says_what_is_published_and_where() {
    let mut cluster = two_nodes();
    cluster.put(class("made", "x.csi"));
    cluster.put(CsiDriver { name: "x.csi".into(), has_storage_capacity: true });
    cluster.put(large("c", "made", 50));
    assert!(told(&cluster, &["c"]).ends_with(": x.csi publishes no capacity of the class."));
    let at = |name: &str, zone: &str, gibs: i64| CsiStorageCapacity {
        node_topology: Some(crate::testkit::selector(&format!("zone={zone}"))),
        ..capacity(name, "made", Some(gibs * GIB), None)
    };
    cluster.put(at("one", "a", 10));
    cluster.put(at("two", "b", 40));
    assert_eq!(
        told(&cluster, &["c"]),
        "claim team-a/c (class made, 50Gi): x.csi has room for 40Gi at most (node n2)."
    );
    cluster.put(at("three", "c", 45));
    assert!(told(&cluster, &["c"]).ends_with("room for 45Gi at most, and on no node."));
    cluster.put(at("two", "b", 60));
    cluster.nodes.get_mut(&"n2".into()).unwrap().node.unschedulable = true;
    assert!(told(&cluster, &["c"]).ends_with("room for it only elsewhere (60Gi on node n2)."));
}

#[test]
fn claims_that_have_no_room_together_are_told_so() {
    let mut cluster = cluster([node("n1")], []);
    cluster.put(class("made", "x.csi"));
    cluster.put(CsiDriver { name: "x.csi".into(), has_storage_capacity: true });
    cluster.put(capacity("one", "made", None, Some(3 * GIB)));
    cluster.put(large("c", "made", 2));
    cluster.put(large("d", "made", 2));
    assert!(told(&cluster, &["c", "d"]).starts_with(
        "claim team-a/c (class made, 2Gi): x.csi has room for each claim of the Pod, not for all \
         together; claim team-a/d"
    ));
}

#[test]
fn a_class_that_makes_volumes_elsewhere_says_where() {
    let mut cluster = two_nodes();
    let values = vec!["c".to_owned(), "d".to_owned()];
    let allowed_topologies = vec![StorageClass::topology_term([("zone", values)])];
    cluster.put(StorageClass { allowed_topologies, ..class("made", "x.csi") });
    cluster.put(claim("c", "made"));
    assert_eq!(
        told(&cluster, &["c"]),
        "claim team-a/c (class made, 1Gi): its class makes volumes only where zone in (c,d) \
         (allowedTopologies)."
    );
}

#[test]
fn a_driver_that_attaches_no_more_says_its_limit_and_on_how_many_nodes() {
    let mut cluster = cluster(
        [node("n1"), node("n2"), node("n3")],
        [pod("placed").on("n1").claims(&["used"]), pod("other").on("n2").claims(&["used"])],
    );
    for (claim, number) in [("used", "1"), ("c", "2"), ("d", "3")] {
        cluster.put(csi_volume(&format!("pv-{number}"), &format!("h{number}")));
        cluster.put(bound(claim, &format!("pv-{number}")));
    }
    for name in ["n1", "n2", "n3"] {
        cluster.put(csi_node(name, Some(1)));
    }
    cluster.put(csi_node("n3", Some(0)));
    assert_eq!(
        told(&cluster, &["c", "d"]),
        "claim team-a/c (no class, 1Gi): no more volumes of driver x.csi on 3 node(s) (n1 has 1 of \
         1, the Pod brings 2)."
    );
}

#[test]
fn a_claim_for_one_pod_names_the_pod_that_has_it() {
    let mut cluster = cluster([node("n1"), node("n2")], [pod("holder").on("n2").claims(&["c"])]);
    cluster.put(volume("pv", ""));
    cluster.put(exclusive(bound("c", "pv")));
    assert_eq!(
        told(&cluster, &["c"]),
        "claim team-a/c (no class, 1Gi) is ReadWriteOncePod and in use by Pod team-a/holder on \
         node n2."
    );
}

#[test]
fn a_claim_that_cannot_be_used_says_what_it_is_in_the_way() {
    let mut cluster = two_nodes();
    let ends = |cluster: &Cluster, end: &str| {
        let told = told(cluster, &["c"]);
        assert!(told.ends_with(end), "{told}");
    };
    ends(&cluster, "claim team-a/c does not exist.");
    cluster.put(PersistentVolumeClaim { is_deleting: true, ..bound("c", "pv") });
    ends(&cluster, "is being deleted.");
    cluster.put(PersistentVolumeClaim { is_lost: true, ..bound("c", "pv") });
    ends(&cluster, "was bound to PersistentVolume pv, which is gone: create it anew.");
    cluster.put(bound("c", "pv"));
    ends(&cluster, "is bound to PersistentVolume pv, which does not exist.");
    let ephemeral = pod("incoming").ephemeral("c").build();
    let of_pod = diagnosis(&cluster, &ephemeral).message().unwrap();
    assert!(of_pod.contains("was not made for this Pod"), "{of_pod}");
}

#[test]
fn the_message_names_a_few_claims_and_is_cut_where_it_becomes_too_long() {
    let mut cluster = two_nodes();
    let names: Vec<String> = (0..20).map(|number| format!("c{number:02}")).collect();
    for name in &names {
        cluster.put(claim(name, "fast"));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let all = told(&cluster, &names);
    assert_eq!((all.matches("claim team-a/").count(), all.ends_with("; and 17 more.")), (3, true));
    assert!(!told(&cluster, &names[..3]).contains("more"));
    let long = "ä".repeat(250);
    cluster.put(claim("c00", &long));
    cluster.put(claim("c01", &long));
    let cut = told(&cluster, &names[..2]);
    assert!(cut.len() <= 768 && cut.ends_with('…'), "{} bytes", cut.len());
}

#[test]
fn a_pod_without_volumes_or_with_other_troubles_is_told_nothing() {
    let mut cluster = two_nodes();
    let large = pod("large").asks(9000, 0);
    assert_eq!(diagnosis(&cluster, &large.build()), VolumeDiagnosis::default());
    cluster.put(volume("pv", ""));
    cluster.put(bound("c", "pv"));
    let large = pod("large").asks(9000, 0).claims(&["c"]).build();
    assert_eq!(diagnosis(&cluster, &large).message(), None);
}

#[test]
fn figures_alone_change_no_substance() {
    let mut cluster = two_nodes();
    cluster.put(by_hand());
    cluster.put(large("c", "local", 50));
    cluster.put(volume("v1", "local"));
    let incoming = pod("incoming").claims(&["c"]).build();
    let before = diagnosis(&cluster, &incoming);
    cluster.put(sized(volume("v2", "local"), 2));
    let after = diagnosis(&cluster, &incoming);
    assert_eq!(before.substance(), after.substance());
    assert_ne!(before, after);
    cluster.put(of_another(volume("v3", "local")));
    assert_ne!(diagnosis(&cluster, &incoming).substance(), before.substance());
}

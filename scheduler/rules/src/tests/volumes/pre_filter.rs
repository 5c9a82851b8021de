//! What is said of the Pod as a whole.

use super::*;
use crate::testkit::{cluster, node, pod, rejected};
use crate::{Decision, Plugin, decide, preempt};

fn message(change: impl FnOnce(&mut Cluster), pod: PodBuilder) -> String {
    let mut cluster = cluster([node("n1")], []);
    cluster.put(volume("pv", ""));
    cluster.put(class("wait", "x.csi"));
    cluster
        .put(StorageClass { binding_mode: Some(BindingMode::Immediate), ..class("now", "x.csi") });
    change(&mut cluster);
    let pod = pod.build();
    let rejection = rejected(&cluster, &pod);
    rejection.message_with(&preempt(&Rules::default(), &cluster, &pod))
}

#[test]
fn each_problem_with_a_claim_has_kube_schedulers_words() {
    type Change = fn(&mut Cluster);
    let cases: [(Change, &str); 10] = [
        (|_| {}, "persistentvolumeclaim \"c\" not found"),
        (
            |it| it.put(PersistentVolumeClaim { is_lost: true, ..bound("c", "pv") }),
            "persistentvolumeclaim \"c\" bound to non-existent persistentvolume \"pv\"",
        ),
        (
            |it| it.put(PersistentVolumeClaim { is_deleting: true, ..bound("c", "pv") }),
            "persistentvolumeclaim \"c\" is being deleted",
        ),
        (|it| it.put(claim("c", "")), "pod has unbound immediate PersistentVolumeClaims"),
        (|it| it.put(claim("c", "missing")), "pod has unbound immediate PersistentVolumeClaims"),
        (|it| it.put(claim("c", "now")), "pod has unbound immediate PersistentVolumeClaims"),
        (
            |it| {
                let volume_name = Some("pv".into());
                it.put(PersistentVolumeClaim { volume_name, ..claim("c", "wait") });
            },
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (|it| it.put(bound("c", "gone")), "persistentvolume \"gone\" not found"),
        (
            |it| {
                let lost = PersistentVolumeClaim { is_lost: true, ..bound("c", "pv") };
                it.put(PersistentVolumeClaim { is_deleting: true, ..lost });
            },
            "persistentvolumeclaim \"c\" bound to non-existent persistentvolume \"pv\"",
        ),
        (|it| it.put(bound("team-b/c", "pv")), "persistentvolumeclaim \"c\" not found"),
    ];
    for (change, words) in cases {
        let expected = format!("0/1 nodes are available: {words}. not found");
        assert_eq!(message(change, pod("incoming").claims(&["c"])), expected);
    }
}

#[test]
fn an_ephemeral_claim_must_be_made_and_be_the_pods_own() {
    let ephemeral = || pod("incoming").ephemeral("incoming-v");
    assert_eq!(
        message(|_| {}, ephemeral()),
        "0/1 nodes are available: waiting for ephemeral volume controller to create the \
         persistentvolumeclaim \"incoming-v\". not found"
    );
    let foreign = |it: &mut Cluster| it.put(bound("incoming-v", "pv"));
    assert_eq!(
        message(foreign, ephemeral()),
        "0/1 nodes are available: PVC team-a/incoming-v was not created for pod team-a/incoming \
         (pod is not owner). not found"
    );
}

#[test]
fn a_class_without_a_binding_mode_ends_the_attempt() {
    let mut cluster = cluster([node("n1")], []);
    cluster.put(StorageClass { binding_mode: None, ..class("bare", "x.csi") });
    cluster.put(claim("c", "bare"));
    let incoming = pod("incoming").claims(&["c"]).build();
    let Decision::Failed(failure) = decide(&Rules::default(), &cluster, &incoming) else {
        panic!("it cannot be decided");
    };
    assert_eq!(failure.plugin, Plugin::VolumeBinding);
    assert_eq!(failure.why.to_string(), "VolumeBindingMode not set for StorageClass \"bare\"");
}

#[test]
fn volume_zone_has_words_of_its_own_without_volume_binding() {
    let mut rules = Rules::default();
    rules.switched_off.filters.insert(Plugin::VolumeBinding);
    let mut cluster = cluster([node("n1")], []);
    cluster
        .put(StorageClass { binding_mode: Some(BindingMode::Immediate), ..class("now", "x.csi") });
    let cases = [
        ("", "PersistentVolumeClaim had no pv name and storageClass name"),
        ("missing", "storageclass.storage.k8s.io \"missing\" not found"),
        ("now", "PersistentVolume had no name"),
    ];
    for (class, words) in cases {
        cluster.put(claim("c", class));
        let incoming = pod("incoming").claims(&["c"]).build();
        let Decision::Rejected(rejection) = decide(&rules, &cluster, &incoming) else {
            panic!("{class:?} was not rejected");
        };
        assert_eq!(rejection.message(), format!("0/1 nodes are available: {words}."));
    }
}

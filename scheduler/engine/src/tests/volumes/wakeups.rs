//! Which Pods with claims a change wakes.

use std::time::Duration;

use model::{
    AccessMode, Assignment, BindingMode, PersistentVolume, PersistentVolumeClaim, StorageClass,
};
use rules::ClusterObject;

use super::{LOCAL, World, bound, local, taken, unbound};
use crate::Event;
use crate::testkit::PodBuilder;

#[test]
fn a_pod_says_what_it_lacks_now_and_not_what_it_lacked() {
    let mut world = World::with_classes();
    world.see(PodBuilder::new("p").claims(&["c"]).build());
    world.decide();
    world.pass(Duration::from_secs(1));
    world.claim(unbound("c", "late"));
    world.decide();
    let held = world.held_reports();
    assert!(held[0].1.contains("pod has unbound immediate PersistentVolumeClaims"), "{held:?}");
}

#[test]
fn a_claim_that_appears_wakes_its_pod() {
    let mut world = World::with_classes();
    world.see(PodBuilder::new("p").claims(&["c"]).build());
    world.decide();
    assert!(world.message("p").contains("persistentvolumeclaim \"c\" not found"));
    world.pass(Duration::from_secs(1));
    world.claim(bound("c", LOCAL, "v1"));
    world.volume(taken(local("v1", "n1"), "c"));
    assert_eq!(world.decide()[0].node.as_str(), "n1");
}

#[test]
fn a_change_of_a_claim_wakes_the_pods_that_use_it_and_no_others() {
    let mut world = World::with_classes();
    for (pod, claim) in [("p", "c"), ("q", "d")] {
        world.see(PodBuilder::new(pod).claims(&[claim]).build());
    }
    world.see(PodBuilder::new("large").cpu_milli(9000).build());
    world.decide();
    world.pass(Duration::from_secs(1));
    world.volume(taken(local("v1", "n1"), "c"));
    assert_eq!(world.engine.stats().parked, 3, "no claim says that it is theirs");
    world.claim(bound("c", LOCAL, "v1"));
    assert_eq!(world.engine.stats().parked, 2);
    assert_eq!(world.bind_all(), ["p"]);
}

#[test]
fn a_version_of_a_claim_that_says_nothing_new_wakes_no_pod() {
    let mut world = World::with_classes();
    let pre_bound = PersistentVolumeClaim { volume_name: Some("v1".into()), ..unbound("c", LOCAL) };
    world.claim(pre_bound.clone());
    world.see(PodBuilder::new("p").claims(&["c"]).build());
    world.decide();
    assert!(world.message("p").contains("pod has unbound immediate PersistentVolumeClaims"));
    world.pass(Duration::from_secs(1));
    world.claim(PersistentVolumeClaim { resource_version: "2".into(), ..pre_bound });
    assert_eq!(world.engine.stats().parked, 1);
}

#[test]
fn a_claim_for_one_pod_is_free_for_the_next_when_that_is_gone_wherever_it_was() {
    let mut world = World::with_classes();
    let once = PersistentVolumeClaim {
        access_modes: [AccessMode::ReadWriteOncePod].into_iter().collect(),
        ..bound("c", LOCAL, "v1")
    };
    world.claim(once);
    world.volume(taken(PersistentVolume { node_affinity: None, ..local("v1", "n1") }, "c"));
    let first = PodBuilder::new("p").claims(&["c"]).cpu_milli(4000);
    world.see(first.assigned(Assignment::Bound { node: "n0".into(), grant: None }).build());
    world.see(PodBuilder::new("q").claims(&["c"]).cpu_milli(4000).build());
    assert!(world.bind_all().is_empty());
    assert!(world.message("q").contains("ReadWriteOncePod access mode already in-use"));
    world.pass(Duration::from_secs(1));
    world.end("p");
    assert_eq!(world.bind_all(), ["q"]);
}

#[test]
fn a_class_that_appears_wakes_the_pods_whose_claims_name_it() {
    let mut world = World::with_classes();
    world.claim(unbound("c", "late"));
    world.see(PodBuilder::new("p").claims(&["c"]).build());
    world.decide();
    assert!(world.message("p").contains("pod has unbound immediate PersistentVolumeClaims"));
    world.pass(Duration::from_secs(1));
    world.handle(Event::seen(ClusterObject::StorageClass(
        "late".into(),
        StorageClass {
            name: "late".into(),
            provisioner: "d.example".into(),
            binding_mode: Some(BindingMode::WaitForFirstConsumer),
            allowed_topologies: Vec::new(),
        },
    )));
    world.decide();
    assert_eq!(world.writes().len(), 1);
}

#[test]
fn an_error_of_what_stands_behind_a_volume_is_tried_again() {
    let mut world = World::with_classes();
    world.claim(unbound("c", "odd"));
    let class = |binding_mode| {
        ClusterObject::StorageClass(
            "odd".into(),
            StorageClass {
                name: "odd".into(),
                provisioner: "d.example".into(),
                binding_mode,
                allowed_topologies: Vec::new(),
            },
        )
    };
    world.handle(Event::seen(class(None)));
    world.see(PodBuilder::new("p").claims(&["c"]).build());
    assert!(world.decide().is_empty());
    assert!(world.message("p").contains("VolumeBindingMode not set for StorageClass"));
    world.handle(Event::seen(class(Some(BindingMode::WaitForFirstConsumer))));
    world.pass(Duration::from_secs(1));
    world.decide();
    assert_eq!(world.writes().len(), 1);
}

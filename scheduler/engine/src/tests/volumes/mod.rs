//! The binding cycle of Pods with claims: what is written, what is awaited, and how it ends.

mod cost;
mod histories;
mod told;
mod wakeups;

use std::sync::Arc;
use std::time::Duration;

use model::{
    AccessMode, Assignment, BindingMode, ClaimRef, NodeSelector, NodeSelectorTerm,
    PersistentVolume, PersistentVolumeClaim, RawRequirement, StorageClass, VolumePhase,
};
use rules::ClusterObject;

use super::World;
use crate::testkit::{CorridorBuilder, NodeBuilder, PodBuilder, corridor, key};
use crate::{BindRefusal, BindRefusalCause, Event, Poll, PrepareWrite, Work};

const LOCAL: &str = "local";
const MADE: &str = "made";

impl World {
    /// Two Nodes with their hostnames, and two classes that wait for a Pod.
    fn with_classes() -> Self {
        let mut world = Self::with_nodes(0);
        for name in ["n0", "n1"] {
            world.handle(Event::seen(NodeBuilder::new(name).label("host", name).build()));
        }
        for (name, provisioner) in [(LOCAL, "kubernetes.io/no-provisioner"), (MADE, "d.example")] {
            world.handle(Event::seen(ClusterObject::StorageClass(
                name.into(),
                StorageClass {
                    name: name.into(),
                    provisioner: provisioner.into(),
                    binding_mode: Some(BindingMode::WaitForFirstConsumer),
                    allowed_topologies: Vec::new(),
                },
            )));
        }
        world
    }

    fn claim(&mut self, claim: PersistentVolumeClaim) {
        let seen = ClusterObject::PersistentVolumeClaim(claim.key.clone(), Arc::new(claim));
        self.handle(Event::seen(seen));
    }

    fn volume(&mut self, volume: PersistentVolume) {
        let seen = ClusterObject::PersistentVolume(volume.name.clone(), Arc::new(volume));
        self.handle(Event::seen(seen));
    }

    fn stage(&self, pod: &str) -> &'static str {
        self.engine.explain(&key(pod)).map(|it| it.state).unwrap_or_default()
    }

    fn writes(&mut self) -> Vec<PrepareWrite> {
        self.prepares.drain(..).flat_map(|prepare| prepare.writes).collect()
    }
}

fn unbound(name: &str, class: &str) -> PersistentVolumeClaim {
    PersistentVolumeClaim {
        uid: format!("uid-{name}").into(),
        class: class.into(),
        request: "1Gi".parse().unwrap(),
        access_modes: [AccessMode::ReadWriteOnce].into_iter().collect(),
        ..PersistentVolumeClaim::new(key(name))
    }
}

fn bound(name: &str, class: &str, volume: &str) -> PersistentVolumeClaim {
    PersistentVolumeClaim {
        volume_name: Some(volume.into()),
        is_bind_completed: true,
        ..unbound(name, class)
    }
}

fn selected(name: &str, node: &str) -> PersistentVolumeClaim {
    PersistentVolumeClaim { selected_node: Some(node.into()), ..unbound(name, MADE) }
}

/// A volume of the local class that is free.
fn local(name: &str, host: &str) -> PersistentVolume {
    let term = NodeSelectorTerm::parse(&[RawRequirement::new("host", "In", &[host])], &[]);
    PersistentVolume {
        class: LOCAL.into(),
        capacity: "2Gi".parse().unwrap(),
        phase: VolumePhase::Available,
        access_modes: [AccessMode::ReadWriteOnce].into_iter().collect(),
        node_affinity: Some(NodeSelector { terms: vec![term] }),
        ..PersistentVolume::new(name)
    }
}

fn taken(volume: PersistentVolume, claim: &str) -> PersistentVolume {
    let uid = Some(format!("uid-{claim}").into());
    PersistentVolume { claim_ref: Some(ClaimRef { key: key(claim), uid }), ..volume }
}

fn done(pod: &str) -> Event {
    Event::PrepareDone(format!("uid-{pod}").as_str().into())
}

fn refused(pod: &str, cause: BindRefusalCause) -> Event {
    let refusal = BindRefusal { cause, message: "no".into() };
    Event::PrepareRefused { pod: format!("uid-{pod}").as_str().into(), refusal }
}

#[test]
fn a_claim_takes_a_volume_before_its_pod_is_bound() {
    let mut world = World::with_classes();
    world.claim(unbound("c", LOCAL));
    world.volume(local("v1", "n1"));
    world.see(PodBuilder::new("p").claims(&["c"]).build());
    assert!(world.decide().is_empty());
    let writes = world.writes();
    let [PrepareWrite::BindVolume { volume, claim, claim_uid, is_reserved, .. }] = &writes[..]
    else {
        panic!("{writes:?}")
    };
    assert_eq!((&**volume, claim, &**claim_uid), ("v1", &key("c"), "uid-c"));
    assert!(!is_reserved);
    world.volume(taken(local("v1", "n1"), "c"));
    world.handle(done("p"));
    assert!(world.decide().is_empty(), "the claim is not bound yet");
    assert_eq!(world.stage("p"), "waiting for claims");
    world.claim(bound("c", LOCAL, "v1"));
    let binds = world.decide();
    assert_eq!((binds.len(), binds[0].node.as_str()), (1, "n1"));
}

#[test]
fn a_volume_is_made_for_the_node_of_the_pod() {
    let mut world = World::with_classes();
    world.claim(unbound("c", MADE));
    world.see(PodBuilder::new("p").claims(&["c"]).build());
    world.decide();
    let node = world.prepares[0].node.clone();
    let writes = world.writes();
    assert!(matches!(&writes[..], [PrepareWrite::SelectNode { .. }]), "{writes:?}");
    world.claim(selected("c", node.as_str()));
    world.handle(done("p"));
    world.claim(bound("c", MADE, "made-1"));
    assert!(world.decide().is_empty(), "the claim may be shown before its volume");
    world.volume(taken(PersistentVolume::new("made-1"), "c"));
    assert_eq!(world.decide()[0].node, node);
}

#[test]
fn two_pods_do_not_take_one_volume() {
    let mut world = World::with_classes();
    world.claim(unbound("c", LOCAL));
    world.claim(unbound("d", LOCAL));
    world.volume(local("v1", "n1"));
    world.see(PodBuilder::new("p").claims(&["c"]).build());
    world.see(PodBuilder::new("q").claims(&["d"]).build());
    world.decide();
    assert_eq!(world.writes().len(), 1);
    assert!(world.message("q").contains("didn't find available persistent volumes to bind"));
    world.handle(refused("p", BindRefusalCause::ApiServer));
    world.pass(Duration::from_secs(2));
    world.decide();
    assert_eq!(world.writes().len(), 1, "what one gives back is there for the others");
}

#[test]
fn pods_that_share_a_claim_go_to_the_node_that_was_chosen_for_it() {
    let mut world = World::with_classes();
    world.claim(unbound("c", MADE));
    for pod in ["p", "q"] {
        world.see(PodBuilder::new(pod).claims(&["c"]).build());
    }
    world.decide();
    assert_eq!(world.prepares.len(), 2);
    assert_eq!(world.prepares[0].node, world.prepares[1].node);
}

#[test]
fn what_a_predecessor_has_written_is_not_written_again() {
    let mut world = World::with_classes();
    world.claim(selected("c", "n1"));
    world.see(PodBuilder::new("p").claims(&["c"]).build());
    assert!(world.decide().is_empty() && world.prepares.is_empty());
    assert_eq!(world.stage("p"), "waiting for claims");
    world.volume(taken(PersistentVolume::new("made-1"), "c"));
    world.claim(PersistentVolumeClaim {
        selected_node: Some("n1".into()),
        ..bound("c", MADE, "made-1")
    });
    assert_eq!(world.decide()[0].node.as_str(), "n1");
}

#[test]
fn a_provisioner_that_gives_the_node_back_lets_the_pod_try_again() {
    let mut world = World::with_classes();
    world.claim(unbound("c", MADE));
    world.see(PodBuilder::new("p").claims(&["c"]).cpu_milli(4000).build());
    world.decide();
    let node = world.prepares[0].node.clone();
    world.writes();
    world.claim(selected("c", node.as_str()));
    world.handle(done("p"));
    world.claim(unbound("c", MADE));
    assert_eq!(world.stage("p"), "backoff");
    let said = "running PreBind plugin \"VolumeBinding\": binding volumes: provisioning failed for PVC \"c\"";
    assert_eq!(world.message("p"), said);
    world.pass(Duration::from_secs(1));
    world.decide();
    assert_eq!(world.writes().len(), 1);
}

#[test]
fn claims_that_are_not_bound_in_time_give_everything_back() {
    let mut world = World::with_classes();
    world.corridor(CorridorBuilder::new("c1", 100));
    world.claim(unbound("c", MADE));
    world.see(PodBuilder::new("p").claims(&["c"]).cpu_milli(4000).needs("c1", Some(100)).build());
    world.decide();
    let node = world.prepares[0].node.clone();
    world.claim(selected("c", node.as_str()));
    world.handle(done("p"));
    assert_eq!(world.engine.reserved(&corridor("c1")).map(|it| it.to_string()), Some("100".into()));
    world.pass(Duration::from_mins(10));
    assert!(world.decide().is_empty());
    assert_eq!(world.engine.reserved(&corridor("c1")).map(|it| it.to_string()), Some("0".into()));
    let said =
        "running PreBind plugin \"VolumeBinding\": binding volumes: context deadline exceeded";
    assert_eq!(world.message("p"), said);
    world.see(PodBuilder::new("q").cpu_milli(4000).build());
    world.see(PodBuilder::new("r").cpu_milli(4000).build());
    assert_eq!(world.bind_all().len(), 2, "both Nodes are free");
}

#[test]
fn a_volume_that_was_taken_by_another_fails_the_wait() {
    let mut world = World::with_classes();
    world.claim(unbound("c", LOCAL));
    world.volume(local("v1", "n1"));
    world.see(PodBuilder::new("p").claims(&["c"]).build());
    world.decide();
    world.volume(taken(local("v1", "n1"), "c"));
    world.handle(done("p"));
    world.volume(taken(local("v1", "n1"), "other"));
    assert!(world.message("p").contains("ClaimRef got reset for pv \"v1\""));
    world.volume(local("v2", "n0"));
    world.pass(Duration::from_secs(2));
    world.writes();
    world.decide();
    assert_eq!(world.prepares[0].node.as_str(), "n0");
}

#[test]
fn a_pod_that_is_deleted_while_it_waits_holds_nothing() {
    for step in 0..3 {
        let mut world = World::with_classes();
        world.claim(unbound("c", MADE));
        let pod = || PodBuilder::new("p").claims(&["c"]).cpu_milli(4000);
        world.see(pod().build());
        world.decide();
        let node = world.prepares[0].node.clone();
        if step > 0 {
            world.claim(selected("c", node.as_str()));
            world.handle(done("p"));
        }
        if step > 1 {
            world.volume(taken(PersistentVolume::new("made-1"), "c"));
            world.claim(bound("c", MADE, "made-1"));
        }
        world.see(pod().assigned(Assignment::Leaving).build());
        if step == 0 {
            world.handle(done("p"));
        }
        world.end("p");
        assert!(world.engine.observed.cluster.assumed_volumes.is_empty());
        for other in ["q", "r"] {
            world.see(PodBuilder::new(other).cpu_milli(4000).build());
        }
        assert_eq!(world.bind_all().len(), 2, "after step {step}");
    }
}

#[test]
fn a_new_term_decides_anew_what_the_last_one_had_not_sent() {
    let mut world = World::with_classes();
    world.claim(unbound("c", MADE));
    world.see(PodBuilder::new("p").claims(&["c"]).build());
    world.decide();
    let node = world.prepares[0].node.clone();
    world.claim(selected("c", node.as_str()));
    world.handle(done("p"));
    world.writes();
    world.handle(Event::TermBegan);
    world.pass(Duration::from_secs(1));
    assert!(world.decide().is_empty() && world.prepares.is_empty());
    assert_eq!(world.stage("p"), "waiting for claims", "on the Node that was written");
    world.volume(taken(PersistentVolume::new("made-1"), "c"));
    world.claim(bound("c", MADE, "made-1"));
    assert_eq!(world.decide()[0].node, node);
}

#[test]
fn a_snapshot_brings_back_what_waits_for_volumes() {
    let mut world = World::with_classes();
    world.claim(unbound("c", LOCAL));
    world.claim(unbound("d", LOCAL));
    world.volume(local("v1", "n1"));
    world.see(PodBuilder::new("p").claims(&["c"]).build());
    world.see(PodBuilder::new("q").claims(&["d"]).build());
    world.decide();
    world.volume(taken(local("v1", "n1"), "c"));
    world.handle(done("p"));
    let snapshot = serde_json::to_string(&world.engine.snapshot()).unwrap();
    world.engine = crate::Engine::restore(serde_json::from_str(&snapshot).unwrap());
    world.claim(bound("c", LOCAL, "v1"));
    assert_eq!(world.decide()[0].pod, key("p"));
}

#[test]
fn a_binding_that_is_ready_waits_until_it_can_be_sent() {
    let mut world = World::with_classes();
    world.claim(selected("c", "n1"));
    world.see(PodBuilder::new("p").claims(&["c"]).build());
    world.decide();
    world.volume(taken(PersistentVolume::new("made-1"), "c"));
    world.claim(bound("c", MADE, "made-1"));
    let no_slot = Work { attempts_max: 0, nodes_max: usize::MAX };
    assert_eq!(world.poll(no_slot), Poll::Idle);
    assert_eq!(world.decide().len(), 1);
}

//! Extended resources that a DeviceClass serves.

use std::sync::Arc;

use model::DeviceClass;

use super::World;
use crate::testkit::{NodeBuilder, PodBuilder, key};
use crate::{ClusterObject, ClusterObjectId, Engine, Event};

const PLAIN: &str = "0/1 nodes are available: 1 Insufficient example.com/gpu.";

fn asks(name: &str, resource: &str) -> model::Pod {
    let ask = |scheduling: &mut model::SchedulingSpec| {
        scheduling.requests.asked.scalar.insert(resource.into(), 1);
    };
    PodBuilder::new(name).scheduling(ask).build()
}

fn class(name: &str, resource: Option<&str>) -> Event {
    let class = DeviceClass {
        name: name.into(),
        created_at_unix_s: 0,
        selectors: Vec::new(),
        configs: Vec::new(),
        extended_resource: resource.map(Into::into),
    };
    Event::seen(ClusterObject::DeviceClass(class.name.clone(), Arc::new(class)))
}

fn told(world: &mut World) -> Vec<String> {
    world.decide();
    world.held_reports().into_iter().map(|(_, message)| message).collect()
}

#[test]
fn a_pod_is_told_of_the_class_that_serves_what_it_asks_for() {
    let mut world = World::with_nodes(1);
    world.handle(class("gpu", Some("example.com/gpu")));
    world.see(asks("a", "example.com/gpu"));
    let message = told(&mut world).remove(0);
    assert!(message.starts_with("UnsupportedFeature: example.com/gpu comes from DeviceClass gpu"));
    assert!(message.contains(PLAIN), "{message}");
    assert_eq!(world.message("a"), message, "explained as told");
}

#[test]
fn every_class_serves_a_resource_of_its_name() {
    let mut world = World::with_nodes(1);
    world.handle(class("gpu", None));
    world.see(asks("a", "deviceclass.resource.kubernetes.io/gpu"));
    world.see(asks("b", "deviceclass.resource.kubernetes.io/other"));
    let is_of_class = |it: &String| it.starts_with("UnsupportedFeature: ");
    assert_eq!(told(&mut world).iter().map(is_of_class).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn pods_that_wait_are_told_anew_when_a_class_comes_or_goes() {
    let mut world = World::with_nodes(1);
    world.see(asks("a", "example.com/gpu"));
    world.see(asks("b", "example.com/other"));
    assert_eq!(told(&mut world).len(), 2);
    world.handle(class("gpu", Some("example.com/gpu")));
    world.pass(std::time::Duration::from_mins(1));
    let anew = told(&mut world);
    assert!(anew.len() == 1 && anew[0].starts_with("UnsupportedFeature: "), "{anew:?}");
    world.handle(class("gpu", Some("example.com/gpu")));
    world.pass(std::time::Duration::from_mins(1));
    assert!(told(&mut world).is_empty(), "nothing new");
    let mut copy = Engine::restore(world.engine.snapshot());
    world.handle(Event::gone(ClusterObjectId::DeviceClass("gpu".into())));
    world.pass(std::time::Duration::from_mins(1));
    let anew = told(&mut world);
    assert!(anew.len() == 1 && anew[0].starts_with(PLAIN), "{anew:?}");
    copy.handle(world.now, Event::gone(ClusterObjectId::DeviceClass("gpu".into())));
    let of_copy = copy.explain(&key("a")).map(|it| it.message);
    assert_eq!(of_copy.as_deref(), Some(anew[0].as_str()), "the copy knew the class");
}

#[test]
fn a_node_that_offers_the_resource_serves_it_whatever_a_class_says() {
    let mut world = World::with_nodes(1);
    world.handle(class("gpu", Some("example.com/gpu")));
    let mut node = NodeBuilder::new("with-plugin").build();
    node.node.allocatable.scalar.insert("example.com/gpu".into(), 1);
    world.handle(Event::seen(node));
    world.see(asks("a", "example.com/gpu"));
    assert_eq!(world.bind_all(), ["a"]);
}

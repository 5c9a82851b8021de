//! Watches: nothing is lost, nothing comes twice, nothing grows without limit.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::core::PartialObjectMeta;
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;

use crate::{config_map, create_pod, pod, start};

const PATIENCE: Duration = Duration::from_secs(10);

async fn next<T>(stream: &mut (impl Stream<Item = T> + Unpin)) -> T {
    let next = tokio::time::timeout(PATIENCE, stream.next()).await;
    next.expect("nothing came in time").expect("the stream ended")
}

fn label(value: &str) -> Patch<serde_json::Value> {
    Patch::Merge(json!({ "metadata": { "labels": { "tier": value } } }))
}

/// What the watcher says, as a word and a name.
fn told(event: &watcher::Event<ConfigMap>) -> String {
    match event {
        watcher::Event::Init => "init".to_owned(),
        watcher::Event::InitApply(object) => format!("init {}", object.name_any()),
        watcher::Event::InitDone => "done".to_owned(),
        watcher::Event::Apply(object) => format!("apply {}", object.name_any()),
        watcher::Event::Delete(object) => format!("delete {}", object.name_any()),
    }
}

#[tokio::test]
async fn a_watcher_sees_every_change_in_both_list_modes() {
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let (_server, client) = start().await;
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        maps.create(&PostParams::default(), &config_map("old")).await.unwrap();
        let mut events = watcher(maps.clone(), config).boxed();
        for expected in ["init", "init old", "done"] {
            assert_eq!(told(&next(&mut events).await.unwrap()), expected);
        }
        maps.create(&PostParams::default(), &config_map("new")).await.unwrap();
        maps.patch("old", &PatchParams::default(), &label("1")).await.unwrap();
        maps.delete("old", &DeleteParams::default()).await.unwrap();
        for expected in ["apply new", "apply old", "delete old"] {
            assert_eq!(told(&next(&mut events).await.unwrap()), expected);
        }
    }
}

#[tokio::test]
async fn a_metadata_watcher_works_too() {
    let (_server, client) = start().await;
    create_pod(&client, pod("a")).await;
    let pods: Api<PartialObjectMeta<Pod>> = Api::all(client);
    let mut seen = watcher(pods, watcher::Config::default()).applied_objects().boxed();
    assert_eq!(next(&mut seen).await.unwrap().name_any(), "a");
}

#[tokio::test]
async fn objects_enter_and_leave_a_selection() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    let version =
        maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let params = WatchParams::default().labels("tier=1");
    let mut events = maps.watch(&params, &version).await.unwrap().boxed();
    let change = PatchParams::default();
    maps.patch("a", &change, &label("1")).await.unwrap();
    let inside =
        maps.patch("a", &change, &Patch::Merge(json!({ "data": { "x": "y" } }))).await.unwrap();
    let outside = maps.patch("a", &change, &label("2")).await.unwrap();
    maps.patch("a", &change, &label("3")).await.unwrap();
    maps.patch("a", &change, &label("1")).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(matches!(next(&mut events).await.unwrap(), WatchEvent::Added(_)));
    assert!(matches!(next(&mut events).await.unwrap(), WatchEvent::Modified(_)));
    let WatchEvent::Deleted(gone) = next(&mut events).await.unwrap() else { panic!("not deleted") };
    assert_eq!(gone.labels()["tier"], "1", "the last state that was selected");
    assert_eq!(gone.data, inside.data);
    assert_eq!(
        gone.resource_version(),
        outside.resource_version(),
        "and the version of the change"
    );
    assert!(matches!(next(&mut events).await.unwrap(), WatchEvent::Added(_)));
    assert!(matches!(next(&mut events).await.unwrap(), WatchEvent::Deleted(_)));
}

#[tokio::test]
async fn nothing_is_lost_between_list_and_watch() {
    const WRITERS: usize = 4;
    const OBJECTS: usize = 100;
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let writers = (0..WRITERS).map(|writer| {
        let maps = maps.clone();
        tokio::spawn(async move {
            for index in 0..OBJECTS {
                let map = config_map(&format!("w{writer}-{index}"));
                maps.create(&PostParams::default(), &map).await.unwrap();
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    // Lists at various moments, each followed by a watch from exactly there.
    for _ in 0..10 {
        let list = maps.list(&ListParams::default()).await.unwrap();
        let version = list.metadata.resource_version.clone().unwrap();
        let mut seen: BTreeSet<String> = list.iter().map(ResourceExt::name_any).collect();
        assert_eq!(seen.len(), list.items.len());
        let mut newest: u64 = version.parse().unwrap();
        let mut events = maps.watch(&WatchParams::default(), &version).await.unwrap().boxed();
        while seen.len() < WRITERS * OBJECTS {
            let WatchEvent::Added(map) = next(&mut events).await.unwrap() else {
                panic!("not added")
            };
            let version: u64 = map.resource_version().unwrap().parse().unwrap();
            assert!(version > newest, "{version} after {newest}");
            newest = version;
            assert!(seen.insert(map.name_any()), "{} came twice", map.name_any());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    futures::future::try_join_all(writers).await.unwrap();
}

#[tokio::test]
async fn a_watcher_that_falls_behind_is_told_to_list_again() {
    // More than the history holds, and more than sockets buffer.
    const OBJECTS: usize = 90;
    const BYTES_EACH: usize = 1 << 20;
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &config_map("zero")).await.unwrap();
    let mut events = watcher(maps.clone(), watcher::Config::default()).boxed();
    for expected in ["init", "init zero", "done"] {
        assert_eq!(told(&next(&mut events).await.unwrap()), expected);
    }
    let mut large = config_map("large");
    large.data = Some([("blob".to_owned(), "x".repeat(BYTES_EACH))].into());
    maps.create(&PostParams::default(), &large).await.unwrap();
    for round in 0..OBJECTS {
        maps.patch("large", &PatchParams::default(), &label(&round.to_string())).await.unwrap();
    }
    let mut relisted = false;
    while !relisted {
        relisted = match next(&mut events).await {
            Ok(watcher::Event::Init) => true,
            Ok(_) => false,
            Err(watcher::Error::WatchError(status)) => {
                assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
                false
            }
            Err(other) => panic!("{other}"),
        };
    }
    let mut names = Vec::new();
    while let watcher::Event::InitApply(map) = next(&mut events).await.unwrap() {
        names.push(map.name_any());
    }
    assert_eq!(names, ["large", "zero"]);
}

#[tokio::test]
async fn a_version_from_another_life_is_expired() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut events = maps.watch(&WatchParams::default(), "999999").await.unwrap().boxed();
    let WatchEvent::Error(status) = next(&mut events).await.unwrap() else { panic!("no error") };
    assert_eq!(status.code, 410);
}

#[tokio::test]
async fn a_watch_ends_at_its_time_and_when_the_server_stops() {
    let (server, client) = start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let short = WatchParams::default().timeout(1);
    let events = maps.watch(&short, "1").await.unwrap();
    let events = tokio::time::timeout(PATIENCE, events.try_collect::<Vec<_>>()).await;
    assert!(events.expect("it ends").unwrap().is_empty());

    let long = maps.watch(&WatchParams::default(), "1").await.unwrap();
    let ended = tokio::spawn(async move { long.collect::<Vec<_>>().await });
    tokio::time::timeout(PATIENCE, server.stop()).await.expect("stopping takes no time");
    tokio::time::timeout(PATIENCE, ended).await.expect("watches end with the server").unwrap();
}

#[tokio::test]
async fn dropping_the_server_stops_it() {
    let (server, _client) = start().await;
    let addr = server.url().replace("http://", "");
    drop(server);
    let closed = async {
        while tokio::net::TcpStream::connect(&addr).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, closed).await.expect("nobody listens any more");
}

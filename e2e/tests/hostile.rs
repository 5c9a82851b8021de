//! What hostile tenants try: `cases/hostile.yaml`, on a real API server.
//!
//! Once with the policies of `config/admission/`, where it is the API server that refuses; and once
//! without, with the whole site at work: daemons, controllers, scheduler. There every case must be
//! without effect while the process lives, and without effect or reported after it was killed and started
//! anew.
//!
//! Longer runs than CI's, by environment variable:
//!
//! | Variable | What | Default |
//! |---|---|---|
//! | `CORRIDOR_E2E_CROWD` | Corridors in one namespace, and Pods in one line | 2,000 |

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;
use std::{env, fs};

use e2e::binaries::say;
use e2e::hostile::guarded::Guarded;
use e2e::hostile::verdict::{Told, counted};
use e2e::hostile::{Case, Neighbour, Outcome, World, crowds};
use e2e::metrics::sum;
use e2e::objects::nodes::NodeTemplate;
use e2e::{ControlPlane, Result, Site, SiteOptions};
use futures::{StreamExt as _, stream};
use serde_json::json;

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cases/hostile.yaml");
/// What must never shrink unnoticed.
const CASES_MIN: usize = 120;
/// Worlds at once. Each waits more than it computes.
const AT_ONCE: usize = 12;
/// Of 110 Pods each: three or four for every world.
const NODES: usize = 8;
const CROWD: usize = 2000;

fn cases() -> Vec<Case> {
    let cases: Vec<Case> = serde_saphyr::from_str(&fs::read_to_string(CASES).unwrap()).unwrap();
    assert!(cases.len() >= CASES_MIN, "there are only {} cases", cases.len());
    let names: BTreeSet<_> = cases.iter().map(Case::title).collect();
    assert_eq!(names.len(), cases.len(), "two cases have the same name");
    cases
}

/// How many cases of each class, for people.
fn tell(cases: &[Case]) {
    let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
    for case in cases {
        *classes.entry(&case.class).or_default() += 1;
    }
    say(&format!("hostile: {} cases: {classes:?}", cases.len()));
}

#[tokio::test]
async fn with_policies_the_api_server_refuses() {
    let guarded = Guarded::start().await.unwrap();
    let mut problems = vec![];
    for case in cases() {
        problems.extend(guarded.judge(&case).await.unwrap());
    }
    assert!(problems.is_empty(), "{} wrong:\n{}", problems.len(), problems.join("\n"));
}

/// Does something with every world, some at a time, and fails with all that went wrong.
async fn for_all<T>(worlds: &[T], act: impl AsyncFn(&T) -> Result<()>) {
    let outcomes: Vec<Result<()>> =
        stream::iter(worlds).map(|world| act(world)).buffer_unordered(AT_ONCE).collect().await;
    let problems: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "{} wrong:\n{}", shown.len(), shown.join("\n"));
}

#[tokio::test]
async fn without_policies_nothing_is_lost_or_stolen() {
    let begun = Instant::now();
    let plane = ControlPlane::start().await.unwrap();
    plane.install_crds().await.unwrap();
    let cluster = plane.cluster().await.unwrap();
    let settings = json!({ "sweepIntervalSeconds": 2 });
    let options = SiteOptions { settings, meddled: true, tampered: true, ..SiteOptions::default() };
    let mut site = Site::start(&cluster, options).await.unwrap();
    let room = NodeTemplate::new("64", "256Gi");
    cluster.create_nodes_numbered(4..=NODES, &room).await.unwrap();

    let worlds = play(&site).await;
    let told = told(&site, &worlds).await;
    site.kill_scheduler().await.unwrap();
    for_all(
        &worlds,
        async |world| {
            if world.case.again_while_down { world.attack(&site).await } else { Ok(()) }
        },
    )
    .await;
    site.restart_scheduler().await.unwrap();
    for_all(&worlds, async |world| world.judge_restarted(&site, &told).await).await;
    for (kind, expected) in expected(&worlds, |case| match case.after_restart {
        Outcome::Detected => case.kind_after.as_deref().or(case.kind.as_deref()),
        _ => None,
    }) {
        let seen = counted(&site, kind).await.unwrap();
        assert!(seen >= expected, "{kind}: {seen} of {expected} after the restart");
    }
    say(&format!("hostile: the restart is over after {:.0?}", begun.elapsed()));

    crowds::of_an_early_release(&site).await.unwrap();
    crowds::of_changes(&site).await.unwrap();
    crowds::of_lies(&site).await.unwrap();
    let crowd = env::var("CORRIDOR_E2E_CROWD").map_or(CROWD, |text| text.parse().unwrap());
    crowds::of_pods(&site, crowd).await.unwrap();
    crowds::of_corridors(&site, crowd).await.unwrap();
    say(&format!("hostile: all is over after {:.0?}", begun.elapsed()));
}

/// Builds every world, attacks it, and looks at what came of it.
async fn play(site: &Site) -> Vec<World> {
    let cases = cases();
    tell(&cases);
    let begun = Instant::now();
    let neighbour = &Neighbour::build(site).await.unwrap();
    let worlds: Vec<Result<World>> = stream::iter(cases.into_iter().enumerate())
        .map(|(number, case)| World::build(site, neighbour, case, number))
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let worlds: Vec<World> = worlds.into_iter().map(Result::unwrap).collect();
    let scraped = site.scheduler.metrics().await.unwrap();
    let wolf = sum(&scraped, "corridor_tampering_total", &[]);
    assert!(wolf < 1.0, "{wolf} tamperings before there was any");
    say(&format!("hostile: every world is built after {:.0?}", begun.elapsed()));
    for_all(&worlds, async |world| {
        world.attack(site).await?;
        world.judge_living(site).await
    })
    .await;
    for (kind, expected) in expected(&worlds, |case| case.kind.as_deref()) {
        let seen = counted(site, kind).await.unwrap();
        assert!(seen >= expected, "{kind}: {seen} of {expected}");
    }
    let scraped = site.scheduler.metrics().await.unwrap();
    let stolen = sum(&scraped, "corridor_reserved_gbps", &["namespace=\"neighbour\""]);
    assert!(stolen < 0.001, "{stolen} Gbps of the neighbour's are reserved");
    ensure_clean_log(site);
    say(&format!("hostile: every attack is over after {:.0?}", begun.elapsed()));
    worlds
}

/// How many cases name each kind.
fn expected<'a>(
    worlds: &'a [World],
    kind: impl Fn(&'a Case) -> Option<&'a str>,
) -> BTreeMap<&'a str, f64> {
    let mut expected = BTreeMap::new();
    for kind in worlds.iter().filter_map(|world| kind(&world.case)) {
        *expected.entry(kind).or_default() += 1.0;
    }
    expected
}

async fn told(site: &Site, worlds: &[World]) -> Told {
    let mut all = Told::new();
    for world in worlds {
        all.extend(world.told(site).await.unwrap().into_iter().map(|(name, _)| name));
    }
    all
}

/// What tenants write never moves a terminal's cursor or forges a line.
fn ensure_clean_log(site: &Site) {
    let log = site.scheduler.log();
    let bad = log.chars().find(|it| it.is_control() && *it != '\n' || *it == '\u{202e}');
    assert_eq!(bad, None, "a control character is in the log");
    assert!(!log.lines().any(|line| line.starts_with("2026-01-01 ERROR")), "a forged line");
}

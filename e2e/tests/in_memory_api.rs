//! The in-memory API answers as the real API server does, call by call, over random sequences.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use std::env;
use std::fs;

use e2e::ControlPlane;
use e2e::binaries::say;
use e2e::control_plane::CONFIG_DIR;
use e2e::in_memory_api::{ALLOWED, Figures, Options, play, play_forgotten};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Client, Config};
use sim::{ApiServer, Fault, Matching, Verb};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

/// Half a minute, with the second that the watches of each sequence last.
const SEQUENCES: usize = 12;
const CALLS: usize = 120;
const SEED: u64 = 1;
/// Far from the others: each sequence has its own namespaces.
const FORGOTTEN_SEED: u64 = 2_000_000;
const SABOTAGED_SEED: u64 = 1_000_000;

/// One for all tests of this file, and one test at a time: lists over all namespaces show the objects of
/// others too. It ends with the process: see `hygiene.rs`.
async fn control_plane() -> (&'static ControlPlane, MutexGuard<'static, ()>) {
    static TURN: Mutex<()> = Mutex::const_new(());
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    let turn = TURN.lock().await;
    let plane = SHARED
        .get_or_init(|| async {
            let plane = ControlPlane::start().await.unwrap();
            plane.install_crds().await.unwrap();
            plane
        })
        .await;
    (plane, turn)
}

async fn in_memory_api() -> (ApiServer, Client) {
    let mut definitions: Vec<CustomResourceDefinition> = Vec::new();
    for entry in fs::read_dir(format!("{CONFIG_DIR}/crd")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        definitions.push(serde_saphyr::from_str(&text).unwrap());
    }
    let server = ApiServer::start("127.0.0.1:0".parse().unwrap(), definitions).await.unwrap();
    let mut config = Config::new(server.url().parse().unwrap());
    config.default_retry = false;
    (server, Client::try_from(config).unwrap())
}

fn number(variable: &str, default: usize) -> usize {
    env::var(variable).map_or(default, |text| text.parse().unwrap())
}

async fn figures(real: &Client, model: &Client, options: &Options) -> Figures {
    let figures = play(real, model, options).await.unwrap();
    say(&figures.to_string());
    figures
}

fn ensure_same(figures: &Figures) {
    let differing: Vec<String> = figures.differing.iter().map(ToString::to_string).collect();
    let count = differing.len();
    assert!(differing.is_empty(), "{count} sequences differ:\n{}", differing.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_real_api_server_would_have_answered_the_same() {
    let (plane, _turn) = control_plane().await;
    let real = plane.admin();
    let (_server, model) = in_memory_api().await;
    let options = Options {
        seed: number("CORRIDOR_E2E_API_SEED", usize::try_from(SEED).unwrap()) as u64,
        sequences: number("CORRIDOR_E2E_API_SEQUENCES", SEQUENCES),
        calls: CALLS,
    };
    let figures = figures(&real, &model, &options).await;
    ensure_same(&figures);
    assert!(figures.events > 0 && figures.codes.len() > 5, "too little was compared: {figures}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_forgotten_is_expired_in_the_same_words() {
    let (plane, _turn) = control_plane().await;
    let (server, model) = in_memory_api().await;
    let forget = async |latest: String| {
        server.expire_history();
        plane.compact_etcd(&latest).await
    };
    let real = plane.admin();
    let figures = play_forgotten(&real, &model, FORGOTTEN_SEED, forget).await.unwrap();
    say(&figures.to_string());
    ensure_same(&figures);
    assert_eq!(figures.codes.get(&410), Some(&3), "{figures}");
}

#[test]
fn every_difference_that_is_meant_is_told_to_users() {
    let told = concat!(env!("CARGO_MANIFEST_DIR"), "/../scheduler/sim/src/lib.rs");
    let told = fs::read_to_string(told).unwrap();
    for allowed in ALLOWED {
        assert!(told.contains(&format!("*{}*", allowed.name)), "{}: {}", allowed.name, allowed.why);
    }
}

/// A comparison that cannot fail would prove nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_that_answers_otherwise_is_found_out() {
    let (plane, _turn) = control_plane().await;
    let real = plane.admin();
    let (server, model) = in_memory_api().await;
    let one_create = Matching::any().verb(Verb::Create).resource("pods").subresource("");
    server.inject(one_create, Fault::Refuse(503), 1);
    let options = Options { seed: SABOTAGED_SEED, sequences: 1, calls: CALLS };
    let figures = figures(&real, &model, &options).await;
    let [difference] = figures.differing.as_slice() else { panic!("nobody noticed") };
    assert_eq!(difference.model["code"], 503, "{difference}");
    assert_eq!(server.faults_waiting(), 0);
}

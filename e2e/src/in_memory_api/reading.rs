//! Lists and watches of every sort.

use super::call::Call;
use super::generator::Generator;
use super::kinds::{KINDS, Kind};

/// A second: all that a watch has to tell has happened when it begins.
const WATCH_SECONDS: usize = 1;

/// A list, or the next page of one.
pub fn list(generator: &mut Generator) -> Call {
    if !generator.seen.pages.is_empty() && generator.random.chance(40) {
        let (page, list) = generator.random.pick(&generator.seen.pages);
        let limit = generator.random.between(0, 3);
        let call = Call::get(format!("{list}?limit={limit}&continue=«continue {page}»"));
        return match generator.random.below(10) {
            0 => call.with_query("resourceVersion=1"),
            1 => call.with_query("resourceVersion=0"),
            _ => call,
        };
    }
    let kind = &KINDS[generator.kind()];
    let mut call = Call::get(place(generator, kind));
    if generator.random.chance(60) {
        call = call.with_query(&format!("limit={}", generator.random.between(0, 4)));
    }
    if let Some(selector) = selector(generator, kind) {
        call = call.with_query(&selector);
    }
    match generator.random.below(8) {
        0 => call.with_query("resourceVersion=0"),
        1 | 2 if !generator.seen.versions.is_empty() => {
            let reply = generator.random.pick(&generator.seen.versions);
            let call = call.with_query(&format!("resourceVersion=«rv {reply}»"));
            match generator.random.below(3) {
                0 => call.with_query("resourceVersionMatch=Exact"),
                1 => call.with_query("resourceVersionMatch=NotOlderThan"),
                _ => call,
            }
        }
        3 => call.with_query(generator.random.pick(&[
            "resourceVersionMatch=Exact",
            "resourceVersion=0&resourceVersionMatch=Exact",
            "resourceVersion=1&resourceVersionMatch=Roughly",
            "resourceVersion=x",
            "continue=nonsense",
            "continue=e30",
            "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MX0",
            "limit=x",
            "labelSelector=a%20b%20c",
            "fieldSelector=nothing%3Da",
            "sendInitialEvents=true",
        ])),
        _ => call,
    }
}

/// A watch of what the sequence has done, from somewhere in it.
pub fn watch(generator: &mut Generator) -> Call {
    let kind = &KINDS[generator.kind()];
    let mut call = Call::get(place(generator, kind))
        .with_query(&format!("watch=1&timeoutSeconds={WATCH_SECONDS}"));
    if let Some(selector) = selector(generator, kind) {
        call = call.with_query(&selector);
    }
    match generator.random.below(8) {
        0 => call,
        1 => call.with_query("resourceVersion=0"),
        2 => call.with_query(
            "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan",
        ),
        3 => call.with_query(generator.random.pick(&[
            "resourceVersionMatch=Exact",
            "sendInitialEvents=true",
            "resourceVersion=x",
        ])),
        _ if generator.seen.versions.is_empty() => call,
        _ => {
            let reply = generator.random.pick(&generator.seen.versions);
            call.with_query(&format!("resourceVersion=«rv {reply}»"))
        }
    }
}

/// In one namespace, or in all where both servers have the same.
fn place(generator: &mut Generator, kind: &Kind) -> String {
    let everywhere = !kind.has_others && generator.random.chance(30);
    let namespace = if everywhere { String::new() } else { generator.namespace() };
    kind.collection(&namespace)
}

fn selector(generator: &mut Generator, kind: &Kind) -> Option<String> {
    let random = &mut generator.random;
    match random.below(6) {
        0 => Some("labelSelector=tier%3Dx".to_owned()),
        1 => {
            let labels = ["tier in (x,y)", "!tier", "tier,zone!=z", "tier notin (x)", "zone"];
            Some(format!("labelSelector={}", encoded(random.pick(&labels))))
        }
        2 if !kind.fields.is_empty() => {
            Some(format!("fieldSelector={}", encoded(random.pick(kind.fields))))
        }
        3 => Some("fieldSelector=metadata.name%3Da".to_owned()),
        _ => None,
    }
}

fn encoded(text: &str) -> String {
    text.replace(' ', "%20").replace('=', "%3D").replace(',', "%2C").replace('!', "%21")
}

//! The same Pods and Nodes in JSON and in protobuf, both as Kubernetes writes them, tell the same. How the files
//! in `golden/protobuf` were made says its README.

use std::fmt::Debug;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use serde_json::Value;

use super::cursor::Ask;
use super::frames::{JsonPage, StatusOrBookmark, read};
use super::page::{ListReading, Unanswered};
use super::response::{Frame, ResponseDecoder};
use crate::wire::{Wire, WireNode, WirePod};

const PODS: (&[u8], &[u8]) = (
    include_bytes!("../../golden/protobuf/pods.json"),
    include_bytes!("../../golden/protobuf/pods.pb"),
);
const NODES: (&[u8], &[u8]) = (
    include_bytes!("../../golden/protobuf/nodes.json"),
    include_bytes!("../../golden/protobuf/nodes.pb"),
);
const EVENTS: (&[u8], &[u8]) = (
    include_bytes!("../../golden/protobuf/events.json"),
    include_bytes!("../../golden/protobuf/events.pb"),
);

fn decoder<K: Wire>(ask: &Ask, content_type: &'static str) -> Option<ResponseDecoder<K>> {
    let headers = [(CONTENT_TYPE, HeaderValue::from_static(content_type))];
    ResponseDecoder::to(ask, &HeaderMap::from_iter(headers))
}

/// What comes of these bytes when they come in chunks of this size.
fn frames<K: Wire>(mut decoder: ResponseDecoder<K>, bytes: &[u8], chunk: usize) -> Vec<Frame<K>> {
    let mut all = Vec::new();
    for bytes in bytes.chunks(chunk) {
        decoder.feed(bytes).unwrap();
        while let Some(piece) = decoder.next() {
            all.push(piece.unwrap());
        }
    }
    all
}

fn listed<K: Wire>(bytes: &[u8], chunk: usize) -> Vec<Frame<K>> {
    frames(decoder(&Ask::List, "application/vnd.kubernetes.protobuf").unwrap(), bytes, chunk)
}

fn assert_lists_agree<K: Wire + Debug + PartialEq>((json, binary): (&[u8], &[u8]), end: &str) {
    let page = JsonPage::read(json).unwrap();
    for chunk in [1, 7, 1_000, binary.len()] {
        let mut pieces = listed::<K>(binary, chunk);
        let last = pieces.pop().unwrap();
        assert!(
            matches!(&last, Frame::ListEnds { version, token }
                if version == page.version() && version == end && token.as_deref() == page.token()),
            "{last:?}"
        );
        assert_eq!(pieces.len(), page.items().len());
        for (piece, raw) in pieces.into_iter().zip(page.items()) {
            let Frame::Seen(Ok(object)) = piece else { panic!("{piece:?}") };
            assert_eq!(object, read::<K>(raw).unwrap(), "{raw}");
        }
    }
}

#[test]
fn pods_tell_the_same_in_protobuf_as_in_json() {
    assert_lists_agree::<WirePod>(PODS, "71");
}

#[test]
fn nodes_tell_the_same_in_protobuf_as_in_json() {
    assert_lists_agree::<WireNode>(NODES, "72");
}

/// Two forms that both tell nothing agree, too: each field must be there somewhere.
#[test]
fn no_field_that_is_read_is_missing_from_the_comparison() {
    let shown = |bytes: &[u8]| -> String {
        let page = JsonPage::read(bytes).unwrap();
        page.items().iter().map(|raw| raw.get()).collect()
    };
    let (pods, nodes) = (shown(PODS.0), shown(NODES.0));
    for field in [
        "uid resourceVersion generation deletionTimestamp labels annotations ownerReferences",
        "controller managedFields schedulerName nodeName priority preemptionPolicy nodeSelector",
        "tolerations initContainers overhead resources requests schedulingGates nodeAffinity",
        "podAffinity podAntiAffinity nodeSelectorTerms matchExpressions matchFields preference",
        "requiredDuringSchedulingIgnoredDuringExecution topologyKey namespaceSelector",
        "preferredDuringSchedulingIgnoredDuringExecution matchLabels namespaces",
        "topologySpreadConstraints minDomains nodeAffinityPolicy nodeTaintsPolicy matchLabelKeys",
        "resourceClaims schedulingGroup volumes image hostNetwork hostUsers hostPort hostIP protocol",
        "activeDeadlineSeconds restartPolicy restartPolicyRules nominatedNodeName startTime",
        "conditions containerStatuses initContainerStatuses allocatedResources",
    ]
    .iter()
    .flat_map(|fields| fields.split(' '))
    {
        assert!(pods.contains(&format!("\"{field}\":")), "no Pod has {field}");
    }
    for field in
        "unschedulable taints allocatable images names sizeBytes declaredFeatures".split(' ')
    {
        assert!(nodes.contains(&format!("\"{field}\":")), "no Node has {field}");
    }
}

fn shown(frames: &Frame<WirePod>) -> String {
    let notice = |notice: &StatusOrBookmark| {
        let ends = notice.ends_initial_events();
        format!("{:?} {ends} {} {}", notice.version(), notice.code, notice.message)
    };
    match frames {
        Frame::Bookmark(said) => format!("bookmark {}", notice(said)),
        Frame::Error(said) => format!("error {}", notice(said)),
        frames => format!("{frames:?}"),
    }
}

#[test]
fn watches_tell_the_same_in_protobuf_as_in_json() {
    let ask = Ask::Watch { from: "1".to_owned() };
    let json = frames(decoder(&ask, "application/json").unwrap(), EVENTS.0, 1_000);
    let json: Vec<String> = json.iter().map(shown).collect();
    assert_eq!(json.len(), 6);
    assert_eq!(json[4], r#"bookmark Some("73") true 0 "#);
    assert_eq!(json[5], "error None false 410 too old");
    for chunk in [1, 7, 1_000, EVENTS.1.len()] {
        let binary = decoder(&ask, "application/vnd.kubernetes.protobuf;stream=watch").unwrap();
        let binary: Vec<String> = frames(binary, EVENTS.1, chunk).iter().map(shown).collect();
        assert_eq!(binary, json);
    }
}

fn read_list(
    decoder: Option<ResponseDecoder<WirePod>>,
    body: &[u8],
    chunk_bytes: usize,
) -> Result<(Vec<WirePod>, Option<String>), Unanswered> {
    let mut reading = ListReading::new(decoder);
    for chunk in body.chunks(chunk_bytes) {
        if let Some(end) = reading.feed(chunk)? {
            return Ok((reading.objects, end.token));
        }
    }
    let end = reading.end()?;
    Ok((reading.objects, end.token))
}

#[test]
fn a_page_has_the_same_objects_in_protobuf_as_in_json() {
    let protobuf = || decoder(&Ask::Page { token: None }, "application/vnd.kubernetes.protobuf");
    let json = read_list(None, PODS.0, PODS.0.len()).unwrap();
    assert!(!json.0.is_empty());
    for chunk in [1, 1_000, PODS.1.len()] {
        assert_eq!(json, read_list(protobuf(), PODS.1, chunk).unwrap());
    }
    let cut_off = read_list(protobuf(), &PODS.1[..PODS.1.len() / 2], 1_000).unwrap_err();
    assert!(cut_off.to_string().contains("no end"), "{cut_off}");
}

#[test]
fn a_list_in_json_is_no_answer_that_is_read_while_it_comes() {
    assert!(decoder::<WirePod>(&Ask::List, "application/json").is_none());
    assert!(decoder::<WirePod>(&Ask::Page { token: None }, "application/json").is_none());
}

#[test]
fn a_list_that_is_cut_off_does_not_end() {
    for end in [3, 4, 30, PODS.1.len() / 2, PODS.1.len() - 40] {
        let pieces = listed::<WirePod>(&PODS.1[..end], end);
        assert!(pieces.iter().all(|piece| matches!(piece, Frame::Seen(Ok(_)))), "{end}");
    }
}

/// A field of a message: its number, and a value of this length.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let length = u8::try_from(value.len()).unwrap();
    assert!(number < 16 && length < 128);
    [&[number << 3 | 2, length], value].concat()
}

fn list_of(items: &[Vec<u8>]) -> Vec<u8> {
    let items: Vec<u8> = items.iter().flat_map(|item| field(2, item)).collect();
    [b"k8s\0".to_vec(), field(2, &[field(1, &field(2, b"9")), items].concat())].concat()
}

#[test]
fn of_what_cannot_be_read_its_identity_and_place_are_left_and_the_others_come() {
    let metadata = [(1, "p"), (3, "a"), (5, "u"), (6, "7")];
    let metadata = metadata.iter().flat_map(|(number, text)| field(*number, text.as_bytes()));
    // The name of the scheduler is no text.
    let spec = [field(10, b"n1"), vec![0x9a, 0x01, 0x01, 0xff]].concat();
    let bad = [field(1, &metadata.collect::<Vec<u8>>()), field(2, &spec)].concat();
    let good = field(1, &field(1, b"q"));
    let pieces = listed::<WirePod>(&list_of(&[bad, good]), 5);
    let [Frame::Seen(Err(left)), Frame::Seen(Ok(good)), Frame::ListEnds { .. }] = &pieces[..]
    else {
        panic!("{pieces:?}")
    };
    let metadata = serde_json::to_value(&left.metadata).unwrap();
    let expected: Value =
        serde_json::json!({"name": "p", "namespace": "a", "uid": "u", "resourceVersion": "7"});
    assert_eq!((metadata, left.node.as_deref()), (expected, Some("n1")));
    assert!(left.why.contains("UTF-8"), "{}", left.why);
    assert_eq!(good.metadata.name.as_deref(), Some("q"));
}

#[test]
fn what_is_too_long_or_no_protobuf_is_refused_at_once() {
    let refused = |mut decoder: ResponseDecoder<WirePod>, bytes: &[u8]| {
        decoder.feed(bytes).unwrap();
        decoder.next().unwrap().unwrap_err()
    };
    let list = || decoder(&Ask::List, "application/vnd.kubernetes.protobuf").unwrap();
    let watch = || decoder(&Ask::Stream, "application/vnd.kubernetes.protobuf").unwrap();
    assert!(refused(list(), b"{\"kind\"").contains("no list"));
    // An item of 32 MiB, in a list of 64.
    let long = b"k8s\0\x12\x80\x80\x80\x20\x12\x80\x80\x80\x10";
    assert!(refused(list(), long).contains("longer"));
    assert!(refused(list(), b"k8s\0\x12\x04\x12\x05hello").contains("no list"), "it goes beyond");
    assert!(refused(list(), b"k8s\0\x12\x00").contains("no list"), "it has no version");
    assert!(refused(watch(), &[0x7f, 0, 0, 0]).contains("longer"));
    assert!(refused(watch(), &[0, 0, 0, 1, 0x0f]).contains("no event"));
}

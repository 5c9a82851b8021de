use model::InTreeDisk;

use super::*;
use crate::testkit::{cluster, node, pod, reasons};

/// One Node with a limit, on which a Pod uses `pv-1`; the incoming one brings `pv-2`.
fn crowded(count: Option<i32>) -> Cluster {
    let mut cluster = cluster([node("n1")], [pod("placed").on("n1").claims(&["c1"])]);
    for number in ["1", "2"] {
        cluster.put(csi_volume(&format!("pv-{number}"), &format!("h{number}")));
        cluster.put(bound(&format!("c{number}"), &format!("pv-{number}")));
    }
    cluster.put(csi_node("n1", count));
    cluster
}

fn incoming() -> ClusterPod {
    pod("incoming").claims(&["c2"]).build()
}

#[test]
fn a_driver_attaches_no_more_than_its_count() {
    for (count, fits) in [(None, true), (Some(0), false), (Some(1), false), (Some(2), true)] {
        let cluster = crowded(count);
        let expected = if fits { vec![] } else { vec![Reason::MAX_VOLUME_COUNT] };
        assert_eq!(reasons(&cluster, &incoming(), "n1"), expected, "{count:?}");
    }
    let mut without = crowded(Some(0));
    without.objects.csi_nodes.clear();
    assert_eq!(reasons(&without, &incoming(), "n1"), []);
}

#[test]
fn a_volume_that_the_node_holds_counts_once() {
    let full = crowded(Some(1));
    let sharing = pod("sharing").claims(&["c1"]).build();
    assert_eq!(reasons(&full, &sharing, "n1"), [], "by a Pod");
    let mut attached = crowded(Some(2));
    attached.put(attachment("a1", "n1", "pv-2"));
    assert_eq!(reasons(&attached, &incoming(), "n1"), [], "without a Pod");
}

#[test]
fn an_attachment_counts_until_it_is_gone_on_its_own_node_and_for_a_known_volume() {
    let with = |node: &str, volume: &str| {
        let mut cluster = crowded(Some(2));
        cluster.put(csi_volume("pv-3", "h3"));
        cluster.put(attachment("a1", node, volume));
        reasons(&cluster, &incoming(), "n1")
    };
    assert_eq!(with("n1", "pv-3"), [Reason::MAX_VOLUME_COUNT]);
    assert_eq!(with("n2", "pv-3"), []);
    assert_eq!(with("n1", "gone"), []);
}

#[test]
fn a_claim_without_a_volume_counts_for_the_provisioner_of_its_class() {
    let mut cluster = crowded(Some(1));
    cluster.put(class("dyn", "x.csi"));
    cluster.put(class("other", "y.csi"));
    for (class, expected) in [("dyn", vec![Reason::MAX_VOLUME_COUNT]), ("other", vec![])] {
        cluster.put(claim("c2", class));
        assert_eq!(reasons(&cluster, &incoming(), "n1"), expected, "{class}");
    }
}

#[test]
fn a_claim_of_a_class_made_by_hand_counts_for_the_driver_of_the_volume_it_takes() {
    let mut cluster = crowded(Some(1));
    cluster.put(by_hand());
    cluster.put(PersistentVolume { class: "local".into(), ..csi_volume("pv-2", "h2") });
    cluster.put(claim("c2", "local"));
    assert_eq!(reasons(&cluster, &incoming(), "n1"), [Reason::MAX_VOLUME_COUNT]);
    cluster.put(csi_node("n1", Some(2)));
    assert_eq!(reasons(&cluster, &incoming(), "n1"), []);
}

#[test]
fn in_tree_disks_count_only_where_the_node_has_a_csi_node() {
    let disk = || InTreeDisk::AwsElasticBlockStore { volume_id: "aws://a/vol-1".into() };
    let source = VolumeSource::in_tree(disk(), &labels(""), None);
    let mut cluster = cluster([node("n1"), node("n2")], []);
    cluster.put(PersistentVolume { source, ..volume("pv", "") });
    cluster.put(bound("c", "pv"));
    let drivers = [("ebs.csi.aws.com".into(), Some(0))].into();
    cluster.put(CsiNode { drivers, ..csi_node("n1", None) });
    let by_claim = pod("incoming").claims(&["c"]).build();
    let inline = InlineDisk::AwsElasticBlockStore { volume_id: "vol-1".into() };
    for pod in [by_claim, pod("incoming").disk(inline).build()] {
        assert_eq!(reasons(&cluster, &pod, "n1"), [Reason::MAX_VOLUME_COUNT]);
        assert_eq!(reasons(&cluster, &pod, "n2"), []);
    }
}

#[test]
fn a_pod_with_a_foreign_claim_does_not_keep_others_away() {
    let mut cluster = crowded(Some(2));
    cluster.put(claim("stranger-v", "dyn"));
    let stranger = pod("stranger").on("n1").ephemeral("stranger-v").build();
    cluster.insert_pod(stranger);
    assert_eq!(reasons(&cluster, &incoming(), "n1"), []);
}

#[test]
fn a_disk_of_its_own_that_cannot_be_translated_ends_the_attempt() {
    let mut cluster = cluster([node("n1")], []);
    cluster.put(csi_node("n1", None));
    let inline = InlineDisk::AwsElasticBlockStore { volume_id: "aws://a/bad".into() };
    let incoming = pod("incoming").disk(inline).build();
    assert!(matches!(
        crate::decide(&Rules::default(), &cluster, &incoming),
        crate::Decision::Failed(_)
    ));
}

use model::InlineDisk;

use super::*;
use crate::testkit::{cluster, node, pod, reasons};
use crate::{Preemption, preempt};

fn gce(name: &str, is_read_only: bool) -> InlineDisk {
    InlineDisk::GcePersistentDisk { pd_name: name.into(), is_read_only }
}

fn ebs(id: &str) -> InlineDisk {
    InlineDisk::AwsElasticBlockStore { volume_id: id.into() }
}

fn iscsi(iqn: &str, is_read_only: bool) -> InlineDisk {
    InlineDisk::Iscsi { iqn: iqn.into(), is_read_only }
}

fn rbd(monitors: &[&str], image: &str, is_read_only: bool) -> InlineDisk {
    let monitors = monitors.iter().map(|it| (*it).into()).collect();
    InlineDisk::Rbd { monitors, pool: "p".into(), image: image.into(), is_read_only }
}

#[test]
fn disks_exclude_each_other_on_a_node_unless_both_are_read() {
    let cases = [
        (gce("d", false), gce("d", false), true),
        (gce("d", true), gce("d", false), true),
        (gce("d", true), gce("d", true), false),
        (gce("d", false), gce("e", false), false),
        (ebs("vol-1"), ebs("vol-1"), true),
        (ebs("vol-1"), ebs("vol-2"), false),
        (ebs("d"), gce("d", false), false),
        (iscsi("q", false), iscsi("q", true), true),
        (iscsi("q", true), iscsi("q", true), false),
        (rbd(&["m", "n"], "i", false), rbd(&["n", "o"], "i", true), true),
        (rbd(&["m"], "i", false), rbd(&["o"], "i", false), false),
        (rbd(&["m"], "i", false), rbd(&["m"], "j", false), false),
        (rbd(&["m"], "i", true), rbd(&["m"], "i", true), false),
    ];
    for (own, other, is_conflict) in cases {
        let shown = format!("{own:?} {other:?}");
        let placed = pod("team-b/placed").on("n1").disk(other);
        let cluster = cluster([node("n1"), node("n2")], [placed]);
        let incoming = pod("incoming").disk(own).build();
        let expected = if is_conflict { vec![Reason::DISK_CONFLICT] } else { vec![] };
        assert_eq!(reasons(&cluster, &incoming, "n1"), expected, "{shown}");
        assert_eq!(reasons(&cluster, &incoming, "n2"), [], "{shown}");
    }
}

fn with_holder(holder: &str, its_claim: &str) -> Cluster {
    let mut cluster =
        cluster([node("n1"), node("n2")], [pod(holder).on("n1").claims(&[its_claim])]);
    cluster.put(volume("pv", ""));
    cluster.put(exclusive(bound("c", "pv")));
    cluster
}

#[test]
fn a_claim_for_one_pod_is_closed_on_every_node_while_another_has_it() {
    let incoming = pod("incoming").claims(&["c"]).build();
    let held = with_holder("holder", "c");
    for node in ["n1", "n2"] {
        assert_eq!(reasons(&held, &incoming, node), [Reason::READ_WRITE_ONCE_POD]);
    }
    for free in [with_holder("holder", "other"), with_holder("team-b/holder", "c")] {
        assert_eq!(reasons(&free, &incoming, "n1"), []);
    }
}

#[test]
fn only_the_holder_of_the_claim_is_worth_preempting() {
    let mut cluster = cluster(
        [node("n1"), node("n2")],
        [
            pod("holder").on("n1").claims(&["c", "c"]),
            pod("team-b/namesake").on("n2").claims(&["c"]),
            pod("bystander").on("n1"),
        ],
    );
    cluster.put(volume("pv", ""));
    cluster.put(exclusive(bound("c", "pv")));
    let incoming = pod("incoming").priority(1).claims(&["c"]).build();
    let Preemption::Possible { candidates, .. } = preempt(&Rules::default(), &cluster, &incoming)
    else {
        panic!("the holder can go");
    };
    let victims: Vec<_> =
        candidates.iter().map(|(node, it)| (node.as_str(), &it.victims)).collect();
    assert_eq!(victims, [("n1", &vec!["team-a/holder".into()])]);
}

#[test]
fn a_claim_of_a_nominated_pod_goes_unseen_without_a_disk() {
    let nominated = || pod("nominated").nominated("n1").priority(9).claims(&["c"]);
    let mut cluster = cluster([node("n1")], [nominated()]);
    cluster.put(volume("pv", ""));
    cluster.put(exclusive(bound("c", "pv")));
    let plain = pod("incoming").claims(&["c"]);
    assert_eq!(reasons(&cluster, &plain.build(), "n1"), []);
    let with_disk = pod("incoming").claims(&["c"]).disk(gce("d", false));
    assert_eq!(reasons(&cluster, &with_disk.build(), "n1"), [Reason::READ_WRITE_ONCE_POD]);
}

use model::{ClaimRef, InTreeDisk, LabelSelector, NodeName, PodVolumeBindings};

use super::*;
use crate::testkit::{cluster, node, pod, reasons, selector};

const HOSTNAME: &str = "kubernetes.io/hostname";

fn bindings(pairs: &[(&str, &str)]) -> PodVolumeBindings {
    let key = |name: &str| ObjectKey::new("team-a", name);
    let static_bindings = pairs.iter().map(|(claim, volume)| (key(claim), (*volume).into()));
    PodVolumeBindings { static_bindings: static_bindings.collect(), ..Default::default() }
}

fn names(of: &[&str]) -> Vec<String> {
    of.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_bound_volume_is_reached_by_labels_and_not_by_the_name_of_the_node() {
    let fields_alone = RawNodeTerm {
        expressions: vec![],
        fields: vec![raw("metadata.name", "In", &["elsewhere"])],
    };
    let cases = [
        (vec![raw_term(HOSTNAME, "In", &["host-1"])], true),
        (vec![raw_term(HOSTNAME, "In", &["n1"])], false),
        (vec![raw_term("disk", "NotIn", &["hdd"])], true),
        (vec![raw_term("num", "Gt", &["3"])], true),
        (vec![raw_term("num", "Gt", &["4"])], false),
        (vec![raw_term("num", "In", &[])], false),
        (vec![RawNodeTerm::default()], false),
        (vec![fields_alone], true),
        (vec![], false),
        (vec![raw_term("disk", "Exists", &[]), raw_term("num", "Exists", &[])], true),
    ];
    for (terms, fits) in cases {
        let n1 = node("n1").unlabelled().labels("kubernetes.io/hostname=host-1,num=4");
        let mut cluster = cluster([n1], []);
        let node_affinity = Some(NodeSelector::parse(&terms));
        cluster.put(PersistentVolume { node_affinity, ..volume("pv", "") });
        cluster.put(bound("c", "pv"));
        let incoming = pod("incoming").claims(&["c"]).build();
        let expected = if fits { vec![] } else { vec![Reason::VOLUME_NODE_AFFINITY] };
        assert_eq!(reasons(&cluster, &incoming, "n1"), expected, "{terms:?}");
    }
}

#[test]
fn an_in_tree_volume_is_reached_by_the_drivers_labels_where_the_node_says_so() {
    let terms = [raw_term("topology.kubernetes.io/zone", "In", &["a"])];
    let disk = InTreeDisk::AwsElasticBlockStore { volume_id: "vol-1".into() };
    let of_kube = node("kube").labels("topology.kubernetes.io/zone=a");
    let of_driver = node("driver").labels("topology.ebs.csi.aws.com/zone=a");
    let mut cluster = cluster([of_kube, of_driver], []);
    cluster.put(PersistentVolume {
        node_affinity: Some(NodeSelector::parse(&terms)),
        source: VolumeSource::in_tree(disk, &labels(""), Some(&terms)),
        ..volume("pv", "")
    });
    cluster.put(bound("c", "pv"));
    let incoming = pod("incoming").claims(&["c"]).build();
    let fits = |cluster: &Cluster| {
        ["kube", "driver"].map(|node| reasons(cluster, &incoming, node).is_empty())
    };
    assert_eq!(fits(&cluster), [true, false]);
    for name in ["kube", "driver"] {
        let migrated_plugins = CsiNode::parse_migrated_plugins(Some("kubernetes.io/aws-ebs"));
        cluster.put(CsiNode { migrated_plugins, ..csi_node(name, None) });
    }
    assert_eq!(fits(&cluster), [false, true]);
}

#[test]
fn a_node_tells_every_reason_in_order() {
    let mut cluster = cluster([node("n1")], []);
    cluster.put(near(volume("pv", ""), HOSTNAME, "elsewhere"));
    cluster.put(by_hand());
    cluster.put(bound("c1", "pv"));
    cluster.put(claim("c2", "local"));
    let incoming = pod("incoming").claims(&["c2", "c1"]).build();
    let both = [Reason::VOLUME_NODE_AFFINITY, Reason::NO_VOLUME_TO_BIND];
    assert_eq!(reasons(&cluster, &incoming, "n1"), both);
    let controller = Some("team-a/incoming".into());
    cluster.put(PersistentVolumeClaim { controller, ..bound("incoming-v", "gone") });
    let incoming = pod("incoming").claims(&["c2"]).ephemeral("incoming-v").build();
    let both = [Reason::NO_VOLUME_TO_BIND, Reason::BOUND_VOLUME_NOT_FOUND];
    assert_eq!(reasons(&cluster, &incoming, "n1"), both);
}

#[test]
fn a_claim_takes_the_smallest_volume_that_suits_it() {
    type Change = fn(&mut PersistentVolume, &mut PersistentVolumeClaim);
    let cases: [(Change, bool); 14] = [
        (|_, _| {}, true),
        (|volume, _| volume.capacity = Quantity::from_whole(GIB - 1), false),
        (|volume, _| volume.phase = VolumePhase::Pending, false),
        (|volume, _| volume.phase = VolumePhase::Released, false),
        (|volume, _| volume.is_deleting = true, false),
        (|volume, _| volume.class = "".into(), false),
        (|volume, _| volume.volume_mode = model::VolumeMode::Block, false),
        (|volume, _| volume.attributes_class = "gold".into(), false),
        (|volume, _| volume.access_modes = model::AccessModes::default(), false),
        (|_, claim| claim.selector = Some(selector("tier=fast")), false),
        (
            |volume, claim| {
                volume.labels = labels("tier=fast");
                claim.selector = Some(selector("tier=fast"));
            },
            true,
        ),
        (|_, claim| claim.selector = Some(LabelSelector::EVERYTHING), true),
        (|_, claim| claim.selected_node = Some("n1".into()), false),
        (|_, claim| claim.selected_node = Some("".into()), false),
    ];
    for (number, (change, suits)) in cases.into_iter().enumerate() {
        let mut cluster = cluster([node("n1")], []);
        cluster.put(by_hand());
        let (mut volume, mut claim) = (volume("pv", "local"), claim("c", "local"));
        change(&mut volume, &mut claim);
        cluster.put(volume);
        cluster.put(claim);
        let incoming = pod("incoming").claims(&["c"]).build();
        let expected =
            if suits { Ok(names(&["c=pv"])) } else { Err(vec![Reason::NO_VOLUME_TO_BIND]) };
        assert_eq!(taken(&cluster, &incoming, "n1"), expected, "case {number}");
    }
}

#[test]
fn a_reserved_volume_is_for_the_claim_that_it_names() {
    let key = || ObjectKey::new("team-a", "c");
    let reserved = |uid: Option<&str>| Some(ClaimRef { key: key(), uid: uid.map(Arc::from) });
    let other = Some(ClaimRef { key: ObjectKey::new("team-b", "c"), uid: None });
    for (claim_ref, suits) in [
        (reserved(None), true),
        (reserved(Some("uid-c")), true),
        (reserved(Some("stale")), false),
        (other, false),
    ] {
        let mut cluster = cluster([node("n1")], []);
        cluster.put(by_hand());
        cluster.put(claim("c", "local"));
        // Of what is reserved, phase and access modes are not asked.
        let access_modes = model::AccessModes::default();
        let phase = VolumePhase::Bound;
        cluster.put(PersistentVolume { claim_ref, phase, access_modes, ..volume("pv", "local") });
        let incoming = pod("incoming").claims(&["c"]).build();
        assert_eq!(taken(&cluster, &incoming, "n1").is_ok(), suits);
    }
}

#[test]
fn a_volume_that_is_reserved_for_the_claim_is_the_only_one() {
    let mut cluster = cluster([node("n1"), node("n2")], []);
    cluster.put(by_hand());
    cluster.put(claim("c", "local"));
    let claim_ref = Some(ClaimRef { key: ObjectKey::new("team-a", "c"), uid: None });
    let own = PersistentVolume { capacity: gib(9), claim_ref, ..volume("own", "local") };
    cluster.put(near(own, HOSTNAME, "n2"));
    cluster.put(volume("free", "local"));
    let incoming = pod("incoming").claims(&["c"]).build();
    assert_eq!(taken(&cluster, &incoming, "n1"), Err(vec![Reason::NO_VOLUME_TO_BIND]));
    assert_eq!(taken(&cluster, &incoming, "n2"), Ok(names(&["c=own"])));
}

#[test]
fn what_a_placed_pod_has_taken_is_no_longer_free() {
    let mut cluster = cluster([node("n1")], []);
    cluster.put(by_hand());
    for name in ["a", "b"] {
        cluster.put(claim(name, "local"));
    }
    cluster.put(volume("pv", "local"));
    let (a, b) = (pod("a").claims(&["a"]).build(), pod("b").claims(&["b"]).build());
    let first = bindings(&[("a", "pv")]);
    cluster.assumed_volumes.assume(&first, &NodeName::new("n1"));
    assert_eq!(taken(&cluster, &b, "n1"), Err(vec![Reason::NO_VOLUME_TO_BIND]));
    assert_eq!(taken(&cluster, &a, "n1"), Ok(names(&["a=pv"])), "Pods that share a claim agree");
    cluster.assumed_volumes.forget(&first, &NodeName::new("n1"));
    assert_eq!(taken(&cluster, &b, "n1"), Ok(names(&["b=pv"])));
}

#[test]
fn claims_exchange_volumes_where_one_would_be_left_without() {
    let mut cluster = cluster([node("n1")], []);
    cluster.put(by_hand());
    cluster.put(claim("any", "local"));
    let choosy =
        PersistentVolumeClaim { selector: Some(selector("tier=fast")), ..claim("choosy", "local") };
    cluster.put(PersistentVolumeClaim { request: gib(2), ..choosy });
    let fast = PersistentVolume { labels: labels("tier=fast"), ..volume("fast", "local") };
    cluster.put(PersistentVolume { capacity: gib(2), ..fast });
    cluster.put(PersistentVolume { capacity: gib(3), ..volume("slow", "local") });
    let incoming = pod("incoming").claims(&["any", "choosy"]).build();
    assert_eq!(taken(&cluster, &incoming, "n1"), Ok(names(&["any=slow", "choosy=fast"])));
}

#[test]
fn a_claim_that_is_listed_twice_needs_one_volume() {
    let mut cluster = cluster([node("n1")], []);
    cluster.put(by_hand());
    cluster.put(claim("c", "local"));
    cluster.put(volume("pv", "local"));
    let incoming = pod("incoming").claims(&["c", "c"]).build();
    assert_eq!(taken(&cluster, &incoming, "n1"), Ok(names(&["c=pv"])));
}

#[test]
fn a_volume_is_made_where_the_class_allows_it() {
    let term = |key, value: &str| StorageClass::topology_term([(key, vec![value.to_owned()])]);
    let empty = || StorageClass::topology_term([]);
    let cases = [
        (vec![], true),
        (vec![term("disk", "ssd")], true),
        (vec![term("disk", "hdd")], false),
        (vec![term("absent", "x")], false),
        (vec![empty()], false),
        (vec![empty(), term("disk", "ssd")], true),
    ];
    for (allowed_topologies, fits) in cases {
        let mut cluster = cluster([node("n1").labels("disk=ssd")], []);
        cluster.put(StorageClass { allowed_topologies, ..class("dyn", "x.csi") });
        cluster.put(claim("c", "dyn"));
        let incoming = pod("incoming").claims(&["c"]).build();
        let expected = if fits { Ok(names(&["c+"])) } else { Err(vec![Reason::NO_VOLUME_TO_BIND]) };
        assert_eq!(taken(&cluster, &incoming, "n1"), expected);
        // It never restricts a volume that exists.
        cluster.put(volume("pv", "dyn"));
        assert!(taken(&cluster, &incoming, "n1").is_ok());
    }
}

#[test]
fn capacity_is_asked_of_a_driver_that_publishes_it() {
    let near_disk = |capacity: CsiStorageCapacity, topology: Option<LabelSelector>| {
        CsiStorageCapacity { node_topology: topology, ..capacity }
    };
    let exact = || capacity("cap", "dyn", Some(GIB), None);
    let cases = [
        (None, false),
        (Some(exact()), true),
        (Some(capacity("cap", "dyn", Some(GIB - 1), Some(9 * GIB))), false),
        (Some(capacity("cap", "dyn", None, Some(GIB))), true),
        (Some(capacity("cap", "dyn", None, None)), false),
        (Some(capacity("cap", "other", Some(GIB), None)), false),
        (Some(near_disk(exact(), None)), false),
        (Some(near_disk(exact(), Some(selector("disk=ssd")))), true),
        (Some(near_disk(exact(), Some(selector("disk=hdd")))), false),
    ];
    for (published, fits) in cases {
        let shown = format!("{published:?}");
        let mut cluster = cluster([node("n1").labels("disk=ssd")], []);
        cluster.put(class("dyn", "x.csi"));
        cluster.put(claim("c", "dyn"));
        let incoming = pod("incoming").claims(&["c"]).build();
        if let Some(published) = published {
            cluster.put(published);
        }
        assert_eq!(taken(&cluster, &incoming, "n1"), Ok(names(&["c+"])), "no driver: {shown}");
        cluster.put(CsiDriver { name: "x.csi".into(), has_storage_capacity: true });
        let expected =
            if fits { Ok(names(&["c+"])) } else { Err(vec![Reason::NOT_ENOUGH_STORAGE]) };
        assert_eq!(taken(&cluster, &incoming, "n1"), expected, "{shown}");
    }
}

#[test]
fn claims_of_one_pod_must_fit_together() {
    let mut cluster = cluster([node("n1")], []);
    cluster.put(class("dyn", "x.csi"));
    cluster.put(CsiDriver { name: "x.csi".into(), has_storage_capacity: true });
    for name in ["a", "b"] {
        cluster.put(claim(name, "dyn"));
    }
    let incoming = pod("incoming").claims(&["a", "b"]).build();
    for (total, fits) in [(2 * GIB - 1, false), (2 * GIB, true)] {
        cluster.put(capacity("cap", "dyn", Some(GIB), Some(total)));
        assert_eq!(taken(&cluster, &incoming, "n1").is_ok(), fits, "{total}");
    }
    // The larger of them may exist already.
    cluster.put(capacity("cap", "dyn", None, Some(GIB)));
    cluster.put(volume("pv", "dyn"));
    assert_eq!(taken(&cluster, &incoming, "n1"), Ok(names(&["a=pv", "b+"])));
}

#[test]
fn a_claim_whose_volume_is_being_made_stays_on_its_node() {
    let mut cluster = cluster([node("n1"), node("n2")], []);
    cluster.put(class("dyn", "x.csi"));
    cluster.put(claim("c", "dyn"));
    cluster.put(volume("pv", "dyn"));
    let dynamic_provisions = vec![ObjectKey::new("team-a", "c")];
    let assumed = PodVolumeBindings { dynamic_provisions, ..Default::default() };
    cluster.assumed_volumes.assume(&assumed, &NodeName::new("n2"));
    let incoming = pod("incoming").claims(&["c"]).build();
    assert_eq!(taken(&cluster, &incoming, "n1"), Err(vec![Reason::NO_VOLUME_TO_BIND]));
    assert_eq!(taken(&cluster, &incoming, "n2"), Ok(names(&["c+"])), "not the one that exists");
}

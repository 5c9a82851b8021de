use super::*;
use crate::testkit::{cluster, node, pod, reasons};

const ZONE: &str = "topology.kubernetes.io/zone";
const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";

#[test]
fn a_node_must_be_in_every_zone_that_the_labels_of_a_volume_list() {
    let zone = |value: &str| format!("{ZONE}={value}");
    let beta = |value: &str| format!("{BETA_ZONE}={value}");
    let cases = [
        (zone("a"), zone("a"), true),
        (zone("a"), zone("b"), false),
        (zone("a__b"), zone("b"), true),
        (zone("a____b"), zone("c"), true),
        (zone("a"), String::new(), true),
        (zone("a"), "topology.kubernetes.io/region=r".to_owned(), false),
        (beta("a"), zone("a"), true),
        (zone("a"), beta("a"), false),
        (format!("{},{}", zone("a"), beta("b")), zone("a"), false),
        (format!("{},{}", zone("a"), beta("b")), format!("{},{}", zone("a"), beta("b")), true),
    ];
    for (of_volume, of_node, fits) in cases {
        let mut cluster = cluster([node("n1").labels(&of_node)], []);
        cluster.put(PersistentVolume { labels: labels(&of_volume), ..volume("pv", "") });
        cluster.put(bound("c", "pv"));
        let incoming = pod("incoming").claims(&["c"]).build();
        let expected = if fits { vec![] } else { vec![Reason::VOLUME_ZONE] };
        assert_eq!(reasons(&cluster, &incoming, "n1"), expected, "{of_volume} on {of_node}");
    }
}

#[test]
fn labels_of_the_volume_behind_an_ephemeral_claim_are_not_looked_at() {
    let mut cluster = cluster([node("n1").labels("topology.kubernetes.io/zone=b")], []);
    cluster.put(PersistentVolume { labels: labels(&format!("{ZONE}=a")), ..volume("pv", "") });
    let controller = Some("team-a/incoming".into());
    cluster.put(PersistentVolumeClaim { controller, ..bound("incoming-v", "pv") });
    let incoming = pod("incoming").ephemeral("incoming-v").build();
    assert_eq!(reasons(&cluster, &incoming, "n1"), []);
}

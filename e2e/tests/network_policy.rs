//! What the NetworkPolicy of `config/deploy` lets through, by the rules of NetworkPolicies: on each kind of cluster the
//! scheduler must reach the DNS servers there, and the API server where it really listens. There is no network
//! plugin to try it on; the rules are few.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

use std::fs;

use e2e::control_plane::CONFIG_DIR;
use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyPeer, NetworkPolicyPort,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;

/// Where a packet goes, after the translation of Services' addresses.
struct Destination {
    what: &'static str,
    to: To,
    protocol: &'static str,
    port: i32,
}

enum To {
    /// A Pod of this namespace with this label.
    Pod { namespace: &'static str, label: (&'static str, &'static str) },
    /// An address of no Pod, or of one in the network of its node.
    NoPod,
}

const fn pod(namespace: &'static str, label: (&'static str, &'static str)) -> To {
    To::Pod { namespace, label }
}

const OPENSHIFT: To = pod("openshift-dns", ("dns.operator.openshift.io/daemonset-dns", "default"));

const REACHED: [Destination; 9] = [
    to("CoreDNS of kubeadm", pod("kube-system", ("k8s-app", "kube-dns")), "UDP", 53),
    to("CoreDNS of a chart", pod("kube-system", ("k8s-app", "coredns")), "TCP", 53),
    to("NodeLocal DNSCache", To::NoPod, "UDP", 53),
    to("DNS of OpenShift", OPENSHIFT, "UDP", 5353),
    to("DNS of OpenShift", OPENSHIFT, "TCP", 5353),
    to("the API server of GKE and EKS", To::NoPod, "TCP", 443),
    to("the API server of kubeadm", To::NoPod, "TCP", 6443),
    to("the API server of minikube", To::NoPod, "TCP", 8443),
    to("the API server of MicroK8s", To::NoPod, "TCP", 16443),
];

const NOT_REACHED: [Destination; 2] = [
    to("a database", pod("team-a", ("app", "postgres")), "TCP", 5432),
    to("the metadata of the cloud", To::NoPod, "TCP", 80),
];

const fn to(what: &'static str, to: To, protocol: &'static str, port: i32) -> Destination {
    Destination { what, to, protocol, port }
}

fn passes(rule: &NetworkPolicyEgressRule, destination: &Destination) -> bool {
    let ports = rule.ports.as_deref().unwrap_or_default();
    let peers = rule.to.as_deref().unwrap_or_default();
    (ports.is_empty() || ports.iter().any(|port| is_port(port, destination)))
        && (peers.is_empty() || peers.iter().any(|peer| is_peer(peer, &destination.to)))
}

fn is_port(port: &NetworkPolicyPort, destination: &Destination) -> bool {
    let protocol = port.protocol.as_deref().unwrap_or("TCP");
    let number = match &port.port {
        None => true,
        Some(IntOrString::Int(number)) => *number == destination.port,
        Some(IntOrString::String(name)) => panic!("{name}: a name of another's port"),
    };
    protocol == destination.protocol && number && port.end_port.is_none()
}

fn is_peer(peer: &NetworkPolicyPeer, to: &To) -> bool {
    let To::Pod { namespace, label } = to else {
        assert!(peer.ip_block.is_none(), "the addresses of one site");
        return false;
    };
    let selects = |selector: Option<&LabelSelector>, label: (&str, &str)| {
        let labels = selector.and_then(|selector| selector.match_labels.as_ref());
        labels.is_none_or(|labels| labels.iter().all(|(key, value)| (&**key, &**value) == label))
    };
    selects(peer.namespace_selector.as_ref(), ("kubernetes.io/metadata.name", namespace))
        && selects(peer.pod_selector.as_ref(), *label)
}

#[test]
fn names_and_the_api_server_are_reached_on_every_kind_of_cluster() {
    let yaml = fs::read_to_string(format!("{CONFIG_DIR}/deploy/operator.yaml")).unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&yaml).unwrap();
    let policy = objects.into_iter().find(|object| object["kind"] == "NetworkPolicy").unwrap();
    let policy: NetworkPolicy = serde_json::from_value(policy).unwrap();
    let rules = policy.spec.unwrap().egress.unwrap();
    let reaches = |it: &Destination| rules.iter().any(|rule| passes(rule, it));
    let lacking: Vec<_> = REACHED.iter().filter(|it| !reaches(it)).map(|it| it.what).collect();
    assert!(lacking.is_empty(), "not reached: {lacking:?}");
    let beyond: Vec<_> = NOT_REACHED.iter().filter(|it| reaches(it)).map(|it| it.what).collect();
    assert!(beyond.is_empty(), "reached without need: {beyond:?}");
}

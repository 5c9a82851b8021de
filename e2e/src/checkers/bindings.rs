//! Every Pod is bound at most once: by the API server's own record, and as a watch saw it.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use tokio::time::{Instant, sleep};

use crate::control_plane::{AuditLog, Binding};
use crate::error::{Error, Result, ensure};
use crate::objects::pods::PodState as _;
use crate::recorder::PodVersion;

/// The API server writes its audit log a moment after it answers.
const AUDIT_TIME_MAX: Duration = Duration::from_secs(30);
const AUDIT_POLL_EVERY: Duration = Duration::from_millis(50);

/// Once a Pod has a Node, it keeps that Node.
pub fn ensure_never_rebound(versions: &[PodVersion]) -> Result<()> {
    let mut nodes = BTreeMap::new();
    for PodVersion { resource_version, pod, .. } in versions {
        if let Some(before) = nodes.get(pod.uid_str()).copied() {
            ensure(pod.node() == Some(before), || {
                let (name, now) = (pod.name_any(), pod.node());
                format!("at version {resource_version} Pod {name} moves from {before} to {now:?}")
            })?;
        }
        if let Some(node) = pod.node() {
            nodes.insert(pod.uid_str(), node);
        }
    }
    Ok(())
}

/// The audit log agrees with these Pods: one successful Binding for each that is bound, to the Node
/// it is on, and none for the others. Where the client died before the answer, the API server may
/// have bound the Pod and recorded a cancelled request.
pub async fn ensure_bound_once<'a>(
    audit: &AuditLog,
    pods: impl Iterator<Item = &'a Pod> + Clone,
) -> Result<()> {
    let deadline = Instant::now() + AUDIT_TIME_MAX;
    loop {
        let mut by_uid = BTreeMap::<_, Vec<_>>::new();
        for binding in audit.bindings()? {
            by_uid.entry(binding.pod_uid.clone()).or_default().push(binding);
        }
        let of = |pod: &Pod| by_uid.get(pod.uid_str()).map_or(&[][..], Vec::as_slice);
        let Some(wrong) = pods.clone().find(|pod| !agrees(pod, of(pod))) else {
            return Ok(());
        };
        if Instant::now() > deadline {
            let (name, node, bindings) = (wrong.name_any(), wrong.node(), of(wrong));
            return Err(Error::Violated(format!(
                "Pod {name} is on {node:?}, but the audit log shows {bindings:?}",
            )));
        }
        sleep(AUDIT_POLL_EVERY).await;
    }
}

fn agrees(pod: &Pod, bindings: &[Binding]) -> bool {
    let mut successful = bindings.iter().filter(|binding| binding.succeeded());
    match (pod.node(), successful.next(), successful.next()) {
        (Some(node), Some(only), None) => only.node == node,
        (Some(node), None, _) => bindings.iter().any(|b| b.was_cancelled() && b.node == node),
        (None, None, _) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(node: Option<&str>) -> Pod {
        let pod = json!({
            "metadata": { "name": "p", "uid": "u" },
            "spec": { "nodeName": node, "containers": [] },
        });
        serde_json::from_value(pod).unwrap()
    }

    fn binding(node: &str, code: u16) -> Binding {
        let (namespace, pod) = ("team-a".into(), "p".into());
        Binding { namespace, pod, pod_uid: "u".into(), node: node.into(), code }
    }

    #[test]
    fn one_success_on_the_right_node_is_right() {
        let refused_then_bound = [binding("a", 409), binding("a", 201)];
        assert!(agrees(&pod(Some("a")), &refused_then_bound));
        assert!(!agrees(&pod(Some("b")), &refused_then_bound));
        assert!(!agrees(&pod(None), &refused_then_bound));
    }

    #[test]
    fn two_successes_are_wrong() {
        assert!(!agrees(&pod(Some("a")), &[binding("a", 201), binding("a", 201)]));
    }

    #[test]
    fn a_cancelled_request_may_have_bound_the_pod() {
        assert!(agrees(&pod(Some("a")), &[binding("a", 504)]));
        assert!(agrees(&pod(None), &[binding("a", 504)]));
        assert!(!agrees(&pod(Some("b")), &[binding("a", 504)]));
        assert!(!agrees(&pod(Some("a")), &[]));
    }

    #[test]
    fn a_pod_that_moves_is_found() {
        let version = |resource_version, node| PodVersion {
            resource_version,
            deleted: false,
            pod: pod(node),
            seen: std::time::Instant::now(),
        };
        let fine = [version(1, None), version(2, Some("a")), version(3, Some("a"))];
        assert!(ensure_never_rebound(&fine).is_ok());
        assert!(ensure_never_rebound(&[version(1, Some("a")), version(2, Some("b"))]).is_err());
        assert!(ensure_never_rebound(&[version(1, Some("a")), version(2, None)]).is_err());
    }
}

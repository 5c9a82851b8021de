//! Writes what must come before a Binding: which volume a claim gets, or for which Node one is made.

use engine::{Prepare, PrepareWrite};
use http::{Method, Request};
use kube::Client;
use kube::Resource as _;
use model::ObjectKey;
use serde_json::{Value, json};
use tracing::warn;

use super::settle::{Write, read_object, settle, write_and_read};
use super::{MERGE_PATCH, request};
use crate::kinds::{SELECTED_NODE, WireClaim, WireVolumeObject};
use crate::settling::{Outcome, Patience, ReadReply, WRITES_MAX, WriteReply};

/// How the writes ended: the outcome of the last that was sent. The objects are as the writes left them.
#[derive(Debug)]
pub(crate) struct PrepareReport {
    pub prepare: Prepare,
    pub outcome: Outcome,
    pub written: Vec<WrittenObject>,
}

/// An object from the reply to a write.
#[derive(Debug)]
pub(crate) enum WrittenObject {
    Volume(Box<WireVolumeObject>),
    Claim(Box<WireClaim>),
}

/// What is written late holds for the version that was read, and for this claim: it does no harm to others.
const PATIENCE: Patience =
    Patience { writes_max: WRITES_MAX, reads_max: None, waits_for_late: false };

pub(crate) async fn prepare(client: &Client, prepare: Prepare) -> PrepareReport {
    let (mut outcome, mut written) = (Outcome::Done, Vec::new());
    for write in &prepare.writes {
        let mut step = Step { client, prepare: &prepare, write, written: None };
        outcome = settle(&mut step, PATIENCE).await;
        written.extend(step.written);
        if outcome != Outcome::Done {
            break;
        }
    }
    PrepareReport { prepare, outcome, written }
}

struct Step<'a> {
    client: &'a Client,
    prepare: &'a Prepare,
    write: &'a PrepareWrite,
    /// The object as it was last seen in a reply.
    written: Option<WrittenObject>,
}

impl Write for Step<'_> {
    async fn write(&mut self) -> WriteReply {
        let request = self.request();
        let (reply, written) = match self.write {
            PrepareWrite::BindVolume { .. } => {
                let (reply, volume) = write_and_read(self.client, request).await;
                (reply, volume.map(|it| WrittenObject::Volume(Box::new(it))))
            }
            PrepareWrite::SelectNode { .. } => {
                let (reply, claim) = write_and_read(self.client, request).await;
                (reply, claim.map(|it| WrittenObject::Claim(Box::new(it))))
            }
        };
        self.written = written.or(self.written.take());
        reply
    }

    async fn read(&mut self) -> ReadReply {
        let path = path(self.write);
        let (reply, written) = match self.write {
            PrepareWrite::BindVolume { volume_uid, claim, claim_uid, .. } => {
                let is_as_written = |it: &WireVolumeObject| it.is_for(claim, claim_uid);
                let (reply, volume) =
                    read_object(self.client, &path, volume_uid, is_as_written).await;
                (reply, volume.map(|it| WrittenObject::Volume(Box::new(it))))
            }
            PrepareWrite::SelectNode { claim_uid, .. } => {
                let node = self.prepare.node.as_str();
                let is_as_written = |it: &WireClaim| {
                    let annotations = it.meta().annotations.as_ref();
                    annotations.and_then(|all| all.get(SELECTED_NODE)).is_some_and(|it| it == node)
                };
                let (reply, claim) =
                    read_object(self.client, &path, claim_uid, is_as_written).await;
                (reply, claim.map(|it| WrittenObject::Claim(Box::new(it))))
            }
        };
        self.written = written.or(self.written.take());
        reply
    }

    async fn unclear(&mut self, message: Option<&str>) {
        let why = message.unwrap_or("no connection");
        let Prepare { pod, .. } = self.prepare;
        warn!(%pod, why, object = path(self.write), "no clear answer to a write; asking again");
    }
}

impl Step<'_> {
    fn request(&self) -> Result<Request<Vec<u8>>, http::Error> {
        let body = body(self.write, self.prepare.node.as_str());
        request(Method::PATCH, &path(self.write), MERGE_PATCH, &body)
    }
}

fn path(write: &PrepareWrite) -> String {
    match write {
        PrepareWrite::BindVolume { volume, .. } => format!("/api/v1/persistentvolumes/{volume}"),
        PrepareWrite::SelectNode { claim: ObjectKey { namespace, name }, .. } => {
            format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
        }
    }
}

/// The version is a precondition: of two schedulers that want one volume, one gets it. Only these fields are written,
/// because the objects were not read whole.
fn body(write: &PrepareWrite, node: &str) -> Value {
    match write {
        PrepareWrite::BindVolume {
            volume: _,
            volume_uid,
            resource_version,
            claim,
            claim_uid,
            is_reserved,
        } => {
            let mut metadata = json!({"uid": volume_uid, "resourceVersion": resource_version});
            if !is_reserved {
                metadata["annotations"] = json!({"pv.kubernetes.io/bound-by-controller": "yes"});
            }
            let claim_ref = json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "namespace": claim.namespace, "name": claim.name, "uid": claim_uid,
            });
            json!({"metadata": metadata, "spec": {"claimRef": claim_ref}})
        }
        PrepareWrite::SelectNode { claim: _, claim_uid, resource_version } => json!({
            "metadata": {
                "uid": claim_uid, "resourceVersion": resource_version,
                "annotations": {SELECTED_NODE: node},
            },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind_volume(is_reserved: bool) -> PrepareWrite {
        PrepareWrite::BindVolume {
            volume: "pv-1".into(),
            volume_uid: "uv".into(),
            resource_version: "7".into(),
            claim: ObjectKey::new("a", "c"),
            claim_uid: "uc".into(),
            is_reserved,
        }
    }

    #[test]
    fn a_volume_is_bound_as_it_was_read_or_not_at_all() {
        let write = bind_volume(false);
        assert_eq!(path(&write), "/api/v1/persistentvolumes/pv-1");
        let body = body(&write, "n1");
        assert_eq!(
            (&body["metadata"]["resourceVersion"], &body["metadata"]["uid"]),
            (&json!("7"), &json!("uv"))
        );
        assert_eq!(body["spec"]["claimRef"]["uid"], "uc");
        assert_eq!(body["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"], "yes");
    }

    #[test]
    fn what_an_administrator_has_reserved_is_not_marked_as_bound_by_a_controller() {
        assert_eq!(body(&bind_volume(true), "n1")["metadata"].get("annotations"), None);
    }

    #[test]
    fn a_claim_gets_the_node_of_its_pod() {
        let write = PrepareWrite::SelectNode {
            claim: ObjectKey::new("a", "c"),
            claim_uid: "uc".into(),
            resource_version: "8".into(),
        };
        assert_eq!(path(&write), "/api/v1/namespaces/a/persistentvolumeclaims/c");
        let body = body(&write, "n1");
        assert_eq!(body["metadata"]["annotations"][SELECTED_NODE], "n1");
        assert_eq!(body["metadata"]["resourceVersion"], "8");
    }
}

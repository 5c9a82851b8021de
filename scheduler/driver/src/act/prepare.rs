//! Writes what must come before a Binding: which volume a claim gets, or for which Node one is made, and which devices.

use engine::{Prepare, PrepareWrite};
use http::{Method, Request};
use jiff::Timestamp;
use k8s_openapi::api::resource::v1::ResourceClaim as WireResourceClaim;
use kube::Client;
use kube::Resource as _;
use model::{Allocation, ObjectKey, ResourceClaim};
use serde_json::{Value, json};
use tracing::warn;

use super::settle::{Write, read_object, settle, write_and_read};
use super::{MERGE_PATCH, STRATEGIC_MERGE, request};
use crate::kinds::{SELECTED_NODE, WireClaim, WireVolumeObject};
use crate::settling::{Outcome, Patience, ReadReply, WRITES_MAX, WriteReply};
use crate::translate::{allocation_to_write, resource_claim};
use crate::wire::Wire;

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
    ResourceClaim(Box<WireResourceClaim>),
}

/// What is written late holds for the version that was read, and for this claim: it does no harm to others.
const OF_VOLUMES: Patience =
    Patience { writes_max: WRITES_MAX, reads_max: None, waits_for_late: false };

/// The devices are given to others when they are given back, so no call may land later.
const OF_DEVICES: Patience = Patience { waits_for_late: true, ..OF_VOLUMES };

/// `leader` is the replica that decided it.
pub(crate) async fn prepare(
    client: &Client,
    prepare: Prepare,
    leader: Option<&str>,
) -> PrepareReport {
    let (mut outcome, mut written) = (Outcome::Done, Vec::new());
    // Once for all calls: an allocation never changes, so that a repeated write must say the same.
    let now = Timestamp::now();
    for write in &prepare.writes {
        let mut step = Step { client, prepare: &prepare, write, leader, now, written: None };
        let patience = match write {
            PrepareWrite::BindVolume { .. } | PrepareWrite::SelectNode { .. } => OF_VOLUMES,
            PrepareWrite::ProtectClaim { .. }
            | PrepareWrite::ReserveClaim { .. }
            | PrepareWrite::DeallocateClaim { .. } => OF_DEVICES,
        };
        outcome = settle(&mut step, patience).await;
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
    leader: Option<&'a str>,
    now: Timestamp,
    /// The object as it was last seen in a reply.
    written: Option<WrittenObject>,
}

impl Write for Step<'_> {
    async fn write(&mut self) -> WriteReply {
        match self.write {
            PrepareWrite::BindVolume { .. } => self.write_as(WrittenObject::Volume).await,
            PrepareWrite::SelectNode { .. } => self.write_as(WrittenObject::Claim).await,
            PrepareWrite::ProtectClaim { .. }
            | PrepareWrite::ReserveClaim { .. }
            | PrepareWrite::DeallocateClaim { .. } => {
                self.write_as(WrittenObject::ResourceClaim).await
            }
        }
    }

    async fn read(&mut self) -> ReadReply {
        let (node, pod) = (self.prepare.node.as_str(), &self.prepare.uid);
        match self.write {
            PrepareWrite::BindVolume { volume_uid, claim, claim_uid, .. } => {
                let is_as_written = |it: &WireVolumeObject| it.is_for(claim, claim_uid);
                self.read_as(volume_uid, is_as_written, WrittenObject::Volume).await
            }
            PrepareWrite::SelectNode { claim_uid, .. } => {
                let is_as_written = |it: &WireClaim| {
                    let annotations = it.meta().annotations.as_ref();
                    annotations.and_then(|all| all.get(SELECTED_NODE)).is_some_and(|it| it == node)
                };
                self.read_as(claim_uid, is_as_written, WrittenObject::Claim).await
            }
            PrepareWrite::ProtectClaim { claim_uid, .. } => {
                let is_as_written = |it: &WireResourceClaim| resource_claim(it).has_finalizer;
                self.read_as(claim_uid, is_as_written, WrittenObject::ResourceClaim).await
            }
            PrepareWrite::DeallocateClaim { claim_uid, .. } => {
                let is_as_written =
                    |it: &WireResourceClaim| resource_claim(it).allocation.is_none();
                self.read_as(claim_uid, is_as_written, WrittenObject::ResourceClaim).await
            }
            PrepareWrite::ReserveClaim { claim_uid, allocation, .. } => {
                let is_as_written = |it: &WireResourceClaim| {
                    let claim = resource_claim(it);
                    let has = |wanted: &Allocation| {
                        claim.allocation.as_ref().is_some_and(|it| it.devices == wanted.devices)
                    };
                    claim.is_reserved_for(pod) && allocation.as_deref().is_none_or(has)
                };
                self.read_as(claim_uid, is_as_written, WrittenObject::ResourceClaim).await
            }
        }
    }

    async fn unclear(&mut self, message: Option<&str>) {
        let why = message.unwrap_or("no connection");
        let Prepare { pod, .. } = self.prepare;
        warn!(%pod, why, object = path(self.write), "no clear answer to a write; asking again");
    }
}

impl Step<'_> {
    async fn write_as<K: Wire>(&mut self, written: fn(Box<K>) -> WrittenObject) -> WriteReply {
        let (reply, object) = write_and_read(self.client, self.request()).await;
        self.written = object.map(|it| written(Box::new(it))).or(self.written.take());
        reply
    }

    async fn read_as<K: Wire>(
        &mut self,
        uid: &str,
        is_as_written: impl FnOnce(&K) -> bool,
        read: fn(Box<K>) -> WrittenObject,
    ) -> ReadReply {
        let (reply, object) = read_object(self.client, &path(self.write), uid, is_as_written).await;
        self.written = object.map(|it| read(Box::new(it))).or(self.written.take());
        reply
    }

    fn request(&self) -> Result<Request<Vec<u8>>, http::Error> {
        let (path, body) = (path(self.write), body(self.write, self.prepare, self.now));
        match self.write {
            PrepareWrite::BindVolume { .. } | PrepareWrite::SelectNode { .. } => {
                request(Method::PATCH, &path, MERGE_PATCH, &body)
            }
            PrepareWrite::ProtectClaim { .. } => {
                request(Method::PATCH, &path, STRATEGIC_MERGE, &body)
            }
            PrepareWrite::ReserveClaim { .. } | PrepareWrite::DeallocateClaim { .. } => {
                let path = format!("{path}/status{}", query(self.leader));
                request(Method::PATCH, &path, STRATEGIC_MERGE, &body)
            }
        }
    }
}

/// The policy `corridor-leader-fence-devices` refuses what a late leader gives out: two claims could have one device, and
/// the API server looks at one claim at a time. It reads the leader from the name of the field manager.
const FIELD_MANAGER: &str = "corridor-leader:";

/// Without the host, which may be longer than a field manager can be: the rest of the identity makes it unique.
fn query(leader: Option<&str>) -> String {
    let unique = leader.and_then(|leader| leader.rsplit('_').next());
    unique.map(|unique| format!("?fieldManager={FIELD_MANAGER}{unique}")).unwrap_or_default()
}

/// Of the object.
fn path(write: &PrepareWrite) -> String {
    match write {
        PrepareWrite::BindVolume { volume, .. } => format!("/api/v1/persistentvolumes/{volume}"),
        PrepareWrite::SelectNode { claim: ObjectKey { namespace, name }, .. } => {
            format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
        }
        PrepareWrite::ProtectClaim { claim: ObjectKey { namespace, name }, .. }
        | PrepareWrite::ReserveClaim { claim: ObjectKey { namespace, name }, .. }
        | PrepareWrite::DeallocateClaim { claim: ObjectKey { namespace, name }, .. } => {
            format!("/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}")
        }
    }
}

/// Only these fields are written, because the objects were not read whole. Of volumes, the version is a precondition:
/// of two schedulers that want one volume, one gets it. Of devices, the API server sees to it that an allocation is never
/// changed, and to the list of Pods an entry is added; what is taken away is taken from the version that was read.
fn body(write: &PrepareWrite, prepare: &Prepare, now: Timestamp) -> Value {
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
                "annotations": {SELECTED_NODE: prepare.node.as_str()},
            },
        }),
        PrepareWrite::ProtectClaim { claim: _, claim_uid } => json!({
            "metadata": {"uid": claim_uid, "finalizers": [ResourceClaim::FINALIZER]},
        }),
        PrepareWrite::DeallocateClaim { claim: _, claim_uid, resource_version } => json!({
            "metadata": {"uid": claim_uid, "resourceVersion": resource_version},
            "status": {"allocation": null, "reservedFor": null, "devices": null},
        }),
        PrepareWrite::ReserveClaim { claim: _, claim_uid, allocation } => {
            let user = json!({
                "resource": "pods", "name": prepare.pod.name, "uid": prepare.uid.as_str(),
            });
            let mut status = json!({"reservedFor": [user]});
            if let Some(allocation) = allocation {
                let at = Allocation {
                    allocated_at_unix_s: Some(now.as_second()),
                    ..Allocation::clone(allocation)
                };
                status["allocation"] = json!(allocation_to_write(&at));
            }
            json!({"metadata": {"uid": claim_uid}, "status": status})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body_of(write: &PrepareWrite) -> Value {
        let prepare = Prepare {
            pod: ObjectKey::new("a", "p"),
            uid: "up".into(),
            node: "n1".into(),
            writes: Vec::new(),
        };
        body(write, &prepare, Timestamp::UNIX_EPOCH)
    }

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
        let body = body_of(&write);
        assert_eq!(
            (&body["metadata"]["resourceVersion"], &body["metadata"]["uid"]),
            (&json!("7"), &json!("uv"))
        );
        assert_eq!(body["spec"]["claimRef"]["uid"], "uc");
        assert_eq!(body["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"], "yes");
    }

    #[test]
    fn what_an_administrator_has_reserved_is_not_marked_as_bound_by_a_controller() {
        assert_eq!(body_of(&bind_volume(true))["metadata"].get("annotations"), None);
    }

    #[test]
    fn devices_are_given_out_in_the_name_of_the_leader() {
        assert_eq!(query(None), "");
        assert_eq!(query(Some("a_b_u-1/7")), "?fieldManager=corridor-leader:u-1/7");
        let policy = include_str!("../../../../config/admission/leader-fence.yaml");
        assert!(policy.contains(&format!("startsWith('{FIELD_MANAGER}')")));
    }

    #[test]
    fn a_claim_gets_the_node_of_its_pod() {
        let write = PrepareWrite::SelectNode {
            claim: ObjectKey::new("a", "c"),
            claim_uid: "uc".into(),
            resource_version: "8".into(),
        };
        assert_eq!(path(&write), "/api/v1/namespaces/a/persistentvolumeclaims/c");
        let body = body_of(&write);
        assert_eq!(body["metadata"]["annotations"][SELECTED_NODE], "n1");
        assert_eq!(body["metadata"]["resourceVersion"], "8");
    }

    #[test]
    fn a_claim_gives_its_devices_back_as_it_was_read_or_not_at_all() {
        let (claim, claim_uid) = (ObjectKey::new("a", "c"), "uc".into());
        let resource_version = "7".into();
        let body = body_of(&PrepareWrite::DeallocateClaim { claim, claim_uid, resource_version });
        assert_eq!(body["metadata"], json!({"uid": "uc", "resourceVersion": "7"}));
        let nothing = json!({"allocation": null, "reservedFor": null, "devices": null});
        assert_eq!(body["status"], nothing);
    }

    #[test]
    fn a_claim_gets_its_devices_and_one_more_user_in_one_write() {
        let (claim, claim_uid) = (ObjectKey::new("a", "c"), "uc".into());
        let allocation = Some(std::sync::Arc::default());
        let write = PrepareWrite::ReserveClaim { claim, claim_uid, allocation };
        assert_eq!(path(&write), "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/c");
        let body = body_of(&write);
        assert_eq!(body["metadata"], json!({"uid": "uc"}), "no version: others add users, too");
        let status = &body["status"];
        assert_eq!(status["reservedFor"], json!([{"resource": "pods", "name": "p", "uid": "up"}]));
        assert_eq!(status["allocation"]["allocationTimestamp"], "1970-01-01T00:00:00Z");
    }
}

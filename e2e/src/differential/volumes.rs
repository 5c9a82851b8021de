//! What stands behind the volumes of a cluster, on the API server, and what kube-scheduler writes there.

use std::collections::BTreeMap;
use std::fmt;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use random_clusters::{GeneratedVolumes, NAMESPACES, key_of, name_of};
use serde_json::{Value, json};

use super::api::Api;
use super::frozen::WRITING_AT_ONCE;
use crate::error::Result;

const VOLUMES: &str = "api/v1/persistentvolumes";
const CLAIMS: &str = "api/v1/persistentvolumeclaims";
const STORAGE: &str = "apis/storage.k8s.io/v1";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

fn storage(resource: &str) -> String {
    format!("{STORAGE}/{resource}")
}

fn claims_of(namespace: &str) -> String {
    format!("api/v1/namespaces/{namespace}/persistentvolumeclaims")
}

fn capacities_of(namespace: &str) -> String {
    format!("{STORAGE}/namespaces/{namespace}/csistoragecapacities")
}

/// Removes all that an earlier cluster left.
pub(super) async fn clear(api: &Api) -> Result<()> {
    let wide = ["storageclasses", "csinodes", "csidrivers", "volumeattachments"].map(storage);
    let claims = NAMESPACES.map(claims_of);
    let all = [VOLUMES.to_owned()].into_iter().chain(wide).chain(claims);
    let all: Vec<String> = all.chain(NAMESPACES.map(capacities_of)).collect();
    stream::iter(all)
        .map(|collection| async move { remove_all(api, &collection).await })
        .buffer_unordered(WRITING_AT_ONCE)
        .try_collect()
        .await
}

async fn remove_all(api: &Api, collection: &str) -> Result<()> {
    let listed = api.get(collection).await?;
    let objects = listed["items"].as_array().into_iter().flatten();
    let mut count = 0;
    for object in objects {
        count += 1;
        free(api, &format!("{collection}/{}", name_of(object).1), object).await?;
    }
    if count > 0 {
        api.delete(collection, 0).await?;
    }
    Ok(())
}

/// Nobody here lifts what keeps an object from going.
async fn free(api: &Api, path: &str, object: &Value) -> Result<()> {
    if object["metadata"]["finalizers"].is_null() {
        return Ok(());
    }
    let unguarded = json!({"metadata": {"finalizers": null}});
    match api.merge(path, &unguarded).await {
        Err(problem) if problem.api_code() == Some(404) => Ok(()),
        outcome => outcome.map(drop),
    }
}

/// Creates all but the claims of ephemeral volumes, which come with their Pods.
pub(super) async fn build(api: &Api, made: &GeneratedVolumes) -> Result<()> {
    let wide = [
        ("storageclasses", &made.classes),
        ("csinodes", &made.csi_nodes),
        ("csidrivers", &made.csi_drivers),
        ("volumeattachments", &made.attachments),
    ];
    let wide = wide.iter().flat_map(|(resource, objects)| {
        objects.iter().map(|object| (storage(resource), object.clone()))
    });
    let capacities = made.capacities.iter();
    let capacities = capacities.map(|it| (capacities_of(name_of(it).0), it.clone()));
    create_all(api, wide.chain(capacities)).await?;
    let claims = made.claims.iter().filter(|claim| owner(claim).is_null());
    let claims = claims.map(|claim| (claims_of(name_of(claim).0), claim.clone()));
    let stored = create_all(api, claims).await?;
    let uids: BTreeMap<String, &Value> =
        stored.iter().map(|claim| (key_of(claim), &claim["metadata"]["uid"])).collect();
    let volumes = made.volumes.iter().map(|volume| {
        let mut volume = volume.clone();
        let reference = &mut volume["spec"]["claimRef"];
        let named = format!("{}/{}", text(&reference["namespace"]), text(&reference["name"]));
        // The generator does not know what the API server calls the claim.
        if text(&reference["uid"]).starts_with("claim-")
            && let Some(uid) = uids.get(&named)
        {
            reference["uid"] = (*uid).clone();
        }
        (VOLUMES.to_owned(), volume)
    });
    create_all(api, volumes).await.map(drop)
}

async fn create_all(
    api: &Api,
    objects: impl Iterator<Item = (String, Value)>,
) -> Result<Vec<Value>> {
    let objects: Vec<_> = objects.collect();
    stream::iter(objects)
        .map(|(collection, object)| async move { create(api, &collection, &object).await })
        .buffer_unordered(WRITING_AT_ONCE)
        .try_collect()
        .await
}

/// Creates an object with its status, and deletes it if it is one that is being deleted.
async fn create(api: &Api, collection: &str, object: &Value) -> Result<Value> {
    let mut new = object.clone();
    let (status, is_leaving) =
        (new["status"].take(), !new["metadata"]["deletionTimestamp"].is_null());
    for set_by_server in ["uid", "resourceVersion", "deletionTimestamp"] {
        new["metadata"].as_object_mut().and_then(|metadata| metadata.remove(set_by_server));
    }
    let stored = api.create(collection, &new).await?;
    let path = format!("{collection}/{}", name_of(object).1);
    if !status.is_null() {
        api.merge(&format!("{path}/status"), &json!({"status": status})).await?;
    }
    if is_leaving {
        api.delete(&path, 0).await?;
    }
    Ok(stored)
}

fn owner(claim: &Value) -> &Value {
    &claim["metadata"]["ownerReferences"][0]
}

/// The same claim, whose owner has this UID, unless it is a foreign one.
fn owned(claim: &Value, uid: &str) -> Value {
    let mut claim = claim.clone();
    let pod = format!("{}/{}", name_of(&claim).0, text(&owner(&claim)["name"]));
    let written = &mut claim["metadata"]["ownerReferences"][0]["uid"];
    if *written == json!(pod) {
        *written = json!(uid);
    }
    claim
}

/// Creates the claims of a Pod's ephemeral volumes, or makes those that are there the Pod's.
pub(super) async fn adopt(
    api: &Api,
    claims: impl IntoIterator<Item = &Value>,
    uid: &str,
) -> Result<()> {
    for claim in claims {
        let claim = owned(claim, uid);
        let (namespace, name) = name_of(&claim);
        let collection = claims_of(namespace);
        match create(api, &collection, &claim).await {
            Err(problem) if problem.api_code() == Some(409) => {
                let owners = json!({"ownerReferences": claim["metadata"]["ownerReferences"]});
                let changes = json!({"metadata": owners});
                api.merge(&format!("{collection}/{name}"), &changes).await?;
            }
            outcome => drop(outcome?),
        }
    }
    Ok(())
}

/// Those of a placed Pod.
pub(super) fn claims_of_pod<'a>(
    claims: &'a [Value],
    pod: &'a Value,
) -> impl Iterator<Item = &'a Value> {
    let (namespace, name) = name_of(pod);
    claims.iter().filter(move |claim| {
        name_of(claim).0 == namespace && owner(claim)["name"].as_str() == Some(name)
    })
}

pub(super) async fn remove_claims(api: &Api, claims: &[Value]) -> Result<()> {
    for claim in claims {
        let (namespace, name) = name_of(claim);
        let path = format!("{}/{name}", claims_of(namespace));
        // Admission gives every claim one.
        free(api, &path, &json!({"metadata": {"finalizers": []}})).await?;
        api.delete(&path, 0).await?;
    }
    Ok(())
}

/// The same Pod with the claims of its ephemeral volumes in their place. A question is about a Pod that does not exist
/// yet, so no claim can be its own. The generator sees to it that this makes no difference.
pub(super) fn named_as_claims(pod: &Value, claims: &[Value]) -> Value {
    let mut pod = pod.clone();
    let own: Vec<&str> = claims.iter().map(|claim| name_of(claim).1).collect();
    let pod_name = name_of(&pod).1.to_owned();
    // Where there are none, none are to appear.
    let volumes = pod.pointer_mut("/spec/volumes").and_then(Value::as_array_mut);
    for volume in volumes.into_iter().flatten() {
        let name = format!("{pod_name}-{}", text(&volume["name"]));
        if !volume["ephemeral"].is_null() && own.contains(&name.as_str()) {
            *volume = json!({
                "name": volume["name"], "persistentVolumeClaim": {"claimName": name},
            });
        }
    }
    pod
}

/// What kube-scheduler writes for a Pod whose claims are not bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Written {
    Taken { volume: String, claim: String },
    Selected { claim: String, node: String },
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken { volume, claim } => write!(f, "{volume} for {claim}"),
            Self::Selected { claim, node } => write!(f, "{claim} on {node}"),
        }
    }
}

/// PersistentVolumes and claims as they are, by path.
#[derive(Debug, Default)]
pub(super) struct Standing(BTreeMap<String, Value>);

impl Standing {
    pub async fn read(api: &Api) -> Result<Self> {
        let mut standing = BTreeMap::new();
        for collection in [VOLUMES, CLAIMS] {
            let mut listed = api.get(collection).await?;
            for object in listed["items"].as_array_mut().into_iter().flatten() {
                let (namespace, name) = name_of(object);
                let path = match collection {
                    VOLUMES => format!("{VOLUMES}/{name}"),
                    _ => format!("{}/{name}", claims_of(namespace)),
                };
                standing.insert(path, object.take());
            }
        }
        Ok(Self(standing))
    }

    /// What has been written since then.
    pub fn written_since(&self, then: &Self) -> Vec<Written> {
        let changed = self.changed_since(then);
        let written = changed.filter_map(|(path, then, now)| {
            let reference = &now["spec"]["claimRef"];
            if path.starts_with(VOLUMES) && *reference != then["spec"]["claimRef"] {
                let claim =
                    format!("{}/{}", text(&reference["namespace"]), text(&reference["name"]));
                return Some(Written::Taken { volume: name_of(now).1.to_owned(), claim });
            }
            let node = &now["metadata"]["annotations"][SELECTED_NODE];
            let is_new = *node != then["metadata"]["annotations"][SELECTED_NODE];
            let node = node.as_str().filter(|_| is_new)?.to_owned();
            Some(Written::Selected { claim: key_of(now), node })
        });
        written.collect()
    }

    /// Makes all that changed since then what it was.
    pub async fn restore(&self, then: &Self, api: &Api) -> Result<()> {
        for (path, then, now) in self.changed_since(then) {
            let annotations =
                back(&then["metadata"]["annotations"], &now["metadata"]["annotations"]);
            let mut changes = json!({"metadata": {"annotations": annotations}});
            if path.starts_with(VOLUMES) {
                let (then, now) = (&then["spec"]["claimRef"], &now["spec"]["claimRef"]);
                let reference = if then.is_null() { json!(null) } else { back(then, now) };
                changes["spec"] = json!({"claimRef": reference});
            }
            api.merge(path, &changes).await?;
        }
        Ok(())
    }

    /// Paths, and the objects as they were and are.
    fn changed_since<'a>(
        &'a self,
        then: &'a Self,
    ) -> impl Iterator<Item = (&'a str, &'a Value, &'a Value)> {
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        self.0.iter().filter_map(move |(path, now)| {
            let then = then.0.get(path)?;
            (version(then) != version(now)).then_some((path.as_str(), then, now))
        })
    }
}

/// The merge patch that leads back.
fn back(then: &Value, now: &Value) -> Value {
    let mut changes = then.as_object().cloned().unwrap_or_default();
    for key in now.as_object().into_iter().flat_map(|it| it.keys()) {
        changes.entry(key.clone()).or_insert(Value::Null);
    }
    json!(changes)
}

fn text(field: &Value) -> &str {
    field.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(objects: &[(&str, Value)]) -> Standing {
        Standing(objects.iter().map(|(path, it)| ((*path).to_owned(), it.clone())).collect())
    }

    #[test]
    fn what_kube_scheduler_wrote_is_read_and_led_back() {
        let volume = |version: &str, reference: Value| {
            let metadata = json!({"name": "pv0", "resourceVersion": version});
            json!({"metadata": metadata, "spec": {"claimRef": reference}})
        };
        let claim = |version: &str, annotations: Value| {
            let metadata = json!({
                "namespace": "a", "name": "c0", "resourceVersion": version,
                "annotations": annotations,
            });
            json!({ "metadata": metadata })
        };
        let (pv, c0) = (format!("{VOLUMES}/pv0"), format!("{}/c0", claims_of("a")));
        let then =
            standing(&[(&pv, volume("1", json!(null))), (&c0, claim("2", json!({"x": "y"})))]);
        let reference = json!({"namespace": "a", "name": "c0", "uid": "u"});
        let selected = json!({"x": "y", SELECTED_NODE: "n1"});
        let now =
            standing(&[(&pv, volume("3", reference.clone())), (&c0, claim("4", selected.clone()))]);
        let taken = Written::Taken { volume: "pv0".into(), claim: "a/c0".into() };
        let on_node = Written::Selected { claim: "a/c0".into(), node: "n1".into() };
        assert!(then.written_since(&then).is_empty());
        let written = now.written_since(&then);
        assert!(written.contains(&taken) && written.contains(&on_node), "{written:?}");
        assert_eq!(back(&json!({"x": "y"}), &selected), json!({"x": "y", SELECTED_NODE: null}));
        assert_eq!(
            back(&json!({"name": "c0"}), &reference),
            json!({"name": "c0", "namespace": null, "uid": null}),
        );
    }

    #[test]
    fn a_question_names_the_claims_of_ephemeral_volumes() {
        let pod = |volumes: Value| {
            let metadata = json!({"namespace": "a", "name": "p"});
            json!({"metadata": metadata, "spec": {"volumes": volumes}})
        };
        let claims = [json!({"metadata": {"namespace": "a", "name": "p-v0"}})];
        let asked = named_as_claims(&pod(json!([{"name": "v0", "ephemeral": {}}])), &claims);
        let claim = json!({"name": "v0", "persistentVolumeClaim": {"claimName": "p-v0"}});
        assert_eq!(asked, pod(json!([claim])));
        // The claim of the other one is not there.
        for pod in [pod(json!([{"name": "v1", "ephemeral": {}}])), json!({"spec": {}})] {
            assert_eq!(named_as_claims(&pod, &claims), pod);
        }
    }

    #[test]
    fn only_a_claim_of_the_pod_becomes_its_own() {
        let claim = |uid: &str| {
            let owners = json!([{"name": "p", "uid": uid, "controller": true}]);
            json!({"metadata": {"namespace": "a", "name": "p-v0", "ownerReferences": owners}})
        };
        assert_eq!(owner(&owned(&claim("a/p"), "7"))["uid"], "7");
        assert_eq!(owner(&owned(&claim("another"), "7"))["uid"], "another");
    }
}

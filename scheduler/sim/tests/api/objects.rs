//! Create, read, replace, delete, and what is refused.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use serde_json::{Value, json};

use crate::{JSON, MERGE, call, config_map, get, pod, post, refusal, start};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn the_kubeconfig_leads_here() {
    let (server, _) = start().await;
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(Client::try_from(config).unwrap());
    let names: Vec<String> = namespaces
        .list(&ListParams::default())
        .await
        .unwrap()
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
}

#[tokio::test]
async fn an_object_goes_through_its_life() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let created = maps.create(&PostParams::default(), &config_map("one")).await.unwrap();
    assert!(created.uid().is_some() && created.creation_timestamp().is_some());
    assert_eq!(created.namespace().as_deref(), Some("default"));

    let mut changed = created.clone();
    changed.data = Some([("a".to_owned(), "2".to_owned())].into());
    let replaced = maps.replace("one", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(replaced.resource_version(), created.resource_version());
    let stale = maps.replace("one", &PostParams::default(), &changed).await;
    assert_eq!(refusal(stale).1, "Conflict");

    let same = maps.replace("one", &PostParams::default(), &replaced).await.unwrap();
    assert_eq!(same.resource_version(), replaced.resource_version(), "nothing changed: no write");

    maps.delete("one", &DeleteParams::default()).await.unwrap();
    assert_eq!(refusal(maps.get("one").await).0, 404);
}

#[tokio::test]
async fn generated_names_differ() {
    let (_server, client) = start().await;
    let body = json!({ "metadata": { "generateName": "job-" } });
    let first = post(&client, MAPS, body.clone()).await;
    let second = post(&client, MAPS, body).await;
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
    assert!(name(&first).starts_with("job-") && name(&first).len() == 9);
    assert_ne!(name(&first), name(&second));
}

#[tokio::test]
async fn wrong_requests_are_refused_as_the_real_server_does() {
    let (_server, client) = start().await;
    post(&client, MAPS, json!({ "metadata": { "name": "taken" } })).await;
    let named = |name: &str| json!({ "metadata": { "name": name } });
    let in_namespace = json!({ "metadata": { "name": "x", "namespace": "other" } });
    let versioned = json!({ "metadata": { "name": "x", "resourceVersion": "5" } });
    let taken = format!("{MAPS}/taken");
    for (method, path, body, code, reason) in [
        ("POST", MAPS, named("taken"), 409, "AlreadyExists"),
        ("POST", MAPS, named("Not_A_Name"), 422, "Invalid"),
        ("POST", MAPS, json!({}), 422, "Invalid"),
        ("POST", MAPS, in_namespace, 400, "BadRequest"),
        ("POST", MAPS, versioned, 500, ""),
        ("POST", MAPS, json!({ "kind": "Pod", "metadata": { "name": "x" } }), 400, "BadRequest"),
        ("POST", MAPS, json!({ "metadata": { "name": "x" }, "data": 5 }), 400, "BadRequest"),
        ("POST", "/api/v1/namespaces/nowhere/configmaps", named("x"), 404, "NotFound"),
        ("POST", "/api/v1/configmaps", named("x"), 405, "MethodNotAllowed"),
        ("POST", &taken, named("x"), 405, "MethodNotAllowed"),
        ("PUT", MAPS, named("x"), 405, "MethodNotAllowed"),
        ("PUT", &taken, named("other"), 400, "BadRequest"),
        ("PUT", &taken, json!({ "metadata": { "name": "taken", "uid": "x" } }), 409, "Conflict"),
        ("PUT", "/api/v1/namespaces/default/configmaps/absent", named("absent"), 404, "NotFound"),
        ("GET", "/api/v1/namespaces/default/configmaps/absent", Value::Null, 404, "NotFound"),
        ("GET", "/api/v1/namespaces/default/configmaps/taken/status", Value::Null, 404, "NotFound"),
        ("GET", "/api/v1/widgets", Value::Null, 404, "NotFound"),
        ("GET", "/apis/none.example/v1/widgets", Value::Null, 404, "NotFound"),
        ("GET", "/api/v1/configmaps?fieldSelector=data.a=1", Value::Null, 400, "BadRequest"),
        ("GET", "/api/v1/configmaps?labelSelector=a%20b%20c", Value::Null, 400, "BadRequest"),
        ("GET", "/api/v1/configmaps?resourceVersion=999999", Value::Null, 504, "Timeout"),
        ("POST", "/api/v1/namespaces/default/configmaps?dryRun=Some", named("x"), 422, "Invalid"),
        ("POST", "/api/v1/namespaces/default/pods/x/eviction", json!({}), 501, "NotImplemented"),
        ("GET", "/api/v1/namespaces/default/pods/x/log", Value::Null, 501, "NotImplemented"),
        ("DELETE", "/api/v1/namespaces/kube-system", Value::Null, 403, "Forbidden"),
        (
            "DELETE",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/lanes.example.io",
            Value::Null,
            405,
            "MethodNotAllowed",
        ),
    ] {
        let (got, status) = call(&client, method, path, JSON, body.clone()).await;
        assert_eq!(got, code, "{method} {path} {body}: {status}");
        assert_eq!(status["kind"], "Status", "{method} {path}");
        assert_eq!(status["code"], code, "{method} {path}");
        assert_eq!(status["reason"].as_str().unwrap_or_default(), reason, "{method} {path}");
        assert!(!status["message"].as_str().unwrap().is_empty());
    }
}

#[tokio::test]
async fn what_controllers_work_on_keeps_spec_and_status_apart() {
    let (_server, client) = start().await;
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let made = json!({
        "metadata": { "name": "b" },
        "spec": { "selector": {}, "maxUnavailable": 1 },
        "status": { "disruptionsAllowed": 9 },
    });
    let made = post(&client, budgets, made).await;
    assert_eq!(made["status"]["disruptionsAllowed"], 0, "the status is not the creator's to write");
    assert_eq!(made["metadata"]["generation"], 1);
    let path = format!("{budgets}/b/status");
    let counts = json!({
        "currentHealthy": 3, "desiredHealthy": 2, "disruptionsAllowed": 1, "expectedPods": 3,
    });
    let (code, told) = call(&client, "PATCH", &path, MERGE, json!({ "status": counts })).await;
    assert_eq!((code, &told["status"]["disruptionsAllowed"]), (200, &json!(1)), "{told}");
    for path in [
        "/api/v1/services",
        "/api/v1/replicationcontrollers",
        "/apis/apps/v1/replicasets",
        "/apis/apps/v1/statefulsets",
    ] {
        assert_eq!(get(&client, path).await["items"], json!([]), "{path}");
    }
}

#[tokio::test]
async fn deletion_checks_its_preconditions() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let created = maps.create(&PostParams::default(), &config_map("one")).await.unwrap();
    let only_if = |uid: Option<String>, resource_version: Option<String>| DeleteParams {
        preconditions: Some(Preconditions { uid, resource_version }),
        ..DeleteParams::default()
    };
    let wrong_uid = only_if(Some("another".to_owned()), None);
    let (code, _, message) = refusal(maps.delete("one", &wrong_uid).await.map(drop));
    assert_eq!(code, 409);
    assert!(message.contains("the UID in the precondition (another)"), "{message}");
    let wrong_version = only_if(created.uid(), Some("1".to_owned()));
    assert_eq!(refusal(maps.delete("one", &wrong_version).await.map(drop)).0, 409);
    maps.delete("one", &only_if(created.uid(), created.resource_version())).await.unwrap();
}

#[tokio::test]
async fn finalizers_hold_an_object_until_the_last_goes() {
    let (_server, client) = start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let mut held = config_map("held");
    held.metadata.finalizers = Some(vec!["a.example/x".to_owned(), "b.example/y".to_owned()]);
    maps.create(&PostParams::default(), &held).await.unwrap();
    let answer = maps.delete("held", &DeleteParams::default()).await.unwrap();
    let left = answer.left().expect("the object is shown while it is still there");
    assert!(left.metadata.deletion_timestamp.is_some());

    let again = maps.delete("held", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(again.resource_version(), left.resource_version(), "deleting twice changes nothing");
    let keep =
        |finalizers: Value| Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
    let params = PatchParams::default();
    maps.patch("held", &params, &keep(json!(["b.example/y"]))).await.unwrap();
    assert!(maps.get("held").await.unwrap().metadata.deletion_timestamp.is_some());
    maps.patch("held", &params, &keep(json!(null))).await.unwrap();
    assert_eq!(refusal(maps.get("held").await).0, 404);
}

#[tokio::test]
async fn who_is_being_deleted_gets_no_new_finalizers() {
    let (_server, client) = start().await;
    let held = json!({ "metadata": { "name": "held", "finalizers": ["a.example/x"] } });
    post(&client, MAPS, held).await;
    let path = format!("{MAPS}/held");
    call(&client, "DELETE", &path, JSON, Value::Null).await;
    let more = json!({ "metadata": { "finalizers": ["a.example/x", "b.example/y"] } });
    assert_eq!(call(&client, "PATCH", &path, MERGE, more).await.0, 422);
}

#[tokio::test]
async fn a_lease_is_made_by_put_and_then_replaced_by_version() {
    let (_server, client) = start().await;
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/leader";
    let lease =
        |metadata: Value| json!({ "metadata": metadata, "spec": { "holderIdentity": "a" } });
    let (code, made) = call(&client, "PUT", path, JSON, lease(json!({ "name": "leader" }))).await;
    assert_eq!(code, 201, "{made}");
    let blind = lease(json!({ "name": "leader" }));
    assert_eq!(call(&client, "PUT", path, JSON, blind).await.0, 422, "it needs a version");
    let stale = lease(json!({ "name": "leader", "resourceVersion": "1" }));
    assert_eq!(call(&client, "PUT", path, JSON, stale).await.0, 409);
    let (code, _) = call(&client, "PUT", path, JSON, made).await;
    assert_eq!(code, 200);
}

#[tokio::test]
async fn a_secrets_text_is_kept_in_base64() {
    let (_server, client) = start().await;
    let secret = json!({ "metadata": { "name": "s" }, "stringData": { "a": "b" } });
    let made = post(&client, "/api/v1/namespaces/default/secrets", secret).await;
    assert_eq!((&made["data"]["a"], &made["type"]), (&json!("Yg=="), &json!("Opaque")));
    assert_eq!(made.get("stringData"), None);
}

#[tokio::test]
async fn a_namespace_takes_its_objects_along() {
    let (_server, client) = start().await;
    post(&client, "/api/v1/namespaces", json!({ "metadata": { "name": "team" } })).await;
    let path = "/api/v1/namespaces/team/configmaps";
    post(&client, path, json!({ "metadata": { "name": "free" } })).await;
    let held = json!({ "metadata": { "name": "held", "finalizers": ["a.example/x"] } });
    post(&client, path, held).await;
    let (code, team) = call(&client, "DELETE", "/api/v1/namespaces/team", JSON, Value::Null).await;
    assert_eq!((code, &team["status"]["phase"]), (200, &json!("Terminating")));

    assert_eq!(get(&client, path).await["items"].as_array().unwrap().len(), 1, "one is held");
    let new = json!({ "metadata": { "name": "new" } });
    let (code, status) = call(&client, "POST", path, JSON, new).await;
    assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")), "{status}");

    let release = json!({ "metadata": { "finalizers": [] } });
    call(&client, "PATCH", &format!("{path}/held"), MERGE, release).await;
    let (code, _) = call(&client, "GET", "/api/v1/namespaces/team", JSON, Value::Null).await;
    assert_eq!(code, 404, "nothing is left in it");
}

#[tokio::test]
async fn selectors_choose_objects() {
    let (_server, client) = start().await;
    let pods = "/api/v1/namespaces/default/pods";
    for (name, tier, scheduler) in [("a", "1", "x"), ("b", "2", "x"), ("c", "2", "y")] {
        let mut pod = pod(name);
        pod["metadata"]["labels"] = json!({ "tier": tier });
        pod["spec"]["schedulerName"] = json!(scheduler);
        post(&client, pods, pod).await;
    }
    for (query, expected) in [
        ("labelSelector=tier%3D2", vec!["b", "c"]),
        ("labelSelector=tier+in+(1,2),tier!%3D1", vec!["b", "c"]),
        ("labelSelector=!tier", vec![]),
        ("fieldSelector=metadata.name%3Db", vec!["b"]),
        ("fieldSelector=metadata.namespace!%3Ddefault", vec![]),
        ("fieldSelector=spec.schedulerName%3Dx,status.phase%3DPending", vec!["a", "b"]),
        ("fieldSelector=spec.nodeName%3D&labelSelector=tier%3D1", vec!["a"]),
        ("limit=2", vec!["a", "b"]),
    ] {
        let list = get(&client, &format!("/api/v1/pods?{query}")).await;
        let items = list["items"].as_array().unwrap().iter();
        let names: Vec<&str> = items.map(|pod| pod["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected, "{query}");
    }
    let path = format!("{pods}?labelSelector=tier%3D2");
    let (code, deleted) = call(&client, "DELETE", &path, JSON, Value::Null).await;
    assert_eq!((code, deleted["items"].as_array().unwrap().len()), (200, 2));
    assert_eq!(get(&client, pods).await["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_dry_run_answers_but_writes_nothing() {
    let (server, client) = start().await;
    post(&client, MAPS, json!({ "metadata": { "name": "one" } })).await;
    let before = server.write_log().len();
    let one = format!("{MAPS}/one?dryRun=All");
    let new = format!("{MAPS}?dryRun=All");
    let data = json!({ "data": { "a": "b" } });
    assert_eq!(
        call(&client, "POST", &new, JSON, json!({ "metadata": { "name": "x" } })).await.0,
        201
    );
    assert_eq!(call(&client, "PATCH", &one, MERGE, data).await.1["data"]["a"], "b");
    assert_eq!(call(&client, "DELETE", &one, JSON, Value::Null).await.0, 200);
    assert_eq!(server.write_log().len(), before);
    assert!(get(&client, &format!("{MAPS}/one")).await.get("data").is_none());
}

#[tokio::test]
async fn the_write_log_has_every_write_in_order() {
    let (server, client) = start().await;
    let fresh = server.write_log().len();
    let created = post(&client, MAPS, json!({ "metadata": { "name": "one" } })).await;
    let data = json!({ "data": { "a": "b" } });
    call(&client, "PATCH", &format!("{MAPS}/one"), MERGE, data).await;
    call(&client, "DELETE", &format!("{MAPS}/one"), JSON, Value::Null).await;
    let log = server.write_log();
    let versions: Vec<u64> = log.iter().map(|write| write.resource_version).collect();
    assert_eq!(versions, (1..=log.len() as u64).collect::<Vec<_>>(), "one global count");
    let verbs: Vec<&str> = log[fresh..].iter().map(|write| write.verb).collect();
    assert_eq!(verbs, ["create", "patch", "delete"]);
    for write in &log[fresh..] {
        assert_eq!((write.resource.as_str(), write.namespace.as_str()), ("configmaps", "default"));
        assert_eq!(
            (write.name.as_str(), json!(write.uid)),
            ("one", created["metadata"]["uid"].clone())
        );
    }
}

#[tokio::test]
async fn only_loopback_is_served() {
    let refused = sim::ApiServer::start("0.0.0.0:0".parse().unwrap(), Vec::new()).await;
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}

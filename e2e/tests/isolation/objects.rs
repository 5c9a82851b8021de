//! Admission of the status of one tenant's Corridors that is slow.

use std::time::{Duration, Instant};

use e2e::objects::custom::{Custom, CustomKind, remove_all};
use e2e::webhook::Webhook;
use serde_json::json;

use super::{OTHER, TROUBLED, run};

/// More than the passes that one namespace may have under way.
const CROWD: usize = 48;

#[tokio::test]
async fn slow_status_writes_of_one_namespaces_corridors_hold_up_no_others() {
    run(async |cluster| {
        let webhook = Webhook::start(Duration::from_secs(9)).await?;
        webhook.install(cluster.admin(), "slow-corridors", TROUBLED, "corridors/status").await?;
        let scheduler = cluster.start_scheduler_with_daemons().await?;
        let spec = json!({"lanes": 1, "lambdaNm": [1550], "minGbps": 1});
        let create = |namespace: &'static str, name: String| {
            let (client, spec) = (cluster.admin(), spec.clone());
            async move { Custom::create(client, CustomKind::Corridor, namespace, &name, spec).await }
        };
        for number in 0..CROWD {
            create(TROUBLED, format!("slow-{number}")).await?;
        }
        for number in 0..3 {
            let began = Instant::now();
            create(OTHER, format!("free-{number}")).await?.until_ready().await?;
            let took = began.elapsed();
            println!("beside slow status writes, another's Corridor is Ready after {took:?}");
            assert!(took < Duration::from_secs(6), "{took:?}");
        }
        assert!(webhook.asked() > 0, "the webhook was asked");
        Webhook::remove(cluster.admin(), "slow-corridors").await?;
        drop(scheduler);
        remove_all(cluster.admin()).await
    })
    .await;
}

//! Two replicas on a real API server, scraped by a real Prometheus over HTTPS with a ServiceAccount's token:
//! every query of every panel has data.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use e2e::binaries::{PrometheusPrograms, say};
use e2e::https_client::TestAuthority;
use e2e::metrics::families;
use e2e::observability::dashboards::{Dashboard, Values, dashboards, fill_in};
use e2e::observability::prometheus_server::{PrometheusServer, Scraped, has_data, largest};
use e2e::observability::promql::metrics_in;
use e2e::observability::rules::rules;
use e2e::observability::scene::{self, HAPPENED};
use e2e::{ControlPlane, Result, SYSTEM_NAMESPACE, Site, SiteOptions};
use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

/// Seed 000 §4.3.
const LIVE_SERIES: [&str; 4] =
    ["corridor_power_pj_per_bit", "corridor_ber", "ffm_achieved_gbs", "ffm_tail_p99_ms"];
/// As the flag says; replicas tell it of themselves.
const CLUSTER_NAME: &str = "here";
/// The rarest readings come every 10 s, and a rate needs two. A floor of which nothing is measured counts after a
/// minute.
const DATA_TIME_MAX: Duration = Duration::from_mins(2);
/// Panels that must not look well after the scene: a Corridor was refused, and is Failed.
const TROUBLE: [&str; 3] = [
    "Corridor / Security: Failed (A)",
    "Corridor / Overview: Not Ready (A)",
    "Corridor / Overview: Floors not met (A)",
];
/// After a minute an object that is not Ready is counted as one that never was; then comes a scrape.
const OVERDUE_TIME_MAX: Duration = Duration::from_secs(70);
/// What Prometheus itself makes of alerts.
const ALERTS: &str = "ALERTS";
const SCRAPER: &str = "prometheus";

/// Its own certificate authority, and a name in the certificates.
struct Tls {
    authority: TestAuthority,
    folder: tempfile::TempDir,
}

impl Tls {
    fn new() -> Self {
        let (authority, folder) = (TestAuthority::new().unwrap(), tempfile::tempdir().unwrap());
        let pair = authority.issue().unwrap();
        fs::write(folder.path().join("tls.crt"), &pair.certificate).unwrap();
        fs::write(folder.path().join("tls.key"), &pair.key).unwrap();
        Self { authority, folder }
    }

    fn flags(&self) -> Vec<String> {
        let file = |name: &str| self.folder.path().join(name).to_string_lossy().into_owned();
        vec![
            "--leader-elect=true".into(),
            "--https=127.0.0.1:0".into(),
            format!("--cluster-name={CLUSTER_NAME}"),
            format!("--tls-cert-file={}", file("tls.crt")),
            format!("--tls-private-key-file={}", file("tls.key")),
        ]
    }
}

/// A token of an account that may read metrics, and nothing else.
async fn scraper_token(plane: &ControlPlane) -> Result<String> {
    let whom = format!("--serviceaccount={SYSTEM_NAMESPACE}:{SCRAPER}");
    let in_system = format!("--namespace={SYSTEM_NAMESPACE}");
    plane.kubectl(&["create", "serviceaccount", SCRAPER, &in_system]).await?;
    let role = "--clusterrole=corridor-metrics-reader";
    plane.kubectl(&["create", "clusterrolebinding", SCRAPER, role, &whom]).await?;
    plane.token_of(SYSTEM_NAMESPACE, SCRAPER).await
}

/// Each variable at all values that it has now, chosen one by one.
async fn chosen(prometheus: &PrometheusServer, dashboard: &Dashboard) -> Result<Values> {
    let mut values = Values::new();
    for variable in &dashboard.variables {
        let selector = fill_in(&variable.selector, &values);
        let found = prometheus.label_values(&selector, &variable.label).await?;
        values.insert(variable.name.clone(), format!("({})", found.join("|")));
    }
    Ok(values)
}

/// Every query of every panel that has no data, twice: with "All" and with values chosen by name.
async fn panels_without_data(prometheus: &PrometheusServer) -> Result<(usize, Vec<String>)> {
    let (mut asked, mut empty) = (0, Vec::new());
    for dashboard in dashboards()? {
        for values in [dashboard.everything(), chosen(prometheus, &dashboard).await?] {
            for query in &dashboard.queries {
                let expression = query.filled_in(&values);
                let series = if query.is_instant {
                    prometheus.now(&expression).await?
                } else {
                    prometheus.since_the_start(&expression).await?
                };
                asked += 1;
                if !has_data(&series) {
                    empty.push(format!("  {}: {expression}", query.place));
                }
            }
        }
    }
    Ok((asked, empty))
}

async fn ensure_panels_have_data(prometheus: &PrometheusServer) -> Result<()> {
    let all = prometheus
        .until_content(DATA_TIME_MAX, async |it| Ok(panels_without_data(it).await?.1))
        .await;
    let (asked, empty) = panels_without_data(prometheus).await?;
    let share = 100.0 * f64::from(u32::try_from(asked - empty.len()).unwrap())
        / f64::from(u32::try_from(asked).unwrap());
    say(&format!("panel queries with data: {} of {asked} ({share:.1} %)", asked - empty.len()));
    assert!(asked > 100, "only {asked} queries were found");
    all
}

/// Every series of a panel has a name: each label that its legend is made of.
async fn ensure_no_series_is_stray(prometheus: &PrometheusServer) -> Result<()> {
    for dashboard in dashboards()? {
        for query in &dashboard.queries {
            let expression = query.as_shown(&dashboard.everything());
            for series in prometheus.now(&expression).await? {
                let metric = &series["metric"];
                let lacks = query.legend_labels().find(|label| metric[*label].is_null());
                assert_eq!(lacks, None, "{}: {expression} has {metric}", query.place);
            }
        }
    }
    Ok(())
}

/// What went wrong in the scene is not shown as a 0.
async fn ensure_trouble_is_shown(prometheus: &PrometheusServer) -> Result<()> {
    let mut shown = 0;
    for dashboard in dashboards()? {
        for query in dashboard.queries.iter().filter(|it| TROUBLE.contains(&it.place.as_str())) {
            let series = prometheus.now(&query.as_shown(&dashboard.everything())).await?;
            let (count, value) = (series.len(), largest(&series).unwrap_or_default());
            // A table has a row, a stat a number.
            let is_seen = value > 0.5 || query.place.contains("Floors not met") && count > 0;
            assert!(is_seen, "{} shows {value} in {count} series", query.place);
            shown += 1;
        }
    }
    assert_eq!(shown, TROUBLE.len());
    Ok(())
}

/// The Corridor that its tenant's policy refuses has not been Ready for over a minute, and is not counted as slow.
async fn ensure_no_refusal_counts_as_slow(prometheus: &PrometheusServer) -> Result<()> {
    let never = "sum(corridor_time_to_ready_seconds_count) \
                 - sum(corridor_time_to_ready_seconds_bucket{le=~\"60([.]0)?\"})";
    let never = largest(&prometheus.now(never).await?);
    assert_eq!(never, Some(0.0), "objects that count as never Ready");
    Ok(())
}

/// The four series of the seed, as Prometheus has them now.
async fn ensure_series_are_live(prometheus: &PrometheusServer) -> Result<()> {
    for name in LIVE_SERIES {
        let of_here =
            format!("{name}{{cluster=\"{CLUSTER_NAME}\", namespace=\"{}\"}}", scene::TEAM);
        let series = prometheus.now(&of_here).await?;
        assert!(has_data(&series), "{of_here} has no data");
        let shown = &series[0];
        say(&format!("live: {name}{} = {}", shown["metric"], shown["value"][1]));
    }
    Ok(())
}

/// Every rule is evaluated without a fault, and whatever is recorded is there.
async fn ensure_rules_work(prometheus: &PrometheusServer) -> Result<()> {
    let answer = prometheus.ask("/api/v1/rules", &[]).await?;
    let groups = answer["groups"].as_array().unwrap();
    let loaded: Vec<&Value> =
        groups.iter().flat_map(|group| group["rules"].as_array().unwrap()).collect();
    assert_eq!(loaded.len(), rules()?.len());
    for rule in loaded {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
    let recorded: BTreeSet<String> =
        rules()?.into_iter().filter(|rule| !rule.is_alert).map(|rule| rule.selector).collect();
    let nothing = async |it: &PrometheusServer| {
        let mut missing = Vec::new();
        for selector in &recorded {
            if !has_data(&it.now(selector).await?) {
                missing.push(selector.clone());
            }
        }
        Ok(missing)
    };
    prometheus.until_content(DATA_TIME_MAX, nothing).await?;
    say(&format!("recording rules with data: {} of {}", recorded.len(), recorded.len()));
    let tampering = async |it: &PrometheusServer| {
        let alerts = it.ask("/api/v1/alerts", &[]).await?;
        let is_it = |alert: &Value| {
            alert["labels"]["alertname"] == "CorridorTampering" && alert["state"] == "firing"
        };
        let fires = alerts["alerts"].as_array().is_some_and(|all| all.iter().any(is_it));
        Ok(if fires { vec![] } else { vec![format!("the alert of tampering: {alerts}")] })
    };
    prometheus.until_content(DATA_TIME_MAX, tampering).await
}

/// What rules, panels and variables name is served, or recorded by a rule; and all of it says what it is.
fn ensure_metrics_exist(scraped: &str) -> Result<()> {
    let families = families(scraped);
    for (name, family) in &families {
        assert!(!family.help.trim().is_empty(), "{name} has no help text");
    }
    let rules = rules()?;
    let recorded: BTreeSet<&str> =
        rules.iter().filter(|rule| !rule.is_alert).map(|rule| rule.name.as_str()).collect();
    let mut expressions: Vec<String> = rules.iter().map(|rule| rule.expression.clone()).collect();
    for dashboard in dashboards()? {
        let nothing = Values::new();
        expressions.extend(dashboard.queries.iter().map(|it| it.filled_in(&nothing)));
        expressions.extend(dashboard.variables.into_iter().map(|it| it.selector));
    }
    let named: BTreeSet<String> = expressions.iter().flat_map(|it| metrics_in(it)).collect();
    assert!(named.len() > 40, "only {} metrics were found: {named:?}", named.len());
    for name in named.iter().filter(|name| *name != ALERTS) {
        let whole = ["_bucket", "_sum", "_count"].iter().find_map(|it| name.strip_suffix(it));
        let of_histogram =
            whole.and_then(|it| families.get(it)).is_some_and(|it| it.kind == "histogram");
        let is_known = families.contains_key(name) || recorded.contains(name.as_str());
        assert!(is_known || of_histogram, "there is no metric {name}");
    }
    say(&format!("metrics named in rules and dashboards: {}, all of them served", named.len()));
    Ok(())
}

async fn watch_a_lively_site() -> Result<()> {
    let programs = spawn_blocking(PrometheusPrograms::locate).await.unwrap()?;
    let plane = ControlPlane::start().await?;
    plane.install_crds().await?;
    let (cluster, tls) = (plane.cluster().await?, Tls::new());
    let options = SiteOptions { scheduler: tls.flags(), tampered: true, ..SiteOptions::default() };
    let site = Site::start(&cluster, options).await?;
    let replica = site.start_replica().await?;
    let scraped = Scraped {
        replicas: &[site.scheduler.https_address()?, replica.https_address()?],
        authority: &tls.authority.pem(),
        server_name: "localhost",
        token: &scraper_token(&plane).await?,
    };
    let prometheus = PrometheusServer::start(&programs, &scraped).await?;
    let unscraped = async |it: &PrometheusServer| {
        let up = it.now("sum(up{job=\"corridor-scheduler\"})").await?;
        let is_up = largest(&up).is_some_and(|count| count > 1.5);
        Ok(if is_up { vec![] } else { vec![it.ask("/api/v1/targets", &[]).await?.to_string()] })
    };
    prometheus.until_content(DATA_TIME_MAX, unscraped).await?;

    scene::play(&site).await?;
    let played = Instant::now();
    let missing = async |it: &PrometheusServer| {
        let mut missing = Vec::new();
        for expression in HAPPENED {
            if largest(&it.now(expression).await?).is_none_or(|value| value <= 0.0) {
                missing.push(format!("  {expression} is not above 0"));
            }
        }
        Ok(missing)
    };
    prometheus.until_content(DATA_TIME_MAX, missing).await?;
    ensure_rules_work(&prometheus).await?;
    ensure_panels_have_data(&prometheus).await?;
    ensure_no_series_is_stray(&prometheus).await?;
    ensure_trouble_is_shown(&prometheus).await?;
    sleep_until(played + OVERDUE_TIME_MAX).await;
    ensure_no_refusal_counts_as_slow(&prometheus).await?;
    ensure_series_are_live(&prometheus).await?;
    ensure_metrics_exist(&site.scheduler.metrics().await?)
}

#[tokio::test]
async fn every_panel_shows_a_live_site() {
    if let Err(problem) = watch_a_lively_site().await {
        panic!("{problem}");
    }
}

//! A real Prometheus with our rules, on loopback, that scrapes over HTTPS with a token.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use http::Request;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::rules::{read_yaml, rule_files};
use crate::binaries::PrometheusPrograms;
use crate::control_plane::CONFIG_DIR;
use crate::control_plane::servers::lost_the_port;
use crate::control_plane::servers::{STARTS_MAX, free_port, is_prometheus_ready, until_ready};
use crate::error::{Doing as _, Error, Result};
use crate::scheduler_process::plain_client;
use crate::supervised::Supervised;

/// Often, so that a story of seconds has many samples.
const SCRAPE_EVERY: &str = "1s";
const STEP_SECONDS: u32 = 1;

/// What is scraped, and with what right.
#[derive(Debug)]
pub struct Scraped<'a> {
    pub replicas: &'a [SocketAddr],
    /// The authority of their certificates, in PEM, and the name in these.
    pub authority: &'a str,
    pub server_name: &'a str,
    pub token: &'a str,
}

/// It ends, and its folder goes, when this is dropped.
pub struct PrometheusServer {
    process: Supervised,
    client: Client,
    started: jiff::Timestamp,
}

impl std::fmt::Debug for PrometheusServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrometheusServer").field("process", &self.process).finish_non_exhaustive()
    }
}

impl PrometheusServer {
    /// Starts it with the example of `config/prometheus/`, but for where it finds the replicas.
    pub async fn start(programs: &PrometheusPrograms, scraped: &Scraped<'_>) -> Result<Self> {
        for _ in 1..STARTS_MAX {
            match Self::try_start(programs, scraped).await {
                Err(problem) if lost_the_port(&problem) => {}
                outcome => return outcome,
            }
        }
        Self::try_start(programs, scraped).await
    }

    async fn try_start(programs: &PrometheusPrograms, scraped: &Scraped<'_>) -> Result<Self> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let mut process = Supervised::prepare("prometheus", &programs.server(), |folder| {
            vec![
                format!("--config.file={}", config_path(folder).display()).into(),
                format!("--storage.tsdb.path={}", folder.join("data").display()).into(),
                format!("--web.listen-address={address}").into(),
                "--log.level=warn".into(),
            ]
        })?;
        let path = config_path(process.folder());
        let config = config(process.folder(), scraped)?;
        fs::write(&path, config.to_string()).doing(format!("writing {}", path.display()))?;
        promtool(programs, &["check", "config", &path.to_string_lossy()])?;
        process.start()?;
        let client = plain_client(&format!("http://{address}"))?;
        until_ready(&process, async |_| is_prometheus_ready(&client).await).await?;
        Ok(Self { process, client, started: jiff::Timestamp::now() })
    }

    /// The series of this moment.
    pub async fn now(&self, expression: &str) -> Result<Vec<Value>> {
        self.series("/api/v1/query", &[("query", expression)]).await
    }

    /// The series since it was started.
    pub async fn since_the_start(&self, expression: &str) -> Result<Vec<Value>> {
        let (start, end) = (self.started.as_second(), jiff::Timestamp::now().as_second());
        let (start, end) = (start.to_string(), end.to_string());
        let step = STEP_SECONDS.to_string();
        let parameters = [("query", expression), ("start", &start), ("end", &end), ("step", &step)];
        self.series("/api/v1/query_range", &parameters).await
    }

    async fn series(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Vec<Value>> {
        let answer = self.ask(path, parameters).await?;
        let result = answer["result"].as_array().cloned();
        result.ok_or_else(|| Error::malformed(format!("asking Prometheus for {path}"), answer))
    }

    /// The values of a label among the series of a selector.
    pub async fn label_values(&self, selector: &str, label: &str) -> Result<Vec<String>> {
        let path = format!("/api/v1/label/{label}/values");
        let answer = self.ask(&path, &[("match[]", selector)]).await?;
        let values = answer.as_array().into_iter().flatten();
        Ok(values.filter_map(|value| value.as_str().map(str::to_owned)).collect())
    }

    /// What its API answers there.
    pub async fn ask(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Value> {
        let query: Vec<_> =
            parameters.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
        let target = format!("{path}?{}", query.join("&"));
        let doing = format!("asking Prometheus for {path} {parameters:?}");
        let request = Request::get(&target)
            .body(Vec::new())
            .map_err(|problem| Error::malformed(doing.clone(), problem))?;
        let answer = self.client.request_text(request).await.doing(doing.clone())?;
        let answer: Value = serde_json::from_str(&answer).doing(doing.clone())?;
        match answer["status"].as_str() {
            Some("success") => Ok(answer["data"].clone()),
            _ => Err(Error::malformed(doing, answer)),
        }
    }

    /// Asks again and again until there is nothing left to complain about.
    pub async fn until_content(
        &self,
        patience: Duration,
        complaints: impl AsyncFn(&Self) -> Result<Vec<String>>,
    ) -> Result<()> {
        let deadline = Instant::now() + patience;
        loop {
            let found = complaints(self).await?;
            if found.is_empty() {
                return Ok(());
            }
            if self.process.has_ended() {
                return Err(self.process.stopped_unexpectedly());
            }
            if Instant::now() > deadline {
                return Err(Error::Violated(format!(
                    "after {} s Prometheus still has nothing for:\n{}",
                    patience.as_secs(),
                    found.join("\n"),
                )));
            }
            sleep(Duration::from_secs(1)).await;
        }
    }
}

/// Whether any sample is a number.
pub fn has_data(series: &[Value]) -> bool {
    let is_number = |sample: &Value| {
        sample[1].as_str().and_then(|text| text.parse::<f64>().ok()).is_some_and(|it| !it.is_nan())
    };
    series.iter().any(|one| {
        is_number(&one["value"])
            || one["values"].as_array().is_some_and(|all| all.iter().any(is_number))
    })
}

/// The largest sample of this moment.
pub fn largest(series: &[Value]) -> Option<f64> {
    let values = series.iter().filter_map(|one| one["value"][1].as_str()?.parse::<f64>().ok());
    values.filter(|value| !value.is_nan()).reduce(f64::max)
}

/// Runs promtool and returns what it prints. Blocks.
pub fn promtool(programs: &PrometheusPrograms, arguments: &[&str]) -> Result<String> {
    let command = format!("promtool {}", arguments.join(" "));
    let output = Command::new(programs.promtool())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .doing(format!("starting `{command}`"))?;
    let told = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    let told = String::from_utf8_lossy(&told).into_owned();
    if output.status.success() {
        return Ok(told);
    }
    Err(Error::Command { command, status: output.status.to_string(), stderr: told })
}

fn config_path(folder: &Path) -> PathBuf {
    folder.join("prometheus.json")
}

/// The example, with the addresses of this machine: Debian's Prometheus cannot look for Pods. JSON is YAML too.
fn config(folder: &Path, scraped: &Scraped<'_>) -> Result<Value> {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).doing(format!("writing {}", path.display())).map(|()| path)
    };
    let authority = write("authority.pem", scraped.authority)?;
    let token = write("token", scraped.token)?;
    let example = Path::new(CONFIG_DIR).join("prometheus/examples/prometheus.yaml");
    let mut config = read_yaml(&example)?;
    let doing = || format!("reading {}", example.display());
    config["global"]["scrape_interval"] = json!(SCRAPE_EVERY);
    config["global"]["evaluation_interval"] = json!(SCRAPE_EVERY);
    config["rule_files"] = json!(rule_files()?);
    let job = &mut config["scrape_configs"][0];
    let Some(fields) = job.as_object_mut() else {
        return Err(Error::malformed(doing(), "no scrape_configs"));
    };
    fields.remove("kubernetes_sd_configs");
    job["static_configs"] = json!([{ "targets": scraped.replicas }]);
    job["authorization"]["credentials_file"] = json!(token);
    job["tls_config"] = json!({ "ca_file": authority, "server_name": scraped.server_name });
    if let Some(relabelings) = job["relabel_configs"].as_array_mut() {
        relabelings.retain(|it| !it.to_string().contains("__meta_kubernetes"));
    }
    Ok(config)
}

fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

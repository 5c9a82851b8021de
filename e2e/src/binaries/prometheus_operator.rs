//! The custom resources of the Prometheus operator, out of the Go module that `prometheus-operator/` pins.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::go_module::GoModule;
use crate::error::Result;

/// One module of a few MB.
const FETCH_TIME_MAX: Duration = Duration::from_mins(10);
const MODULE: GoModule =
    GoModule::at(concat!(env!("CARGO_MANIFEST_DIR"), "/prometheus-operator"), FETCH_TIME_MAX);
const OPERATOR_MODULE: &str = "github.com/prometheus-operator/prometheus-operator";
/// What config/ and the chart make objects of.
const KINDS: [&str; 2] = ["servicemonitors", "prometheusrules"];

/// Their files. Fetched if need be. Blocks.
pub fn monitoring_crds() -> Result<Vec<PathBuf>> {
    let source = MODULE.source(OPERATOR_MODULE)?;
    let folder = Path::new(&source).join("example/prometheus-operator-crd");
    let file = |kind| folder.join(format!("monitoring.coreos.com_{kind}.yaml"));
    Ok(KINDS.map(file).to_vec())
}

//! Time-based overrides of a floor.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Floors that follow the clock. The first window that matches wins; outside
/// all windows the floor of the spec holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    /// IANA name of the time zone in which the windows are read, e.g. Europe/Berlin. Default: UTC.
    #[serde(default = "utc")]
    #[schemars(length(min = 1, max = 64), regex(pattern = TIME_ZONE_PATTERN))]
    // The API server's own CEL library knows the zones: an unknown name fails the evaluation.
    #[x_kube(validation = Rule::new(
        "self != 'Local' && timestamp('2026-01-01T00:00:00Z').getFullYear(self) > 0"
    ).message("timeZone must be a known IANA time zone name, such as UTC or Europe/Berlin"))]
    pub time_zone: String,
    /// The windows, most important first.
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    #[x_kube(validation = Rule::new(
        "self.all(w, self.exists_one(other, other.name == w.name))"
    ).message("each window needs a name of its own"))]
    pub windows: Vec<Window>,
}

/// A part of the week with a floor of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// Name of the window, unique in the schedule, e.g. offpeak.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Days of the week on which the window starts.
    #[schemars(length(min = 1, max = 7), extend("x-kubernetes-list-type" = "set"))]
    pub days: Vec<Day>,
    /// Start of the window, "HH:MM" on a 24-hour clock.
    #[schemars(length(max = 5), regex(pattern = CLOCK_PATTERN))]
    pub start: String,
    /// End of the window, "HH:MM", not included. Equal to or before the start: on the next day.
    #[schemars(length(max = 5), regex(pattern = CLOCK_PATTERN))]
    pub end: String,
    /// Floor in GB/s while the window is open.
    #[serde(rename = "bandwidthFloorGBs")]
    #[schemars(range(min = 1, max = 100_000))]
    pub bandwidth_floor_gbs: u32,
}

/// A day of the week, Monday first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

const TIME_ZONE_PATTERN: &str = r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$";
const CLOCK_PATTERN: &str = r"^([01][0-9]|2[0-3]):[0-5][0-9]$";

fn utc() -> String {
    "UTC".into()
}

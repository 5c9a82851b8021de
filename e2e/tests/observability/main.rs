//! What people see and install: rules and dashboards in a real Prometheus, Grafana's own types, the chart by
//! a real Helm. Each program of others is fetched or built once.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

mod chart;
mod dashboards;
mod live;
mod panels;
mod readable;
mod rules;

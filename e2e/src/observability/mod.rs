//! What people see of a running site: rules and dashboards of `config/`, asked of a real Prometheus.

pub mod dashboards;
pub mod panels;
pub mod prometheus_server;
pub mod promql;
pub mod rules;
pub mod scene;

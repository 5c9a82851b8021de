//! A real etcd and kube-apiserver for tests, and the scenarios that run on them.
//!
//! - [`ControlPlane`] starts both and leaves nothing behind, however the test process ends.
//! - [`SchedulerProcess`] runs the binary under test.
//! - [`Cluster`] is what a scenario needs of a control plane: the real one, or an in-memory one.
//! - [`scenarios`] are the stories a scheduler must get right, [`checkers`] recompute from a recorded
//!   watch that nothing was ever promised twice.
//! - [`crash`] kills the scheduler at every call it makes, seen and stopped by a [`proxy`]; [`returns`]
//!   and [`idle`] measure. Tests play them in small, the tools `crash-points`, `crash-loop`,
//!   `floor-return` and `idle-cost` in full size.
//! - [`faults`] come between the scheduler and the API server, one at a time.
//! - [`replicas`] are several schedulers of which one leads; the tool `failover` ends it again and again.
//! - [`https_client`] shows what the scheduler's HTTPS answers, and with which certificate.
//! - [`differential`] asks the scheduler and the real kube-scheduler about the same random Pods.
//! - [`observability`] shows rules and dashboards of a live site in a real Prometheus.
//! - [`webhook`] is asked by the API server before it writes, and takes its time.
//! - [`provisioner`] makes volumes for claims as an external provisioner does, or fails to.
//! - [`in_memory_api`] plays the same random calls to the real API server and to the in-memory one.
//!
//! Custom resources are written here as plain JSON: a slip in a Rust type must not hide itself by
//! being made on both sides.

pub mod admission_cases;
pub mod binaries;
pub mod checkers;
pub mod cluster;
pub mod control_plane;
pub mod crash;
pub mod daemons_process;
pub mod differential;
pub mod error;
pub mod faults;
pub mod figures;
pub mod hostile;
pub mod https_client;
pub mod idle;
pub mod in_memory_api;
pub mod meddler;
pub mod memory;
pub mod metrics;
pub mod objects;
pub mod observability;
pub mod observe;
pub mod population;
pub mod process_cost;
pub mod provisioner;
pub mod proxy;
pub mod quantity;
pub mod recorder;
pub mod replicas;
pub mod returns;
pub mod scenarios;
pub mod scheduler_process;
pub mod site;
pub mod stage;
pub mod supervised;
pub mod versions;
pub mod webhook;

pub use cluster::Cluster;
pub use control_plane::ControlPlane;
pub use daemons_process::DaemonsProcess;
pub use error::{Error, Result};
pub use random_clusters::random;
pub use scheduler_process::SchedulerProcess;
pub use site::{Site, SiteOptions};

/// The scheduler's name in `spec.schedulerName`.
pub const SCHEDULER_NAME: &str = "corridor-scheduler";

/// Where the scheduler, its ServiceAccount and the Leases of the backends live.
pub const SYSTEM_NAMESPACE: &str = "corridor-system";

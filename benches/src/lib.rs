//! Performance, beside kube-scheduler.
//!
//! - [`workload`]: clusters and Pods as data, in the sizes of scheduler_perf's cases.
//! - [`memory`]: the engine with a workload and nothing else.
//! - [`growth`]: what a decision costs in clusters of 1,000 to 1,000,000 nodes.
//! - [`race`]: kube-scheduler, corridor-scheduler and a client that only binds, on the same real API server.
//! - [`start_up`]: from the start of the process to its first bind.
//!
//! `README.md` says how each is run and what it measures.

pub mod allocations;
pub mod growth;
pub mod machine;
pub mod memory;
pub mod race;
pub mod start_up;
mod svg;
pub mod workload;

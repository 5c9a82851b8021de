//! The controllers against an API server and daemons that live in this process.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is wrong")]

mod audits;
mod first_readings;
mod flapping;
mod lives;
mod owned_pods;
mod passing_time;
mod running;
mod world;

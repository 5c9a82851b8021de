//! What the scheduler serves and shows: HTTPS, plain HTTP on loopback, certificates and tokens that rotate, its lines at the API
//! server. In one program, because most of it is waiting.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first thing that is wrong"
)]

mod flow_control;
mod https;
mod origin;
mod rotation;
mod shares;

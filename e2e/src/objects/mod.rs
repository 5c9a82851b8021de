//! The objects that scenarios are made of.

pub mod bundles;
pub mod corridors;
pub mod custom;
pub mod devices;
pub mod history;
pub mod leases;
pub mod nodes;
pub mod pods;
pub mod volumes;

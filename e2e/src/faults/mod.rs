//! What can go wrong between the scheduler and the API server, one fault at a time, and what must hold
//! nevertheless. The table is in `tests/faults/main.rs`.

pub mod clock;
pub mod gate;
pub mod hang;
mod preload;
pub mod site;

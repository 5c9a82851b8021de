//! What hostile tenants try, as a table (`cases/hostile.yaml`), and the worlds in which they try it.
//!
//! Every case has a namespace to itself: an object with a floor, a Pod that holds the larger part of it,
//! and one that waits because it asks for more than is left. After the attack a third Pod takes exactly
//! what is left. So whatever loses a reservation lets the one that waits in, and whatever steals
//! bandwidth keeps the third one out: both are seen.
//!
//! - [`case`] reads the table, [`world`] builds and attacks, [`verdict`] looks at what came of it;
//! - [`guarded`] tries the same writes where `config/admission/` is installed;
//! - [`crowds`] are attacks by number instead of by content.

pub mod case;
pub mod crowds;
pub mod guarded;
pub mod verdict;
pub mod world;

pub use case::{Case, Outcome};
pub use world::{Neighbour, World};

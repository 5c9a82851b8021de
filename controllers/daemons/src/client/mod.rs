//! The daemons over HTTP. One [`Endpoint`] speaks every trait of the contract.

mod complaint;
mod exchange;
mod tls;
mod traits;

pub(crate) use self::exchange::Call;
pub use self::exchange::{AddressError, Endpoint, Patience};
pub use self::tls::Identity;

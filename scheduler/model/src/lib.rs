//! The words that the engine and the oracle share.
//!
//! Everything here is plain data and pure functions: no clock, no I/O, no
//! Kubernetes client. The driver parses API objects into these types once, at
//! the edge; past that point there is no string left to interpret.

mod amount;
mod hold;
mod ids;
mod node;
mod object;
mod pod;
mod quantity;
mod resources;
mod taint;
mod time;

pub use amount::{Amount, AmountError};
pub use hold::Hold;
pub use ids::{NodeName, ObjectKey, ObjectUid, PodUid};
pub use node::{Labels, Node};
pub use object::{ObjectKind, ObjectRef, Phase, Reservable, SECURITY_DOMAIN_LABEL};
pub use pod::{
    Assignment, DeclaredBy, DeclaredEnd, FailurePolicy, Grant, Granted, Need, Pod, PodSpec, Shape,
};
pub use quantity::{Quantity, QuantityError};
pub use resources::{MemoryBytes, MilliCpu, Resources};
pub use taint::{Effect, Taint, Toleration, TolerationOperator, first_untolerated};
pub use time::Instant;

//! What the contract allows in a request, the same ranges as in the custom resources.

pub const LANES_MAX: u32 = 1024;
/// O band to U band.
pub const LAMBDA_NM_MIN: u32 = 1260;
pub const LAMBDA_NM_MAX: u32 = 1675;
pub const MIN_GBPS_MAX: u32 = 1_000_000;
pub const LATENCY_BUDGET_NS_MAX: u32 = 1_000_000_000;
pub const REACH_MM_MAX: u32 = 100_000_000;
/// 1 PiB.
pub const BYTES_MAX: u64 = 1 << 50;
pub const FLOOR_GBS_MAX: u32 = 100_000;
/// A name of Kubernetes' making, e.g. of a device or of a priority class.
pub const NAME_LENGTH_MAX: usize = 253;
/// The server holds a long poll no longer than this, so that a lost client is noticed.
pub const WAIT_SECONDS_MAX: u64 = 60;
/// A nonce must not repeat by chance.
pub const NONCE_LENGTH_MIN: usize = 16;
pub const NONCE_LENGTH_MAX: usize = 128;
/// An ML-DSA-65 signature in base64 takes 4.4 KB; the rest is for claims.
pub const TICKET_LENGTH_MAX: usize = 64 * 1024;

//! Why a daemon says no: one body for every refusal.

use http::StatusCode;
use serde::{Deserialize, Serialize};

/// The body of every answer that is not a success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What a program decides by.
    #[serde(default)]
    pub reason: RefusalReason,
    /// What a person reads: the limit, what was asked, what to change.
    #[serde(default)]
    pub message: String,
}

impl Refusal {
    pub fn new(reason: RefusalReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// Why a request was refused. Each has one HTTP code; the code alone tells what to do next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalReason {
    /// 400: not what the contract allows; no daemon would take it.
    Malformed,
    /// 401: a ticket is needed and none was given.
    TicketRequired,
    /// 401: not a ticket of a trusted attestd, or changed on the way.
    TicketInvalid,
    /// 401: attest again.
    TicketExpired,
    /// 403: issued for another custom resource.
    TicketSubject,
    /// 403: issued for another device than the one asked for.
    TicketDevice,
    /// 403: the allocation belongs to another owner.
    Owner,
    /// 404: no such allocation or device.
    NotFound,
    /// 409: this key was used for another wish.
    KeyReused,
    /// 409: this nonce was used before.
    NonceReplayed,
    /// 422: the light does not get that far.
    Reach,
    /// 422: the path is slower than the budget, whatever is free.
    LatencyBudget,
    /// 422: that many Gbps do not fit on these lanes, or the device has fewer lanes.
    Lanes,
    /// 422: the device cannot emit this wavelength.
    Lambda,
    /// 422: the tier cannot give that bandwidth to one bundle.
    Bandwidth,
    /// 422: the device is of another kind or unknown.
    Device,
    /// 422: post-quantum evidence was required, the device has none.
    Pqc,
    /// 507: not enough free lanes now.
    PoolLanes,
    /// 507: not enough free Gbps now.
    PoolGbps,
    /// 507: not enough free bytes in the tier now.
    PoolBytes,
    /// 507: not enough free GB/s in the tier now.
    PoolBandwidth,
    /// 503: try again.
    Unavailable,
    /// A reason that this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

impl RefusalReason {
    /// As it is spelled on the wire and in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::TicketRequired => "ticket_required",
            Self::TicketInvalid => "ticket_invalid",
            Self::TicketExpired => "ticket_expired",
            Self::TicketSubject => "ticket_subject",
            Self::TicketDevice => "ticket_device",
            Self::Owner => "owner",
            Self::NotFound => "not_found",
            Self::KeyReused => "key_reused",
            Self::NonceReplayed => "nonce_replayed",
            Self::Reach => "reach",
            Self::LatencyBudget => "latency_budget",
            Self::Lanes => "lanes",
            Self::Lambda => "lambda",
            Self::Bandwidth => "bandwidth",
            Self::Device => "device",
            Self::Pqc => "pqc",
            Self::PoolLanes => "pool_lanes",
            Self::PoolGbps => "pool_gbps",
            Self::PoolBytes => "pool_bytes",
            Self::PoolBandwidth => "pool_bandwidth",
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
        }
    }

    pub fn status(self) -> StatusCode {
        match self {
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::TicketRequired | Self::TicketInvalid | Self::TicketExpired => {
                StatusCode::UNAUTHORIZED
            }
            Self::TicketSubject | Self::TicketDevice | Self::Owner => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::KeyReused | Self::NonceReplayed => StatusCode::CONFLICT,
            Self::Reach
            | Self::LatencyBudget
            | Self::Lanes
            | Self::Lambda
            | Self::Bandwidth
            | Self::Device
            | Self::Pqc => StatusCode::UNPROCESSABLE_ENTITY,
            Self::PoolLanes | Self::PoolGbps | Self::PoolBytes | Self::PoolBandwidth => {
                StatusCode::INSUFFICIENT_STORAGE
            }
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unknown => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Whether the same request may succeed later without a change of it.
    pub fn may_pass(self) -> bool {
        matches!(self.status().as_u16(), 500..)
    }

    /// The reason with which an attestation failure is counted, if it is one.
    pub fn attestation_label(self) -> Option<&'static str> {
        Some(match self {
            Self::TicketRequired | Self::TicketInvalid => "signature",
            Self::TicketExpired => "expired",
            Self::TicketSubject => "tenant",
            Self::TicketDevice => "claim",
            Self::NonceReplayed => "nonce",
            Self::Pqc => "pqc",
            _ => return None,
        })
    }

    /// Every reason of the contract.
    pub const ALL: [Self; 22] = [
        Self::Malformed,
        Self::TicketRequired,
        Self::TicketInvalid,
        Self::TicketExpired,
        Self::TicketSubject,
        Self::TicketDevice,
        Self::Owner,
        Self::NotFound,
        Self::KeyReused,
        Self::NonceReplayed,
        Self::Reach,
        Self::LatencyBudget,
        Self::Lanes,
        Self::Lambda,
        Self::Bandwidth,
        Self::Device,
        Self::Pqc,
        Self::PoolLanes,
        Self::PoolGbps,
        Self::PoolBytes,
        Self::PoolBandwidth,
        Self::Unavailable,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_spelled_the_same_on_the_wire_and_in_metrics() {
        for reason in RefusalReason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
    }

    #[test]
    fn a_reason_of_a_newer_daemon_is_unknown_not_an_error() {
        let refusal: Refusal = serde_json::from_str(r#"{"reason":"gravity"}"#).unwrap();
        assert_eq!(refusal, Refusal::new(RefusalReason::Unknown, ""));
    }
}

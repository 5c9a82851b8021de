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

/// The reasons of the contract, each with its name on the wire and in metrics, and its one HTTP code.
macro_rules! reasons {
    ($($(#[$doc:meta])* $reason:ident = $name:literal, $status:ident;)+) => {
        /// Why a request was refused. Each has one HTTP code; the code alone tells what to do next.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum RefusalReason {
            $($(#[$doc])* $reason,)+
            /// A reason that this version does not know.
            #[default]
            #[serde(other)]
            Unknown,
        }

        impl RefusalReason {
            /// Every reason of the contract.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$reason),+];

            /// As it is spelled on the wire and in metrics.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$reason => $name,)+
                    Self::Unknown => "unknown",
                }
            }

            pub fn status(self) -> StatusCode {
                match self {
                    $(Self::$reason => StatusCode::$status,)+
                    Self::Unknown => StatusCode::INTERNAL_SERVER_ERROR,
                }
            }
        }
    };
}

reasons! {
    /// 400: not what the contract allows; no daemon would take it.
    Malformed = "malformed", BAD_REQUEST;
    /// 401: a ticket is needed and none was given.
    TicketRequired = "ticket_required", UNAUTHORIZED;
    /// 401: not a ticket of a trusted attestd, or changed on the way.
    TicketInvalid = "ticket_invalid", UNAUTHORIZED;
    /// 401: attest again.
    TicketExpired = "ticket_expired", UNAUTHORIZED;
    /// 403: issued for another custom resource.
    TicketSubject = "ticket_subject", FORBIDDEN;
    /// 403: issued for another device than the one asked for.
    TicketDevice = "ticket_device", FORBIDDEN;
    /// 403: the allocation belongs to another owner.
    Owner = "owner", FORBIDDEN;
    /// 404: no such allocation or device.
    NotFound = "not_found", NOT_FOUND;
    /// 409: this key was used for another wish.
    KeyReused = "key_reused", CONFLICT;
    /// 409: this nonce was used before.
    NonceReplayed = "nonce_replayed", CONFLICT;
    /// 422: the light does not get that far.
    Reach = "reach", UNPROCESSABLE_ENTITY;
    /// 422: the path is slower than the budget, whatever is free.
    LatencyBudget = "latency_budget", UNPROCESSABLE_ENTITY;
    /// 422: that many Gbps do not fit on these lanes, or the device has fewer lanes.
    Lanes = "lanes", UNPROCESSABLE_ENTITY;
    /// 422: the device cannot emit this wavelength.
    Lambda = "lambda", UNPROCESSABLE_ENTITY;
    /// 422: the tier cannot give that bandwidth to one bundle.
    Bandwidth = "bandwidth", UNPROCESSABLE_ENTITY;
    /// 422: the device is of another kind or unknown.
    Device = "device", UNPROCESSABLE_ENTITY;
    /// 422: post-quantum evidence was required, the device has none.
    Pqc = "pqc", UNPROCESSABLE_ENTITY;
    /// 507: not enough free lanes now.
    PoolLanes = "pool_lanes", INSUFFICIENT_STORAGE;
    /// 507: not enough free Gbps now.
    PoolGbps = "pool_gbps", INSUFFICIENT_STORAGE;
    /// 507: not enough free bytes in the tier now.
    PoolBytes = "pool_bytes", INSUFFICIENT_STORAGE;
    /// 507: not enough free GB/s in the tier now.
    PoolBandwidth = "pool_bandwidth", INSUFFICIENT_STORAGE;
    /// 503: try again.
    Unavailable = "unavailable", SERVICE_UNAVAILABLE;
}

impl RefusalReason {
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

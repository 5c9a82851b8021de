//! Conditions: their types, their reasons and the schema all kinds share.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::{Schema, SchemaGenerator, json_schema};

/// The object can serve Pods. Written by the controllers.
pub const READY: &str = "Ready";
/// The device behind the object has passed attestation. Written by the controllers.
pub const ATTESTED: &str = "Attested";
/// A change waits until the object is free. Written by the controllers.
pub const UPDATE_PENDING: &str = "UpdatePending";
/// Pods hold grants on the object. Written by the driver.
pub const IN_USE: &str = "InUse";
/// The object is being released and nothing is bound or in flight any more.
/// Written by the driver.
pub const DRAINED: &str = "Drained";
/// More is granted than the object can serve now. Written by the driver.
pub const OVERSUBSCRIBED: &str = "Oversubscribed";

/// What the controllers write; the others are the driver's.
pub const OF_CONTROLLERS: [&str; 3] = [READY, ATTESTED, UPDATE_PENDING];

/// Reasons of `Ready=False`.
pub mod not_ready {
    pub const BACKEND_NOT_CONFIGURED: &str = "BackendNotConfigured";
    pub const ALLOCATING: &str = "Allocating";
    pub const BELOW_FLOOR: &str = "BelowFloor";
    pub const LATENCY_OVER_BUDGET: &str = "LatencyOverBudget";
    pub const BER_ABOVE_TARGET: &str = "BerAboveTarget";
    pub const ATTESTATION_FAILED: &str = "AttestationFailed";
    pub const BACKEND_UNREACHABLE: &str = "BackendUnreachable";
    pub const ALLOCATION_REFUSED: &str = "AllocationRefused";
    pub const RELEASING: &str = "Releasing";
}

/// The condition of this type, if it has been written.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of this type is `True`. Absent is not true.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == "True")
}

/// The standard Kubernetes condition list, bounded, and keyed by `type` so
/// that two field managers can each own their own entries.
pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": {
                    "description": "What the condition is about, e.g. Ready.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 316,
                    "pattern": "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
                },
                "status": {
                    "description": "True, False or Unknown.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "reason": {
                    "description": "One word, for programs, that says why.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "message": {
                    "description": "One sentence, for people, that says why. May be empty.",
                    "type": "string",
                    "maxLength": 32768,
                },
                "lastTransitionTime": {
                    "description": "When the status last changed.",
                    "type": "string",
                    "format": "date-time",
                    "maxLength": 64,
                },
                "observedGeneration": {
                    "description": "The metadata.generation on which the condition is based.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "maximum": crate::schema::COUNT_MAX,
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;

    fn condition(type_: &str, status: &str) -> Condition {
        Condition {
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
            message: String::new(),
            observed_generation: None,
            reason: "Test".into(),
            status: status.into(),
            type_: type_.into(),
        }
    }

    #[test]
    fn only_true_is_true() {
        let conditions = [condition(READY, "True"), condition(ATTESTED, "Unknown")];
        assert!(is_true(&conditions, READY));
        assert!(!is_true(&conditions, ATTESTED));
        assert!(!is_true(&conditions, IN_USE));
    }
}

//! Every annotation key we read or write.

/// What all of them begin with.
pub const DOMAIN: &str = "corridoros.io/";

// What users set on a Pod.

/// `<namespace>/<name>` of the Corridor that the Pod needs.
pub const CORRIDOR_REF: &str = "corridoros.io/corridorRef";
/// `<namespace>/<name>` of the MemoryBundle that the Pod needs.
pub const MEMORY_BUNDLE_REF: &str = "corridoros.io/memoryBundleRef";
/// Gbps of the Corridor to reserve for the Pod.
pub const CORRIDOR_GBPS: &str = "corridoros.io/corridorGbps";
/// GB/s of the MemoryBundle to reserve for the Pod.
pub const MEMORY_BUNDLE_GBS: &str = "corridoros.io/memoryBundleGBs";
/// `Queue` or `FailFast`; overrides the profile's policy.
pub const FAILURE_POLICY: &str = "corridoros.io/failurePolicy";
/// RFC 3339 time at which the Pod is expected to end.
pub const EXPECTED_END: &str = "corridoros.io/expectedEnd";

// What the Binding writes on a Pod.

/// The corrd id that the Pod was granted.
pub const CORRIDOR_ID: &str = "corridoros.io/corridorId";
/// The memqosd handle that the Pod was granted.
pub const FFM_HANDLE: &str = "corridoros.io/ffmHandle";
/// Hex SHA-256 of the ticket; with two tickets `<corridor's>,<bundle's>`.
pub const ATTESTATION_TICKET_HASH: &str = "corridoros.io/attestationTicketHash";
/// Compact JSON of what was granted: the ledger is the sum of these.
pub const GRANT: &str = "corridoros.io/grant";
/// `<holderIdentity>/<leaseTransitions>` of the replica that decided.
pub const LEADER: &str = "corridoros.io/leader";

// What is set on our own objects.

/// The intent to allocate, written before a daemon is asked, so that the same request is sent again after a crash.
pub const ALLOCATION_INTENT: &str = "corridoros.io/allocationIntent";
/// The attestation ticket of a Corridor or MemoryBundle.
pub const ATTESTATION_TICKET: &str = "corridoros.io/attestationTicket";
/// `"true"` releases an object that is still in use.
pub const FORCE_RELEASE: &str = "corridoros.io/force-release";
/// `"true"`, with the right `override`, lets an administrator past the
/// admission policies.
pub const OVERRIDE: &str = "corridoros.io/override";

/// What users may set on a Pod.
pub const OF_PODS: [&str; 6] = [
    CORRIDOR_REF,
    CORRIDOR_GBPS,
    MEMORY_BUNDLE_REF,
    MEMORY_BUNDLE_GBS,
    FAILURE_POLICY,
    EXPECTED_END,
];

/// Every result annotation: only the scheduler may write these.
pub const RESULTS: [&str; 5] = [CORRIDOR_ID, FFM_HANDLE, ATTESTATION_TICKET_HASH, GRANT, LEADER];

/// What only the controllers may write on our own objects.
pub const KEPT_BY_CONTROLLERS: [&str; 2] = [ALLOCATION_INTENT, ATTESTATION_TICKET];

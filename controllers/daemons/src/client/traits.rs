//! The calls of the contract.

use std::time::Duration;

use futures::FutureExt;
use http::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::exchange::{Call, Endpoint};
use crate::allocation::{AllocationTypes, Allocator};
use crate::attestd::{Attestd, Device, DeviceList, Verified, VerifyRequest};
use crate::corrd::{
    Corrd, Corridor, CorridorChange, CorridorList, Lease, RecalibrationRequest, RecalibrationResult,
};
use crate::error::{DaemonError, Reply};
use crate::identity::{IDEMPOTENCY_HEADER, IdempotencyKey, OWNER_HEADER, Owner};
use crate::limits::WAIT_SECONDS_MAX;
use crate::memqosd::{
    BandwidthChange, Bundle, BundleList, LatencyClassChange, LatencyClassChanged, Memqosd,
};
use crate::refusal::RefusalReason;
use crate::telemetry::{Released, Revision, TelemetryPage};

/// Where the calls about an allocation go, and what an error calls them.
struct Calls {
    collection: &'static str,
    allocate: (&'static str, &'static str),
    get: &'static str,
    list: &'static str,
    release: &'static str,
    renew: &'static str,
    read: &'static str,
    /// With its kind in `/v1/telemetry?only=`.
    read_all: (&'static str, &'static str),
}

impl Calls {
    fn of_one(&self, id: &str, rest: &str) -> String {
        format!("{}/{}{rest}", self.collection, escaped(id))
    }
}

const CORRIDORS: Calls = Calls {
    collection: "/v1/corridors",
    allocate: ("allocate corridor", "/v1/corridors"),
    get: "get corridor",
    list: "list corridors",
    release: "release corridor",
    renew: "renew corridor lease",
    read: "read corridor",
    read_all: ("read corridors", "corridors"),
};

const BUNDLES: Calls = Calls {
    collection: "/v1/ffm",
    allocate: ("allocate bundle", "/v1/ffm/alloc"),
    get: "get bundle",
    list: "list bundles",
    release: "release bundle",
    renew: "renew bundle lease",
    read: "read bundle",
    read_all: ("read bundles", "bundles"),
};

/// An allocation that is spoken about over HTTP.
trait Routed: AllocationTypes<Request: Serialize, Sample: DeserializeOwned> + DeserializeOwned {
    const CALLS: Calls;
    type List: DeserializeOwned;
    fn listed(list: Self::List) -> Vec<Self>;
}

impl Routed for Corridor {
    const CALLS: Calls = CORRIDORS;
    type List = CorridorList;

    fn listed(list: CorridorList) -> Vec<Self> {
        list.corridors
    }
}

impl Routed for Bundle {
    const CALLS: Calls = BUNDLES;
    type List = BundleList;

    fn listed(list: BundleList) -> Vec<Self> {
        list.bundles
    }
}

impl<A: Routed> Allocator<A> for Endpoint {
    fn allocate<'a>(&'a self, key: &'a IdempotencyKey, ask: &'a A::Request) -> Reply<'a, A> {
        let (action, target) = A::CALLS.allocate;
        let call = Call::new(action, Method::POST, target.to_owned())
            .header(IDEMPOTENCY_HEADER, key)
            .body(ask)
            .repeatable();
        self.value(call)
    }

    fn get<'a>(&'a self, id: &'a str) -> Reply<'a, Option<A>> {
        self.value_if_any(Call::new(A::CALLS.get, Method::GET, A::CALLS.of_one(id, "")))
    }

    fn list<'a>(&'a self, owner_prefix: &'a str) -> Reply<'a, Vec<A>> {
        let target = format!("{}?owner_prefix={}", A::CALLS.collection, escaped(owner_prefix));
        let call = Call::new(A::CALLS.list, Method::GET, target);
        async move { Ok(A::listed(self.send(call).await?.decode()?)) }.boxed()
    }

    fn release<'a>(&'a self, id: &'a str, owner: &'a Owner) -> Reply<'a, Released> {
        let call = Call::new(A::CALLS.release, Method::DELETE, A::CALLS.of_one(id, ""));
        self.released(call, owner)
    }

    fn renew_lease<'a>(&'a self, id: &'a str, owner: &'a Owner) -> Reply<'a, Lease> {
        let call = Call::new(A::CALLS.renew, Method::POST, A::CALLS.of_one(id, "/lease"));
        self.value(call.header(OWNER_HEADER, owner).repeatable())
    }

    fn telemetry<'a>(&'a self, id: &'a str) -> Reply<'a, Option<A::Sample>> {
        let target = A::CALLS.of_one(id, "/telemetry");
        self.value_if_any(Call::new(A::CALLS.read, Method::GET, target))
    }

    fn telemetry_since<'a>(
        &'a self,
        since: Option<&'a Revision>,
        wait: Duration,
    ) -> Reply<'a, TelemetryPage> {
        let (action, only) = A::CALLS.read_all;
        let wait = wait.min(Duration::from_secs(WAIT_SECONDS_MAX));
        // One address may serve both daemons, of which only one is read here.
        let mut target = format!("/v1/telemetry?only={only}&wait={}s", wait.as_secs_f64());
        if let Some(since) = since {
            target = format!("{target}&since={}", escaped(&since.0));
        }
        self.value(Call::new(action, Method::GET, target).hold(wait))
    }
}

impl Corrd for Endpoint {
    fn update<'a>(
        &'a self,
        id: &'a str,
        owner: &'a Owner,
        change: &'a CorridorChange,
    ) -> Reply<'a, Corridor> {
        let call = Call::new("update corridor", Method::PATCH, CORRIDORS.of_one(id, ""));
        self.value(call.header(OWNER_HEADER, owner).body(change))
    }

    fn recalibrate<'a>(
        &'a self,
        id: &'a str,
        owner: &'a Owner,
        ask: &'a RecalibrationRequest,
    ) -> Reply<'a, RecalibrationResult> {
        let target = CORRIDORS.of_one(id, "/recalibrate");
        let call = Call::new("recalibrate corridor", Method::POST, target);
        self.value(call.header(OWNER_HEADER, owner).body(ask))
    }
}

impl Memqosd for Endpoint {
    fn set_bandwidth<'a>(
        &'a self,
        handle: &'a str,
        owner: &'a Owner,
        change: &'a BandwidthChange,
    ) -> Reply<'a, Bundle> {
        let target = BUNDLES.of_one(handle, "/bandwidth");
        let call = Call::new("set bundle bandwidth", Method::PATCH, target);
        self.value(call.header(OWNER_HEADER, owner).body(change))
    }

    fn set_latency_class<'a>(
        &'a self,
        handle: &'a str,
        owner: &'a Owner,
        change: &'a LatencyClassChange,
    ) -> Reply<'a, LatencyClassChanged> {
        let target = BUNDLES.of_one(handle, "/latency_class");
        let call = Call::new("set bundle latency class", Method::PATCH, target);
        self.value(call.header(OWNER_HEADER, owner).body(change))
    }
}

impl Attestd for Endpoint {
    fn devices(&self) -> Reply<'_, Vec<Device>> {
        let call = Call::new("list devices", Method::GET, "/v1/devices".to_owned());
        async move { Ok(self.send(call).await?.decode::<DeviceList>()?.devices) }.boxed()
    }

    fn verify<'a>(&'a self, ask: &'a VerifyRequest) -> Reply<'a, Verified> {
        let call = Call::new("attest device", Method::POST, "/v1/attest/verify".to_owned());
        self.value(call.body(ask))
    }
}

impl Endpoint {
    /// For calls that more than one daemon knows.
    pub fn as_corrd(&self) -> &dyn Corrd {
        self
    }

    pub fn as_memqosd(&self) -> &dyn Memqosd {
        self
    }

    fn value<T: DeserializeOwned>(&self, call: Call) -> Reply<'_, T> {
        async move { self.send(call).await?.decode() }.boxed()
    }

    fn value_if_any<T: DeserializeOwned>(&self, call: Call) -> Reply<'_, Option<T>> {
        async move {
            match self.send(call).await {
                Ok(answer) => answer.decode().map(Some),
                Err(error) if error.refusal() == Some(RefusalReason::NotFound) => Ok(None),
                Err(error) => Err(error),
            }
        }
        .boxed()
    }

    fn released<'a>(&'a self, call: Call, owner: &'a Owner) -> Reply<'a, Released> {
        async move {
            let action = call.action;
            match self.send(call.header(OWNER_HEADER, owner)).await {
                Ok(answer) if answer.status == StatusCode::NO_CONTENT => Ok(Released::Gone),
                // A page of a proxy must not pass for a release.
                Ok(answer) => {
                    let why = format!("status {} instead of 204", answer.status);
                    Err(DaemonError::Decode { action, why })
                }
                Err(error) => match error.refusal() {
                    Some(RefusalReason::Owner) => Ok(Released::NotOurs),
                    _ => Err(error),
                },
            }
        }
        .boxed()
    }
}

/// Ids come from daemons and from objects that people edit: none may leave its place in the path.
fn escaped(text: &str) -> String {
    use std::fmt::Write;
    text.bytes().fold(String::with_capacity(text.len()), |mut escaped, byte| {
        // Dots too: a segment `..` would be folded away. Writing to a String cannot fail.
        let _ = if byte.is_ascii_alphanumeric() || b"-_".contains(&byte) {
            escaped.write_char(byte.into())
        } else {
            write!(escaped, "%{byte:02X}")
        };
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_leave_its_place_in_the_path() {
        assert_eq!(CORRIDORS.of_one("cor-1", "/lease"), "/v1/corridors/cor-1/lease");
        assert_eq!(CORRIDORS.of_one("../x?y#z", ""), "/v1/corridors/%2E%2E%2Fx%3Fy%23z");
        assert_eq!(CORRIDORS.of_one("a\r\nHost: b", ""), "/v1/corridors/a%0D%0AHost%3A%20b");
    }
}

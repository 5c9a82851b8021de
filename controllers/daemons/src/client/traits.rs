//! The calls of the contract.

use std::time::Duration;

use futures::FutureExt;
use http::{Method, StatusCode};
use serde::de::DeserializeOwned;

use super::exchange::{Call, Endpoint};
use crate::attestd::{Attestd, Device, DeviceList, Verified, VerifyRequest};
use crate::corrd::{
    Corrd, Corridor, CorridorChange, CorridorList, CorridorRequest, CorridorTelemetry, Lease,
    RecalibrationRequest, RecalibrationResult,
};
use crate::error::{DaemonError, Reply};
use crate::identity::{IDEMPOTENCY_HEADER, IdempotencyKey, OWNER_HEADER, Owner};
use crate::limits::WAIT_SECONDS_MAX;
use crate::memqosd::{
    BandwidthChange, Bundle, BundleList, BundleRequest, BundleTelemetry, LatencyClassChange,
    LatencyClassChanged, Memqosd,
};
use crate::refusal::RefusalReason;
use crate::telemetry::{Released, Revision, TelemetryPage};

impl Corrd for Endpoint {
    fn allocate<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        ask: &'a CorridorRequest,
    ) -> Reply<'a, Corridor> {
        let call = Call::new("allocate corridor", Method::POST, "/v1/corridors".to_owned())
            .header(IDEMPOTENCY_HEADER, key)
            .body(ask)
            .repeatable();
        self.value(call)
    }

    fn get<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Corridor>> {
        self.value_if_any(Call::new("get corridor", Method::GET, corridor(id, "")))
    }

    fn list<'a>(&'a self, owner_prefix: &'a str) -> Reply<'a, Vec<Corridor>> {
        let target = format!("/v1/corridors?owner_prefix={}", escaped(owner_prefix));
        let call = Call::new("list corridors", Method::GET, target);
        async move { Ok(self.send(call).await?.decode::<CorridorList>()?.corridors) }.boxed()
    }

    fn release<'a>(&'a self, id: &'a str, owner: &'a Owner) -> Reply<'a, Released> {
        self.released(Call::new("release corridor", Method::DELETE, corridor(id, "")), owner)
    }

    fn renew_lease<'a>(&'a self, id: &'a str, owner: &'a Owner) -> Reply<'a, Lease> {
        let call = Call::new("renew corridor lease", Method::POST, corridor(id, "/lease"));
        self.value(call.header(OWNER_HEADER, owner).repeatable())
    }

    fn update<'a>(
        &'a self,
        id: &'a str,
        owner: &'a Owner,
        change: &'a CorridorChange,
    ) -> Reply<'a, Corridor> {
        let call = Call::new("update corridor", Method::PATCH, corridor(id, ""));
        self.value(call.header(OWNER_HEADER, owner).body(change))
    }

    fn recalibrate<'a>(
        &'a self,
        id: &'a str,
        owner: &'a Owner,
        ask: &'a RecalibrationRequest,
    ) -> Reply<'a, RecalibrationResult> {
        let call = Call::new("recalibrate corridor", Method::POST, corridor(id, "/recalibrate"));
        self.value(call.header(OWNER_HEADER, owner).body(ask))
    }

    fn telemetry<'a>(&'a self, id: &'a str) -> Reply<'a, Option<CorridorTelemetry>> {
        self.value_if_any(Call::new("read corridor", Method::GET, corridor(id, "/telemetry")))
    }

    fn telemetry_since<'a>(
        &'a self,
        since: Option<&'a Revision>,
        wait: Duration,
    ) -> Reply<'a, TelemetryPage> {
        self.page("read corridors", "corridors", since, wait)
    }
}

impl Memqosd for Endpoint {
    fn allocate<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        ask: &'a BundleRequest,
    ) -> Reply<'a, Bundle> {
        let call = Call::new("allocate bundle", Method::POST, "/v1/ffm/alloc".to_owned())
            .header(IDEMPOTENCY_HEADER, key)
            .body(ask)
            .repeatable();
        self.value(call)
    }

    fn get<'a>(&'a self, handle: &'a str) -> Reply<'a, Option<Bundle>> {
        self.value_if_any(Call::new("get bundle", Method::GET, bundle(handle, "")))
    }

    fn list<'a>(&'a self, owner_prefix: &'a str) -> Reply<'a, Vec<Bundle>> {
        let target = format!("/v1/ffm?owner_prefix={}", escaped(owner_prefix));
        let call = Call::new("list bundles", Method::GET, target);
        async move { Ok(self.send(call).await?.decode::<BundleList>()?.bundles) }.boxed()
    }

    fn release<'a>(&'a self, handle: &'a str, owner: &'a Owner) -> Reply<'a, Released> {
        self.released(Call::new("release bundle", Method::DELETE, bundle(handle, "")), owner)
    }

    fn renew_lease<'a>(&'a self, handle: &'a str, owner: &'a Owner) -> Reply<'a, Lease> {
        let call = Call::new("renew bundle lease", Method::POST, bundle(handle, "/lease"));
        self.value(call.header(OWNER_HEADER, owner).repeatable())
    }

    fn set_bandwidth<'a>(
        &'a self,
        handle: &'a str,
        owner: &'a Owner,
        change: &'a BandwidthChange,
    ) -> Reply<'a, Bundle> {
        let call = Call::new("set bundle bandwidth", Method::PATCH, bundle(handle, "/bandwidth"));
        self.value(call.header(OWNER_HEADER, owner).body(change))
    }

    fn set_latency_class<'a>(
        &'a self,
        handle: &'a str,
        owner: &'a Owner,
        change: &'a LatencyClassChange,
    ) -> Reply<'a, LatencyClassChanged> {
        let target = bundle(handle, "/latency_class");
        let call = Call::new("set bundle latency class", Method::PATCH, target);
        self.value(call.header(OWNER_HEADER, owner).body(change))
    }

    fn telemetry<'a>(&'a self, handle: &'a str) -> Reply<'a, Option<BundleTelemetry>> {
        self.value_if_any(Call::new("read bundle", Method::GET, bundle(handle, "/telemetry")))
    }

    fn telemetry_since<'a>(
        &'a self,
        since: Option<&'a Revision>,
        wait: Duration,
    ) -> Reply<'a, TelemetryPage> {
        self.page("read bundles", "bundles", since, wait)
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

    fn page<'a>(
        &'a self,
        action: &'static str,
        only: &'static str,
        since: Option<&'a Revision>,
        wait: Duration,
    ) -> Reply<'a, TelemetryPage> {
        let wait = wait.min(Duration::from_secs(WAIT_SECONDS_MAX));
        // One address may serve both daemons, of which only one is read here.
        let mut target = format!("/v1/telemetry?only={only}&wait={}s", wait.as_secs_f64());
        if let Some(since) = since {
            target = format!("{target}&since={}", escaped(&since.0));
        }
        self.value(Call::new(action, Method::GET, target).hold(wait))
    }
}

fn corridor(id: &str, rest: &str) -> String {
    format!("/v1/corridors/{}{rest}", escaped(id))
}

fn bundle(handle: &str, rest: &str) -> String {
    format!("/v1/ffm/{}{rest}", escaped(handle))
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
        assert_eq!(corridor("cor-1", "/lease"), "/v1/corridors/cor-1/lease");
        assert_eq!(corridor("../x?y#z", ""), "/v1/corridors/%2E%2E%2Fx%3Fy%23z");
        assert_eq!(corridor("a\r\nHost: b", ""), "/v1/corridors/a%0D%0AHost%3A%20b");
    }
}

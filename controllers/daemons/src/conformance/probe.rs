//! What the checks share: calls, typical wishes, and how a check says that something is wrong.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::{RunError, Target};
use crate::attestd::{Attestd, Device, DeviceKind, Verified, VerifyRequest, fresh_nonce};
use crate::client::{Call, Endpoint, Patience};
use crate::corrd::{Corridor, CorridorRequest, PathSpec};
use crate::error::DaemonError;
use crate::identity::{IDEMPOTENCY_HEADER, OWNER_HEADER, Owner};
use crate::memqosd::{Bundle, BundleRequest, BundleSpec, LatencyClass};
use crate::ticket::TrustedKeys;

/// Fast machines answer in milliseconds; slow ones must not look broken.
const PATIENCE: Patience =
    Patience { connect: Duration::from_secs(5), call: Duration::from_secs(10) };
/// Leases longer than this are not waited for.
pub(super) const LEASE_TTL_WAITED_S: u64 = 5;

/// Why a check does not count as kept.
#[derive(Debug)]
pub(super) enum Flaw {
    Broken(String),
    Skipped(String),
}

impl From<DaemonError> for Flaw {
    fn from(error: DaemonError) -> Self {
        Self::Broken(error.to_string())
    }
}

impl From<getrandom::Error> for Flaw {
    fn from(error: getrandom::Error) -> Self {
        Self::Skipped(format!("no random numbers: {error}"))
    }
}

/// Fails the check unless `holds`.
pub(super) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Flaw> {
    if holds { Ok(()) } else { Err(Flaw::Broken(otherwise())) }
}

/// An answer as it came.
#[derive(Debug)]
pub(super) struct Raw {
    pub status: u16,
    pub body: Value,
}

impl Raw {
    /// Fails unless it is a success with this code.
    pub(super) fn expect(self, status: u16) -> Result<Value, Flaw> {
        ensure(self.status == status, || format!("{status} expected, got {self:?}"))?;
        Ok(self.body)
    }

    /// Fails unless it is this refusal.
    pub(super) fn expect_refusal(&self, status: u16, reason: &str) -> Result<(), Flaw> {
        let same = self.status == status && self.body["reason"] == reason;
        ensure(same, || format!("{status} {reason} expected, got {self:?}"))
    }
}

/// A daemon under examination.
#[derive(Debug)]
pub(super) struct Probe {
    pub corrd: Endpoint,
    pub memqosd: Endpoint,
    pub attestd: Endpoint,
    pub trusted: TrustedKeys,
    pub has_admin: bool,
    /// The prefix of the owners of this run, so that no other allocations are touched.
    pub cluster: String,
    next_object: AtomicU32,
}

impl Probe {
    pub(super) async fn new(target: &Target) -> Result<Self, RunError> {
        let corrd = Endpoint::new(&target.corrd_url, PATIENCE)?;
        // An empty order is refused where there is an admin, unknown where there is none.
        let call = Call::new("look for /admin", Method::POST, "/admin/restart".to_owned());
        let answer = corrd.probe(&call.body(&json!({ "look": true }))).await;
        Ok(Self {
            corrd,
            memqosd: Endpoint::new(&target.memqosd_url, PATIENCE)?,
            attestd: Endpoint::new(&target.attestd_url, PATIENCE)?,
            trusted: TrustedKeys::read(&target.trusted_keys)?,
            has_admin: answer.is_ok_and(|(status, _)| status.as_u16() == 400),
            cluster: format!("conformance-{}", fresh_nonce()?),
            next_object: AtomicU32::new(1),
        })
    }

    /// A new owner.
    pub(super) fn owner(&self) -> Result<Owner, Flaw> {
        let number = self.next_object.fetch_add(1, Ordering::Relaxed);
        // Of one length, as UIDs are: none is the beginning of another.
        Owner::new(self.cluster.clone(), format!("object-{number:06}"))
            .map_err(|error| Flaw::Broken(error.to_string()))
    }

    /// A path that every photonic device should be able to give.
    pub(super) fn corridor_wish(&self) -> Result<CorridorRequest, Flaw> {
        let path = PathSpec {
            lanes: 2,
            lambda_nm: vec![1550, 1551],
            min_gbps: 100,
            latency_budget_ns: Some(1000),
            reach_mm: Some(75),
            ..PathSpec::default()
        };
        Ok(CorridorRequest { owner: self.owner()?, path, ticket: None })
    }

    /// A bundle that every memory device should be able to give.
    pub(super) fn bundle_wish(&self) -> Result<BundleRequest, Flaw> {
        let memory = BundleSpec {
            bytes: 1 << 30,
            latency_class: LatencyClass::T1,
            floor_gbs: 10,
            ..BundleSpec::default()
        };
        Ok(BundleRequest { owner: self.owner()?, memory, ticket: None })
    }

    pub(super) async fn corridor(&self) -> Result<Corridor, Flaw> {
        let wish = self.corridor_wish()?;
        Ok(self.corrd.as_corrd().allocate(&wish.key(), &wish).await?)
    }

    pub(super) async fn bundle(&self) -> Result<Bundle, Flaw> {
        let wish = self.bundle_wish()?;
        Ok(self.memqosd.as_memqosd().allocate(&wish.key(), &wish).await?)
    }

    /// `POST /v1/corridors` as it comes back.
    pub(super) async fn post_corridor(&self, wish: &CorridorRequest) -> Result<Raw, Flaw> {
        self.post_keyed(&self.corrd, "/v1/corridors", &wish.key().to_string(), &json!(wish)).await
    }

    /// `POST /v1/ffm/alloc` as it comes back.
    pub(super) async fn post_bundle(&self, wish: &BundleRequest) -> Result<Raw, Flaw> {
        self.post_keyed(&self.memqosd, "/v1/ffm/alloc", &wish.key().to_string(), &json!(wish)).await
    }

    pub(super) async fn post_keyed(
        &self,
        daemon: &Endpoint,
        target: &str,
        key: &str,
        body: &Value,
    ) -> Result<Raw, Flaw> {
        self.raw(daemon, Method::POST, target, &[(IDEMPOTENCY_HEADER, key)], Some(body)).await
    }

    /// A call in the name of `owner`.
    pub(super) async fn owned(
        &self,
        daemon: &Endpoint,
        method: Method,
        target: &str,
        owner: &Owner,
        body: Option<&Value>,
    ) -> Result<Raw, Flaw> {
        let owner = owner.to_string();
        self.raw(daemon, method, target, &[(OWNER_HEADER, owner.as_str())], body).await
    }

    pub(super) async fn raw(
        &self,
        daemon: &Endpoint,
        method: Method,
        target: &str,
        headers: &[(&'static str, &str)],
        body: Option<&Value>,
    ) -> Result<Raw, Flaw> {
        let mut call = Call::new("check", method, target.to_owned());
        for (name, value) in headers {
            call = call.header(name, value);
        }
        if let Some(body) = body {
            call = match body {
                // Text is sent as it is: a way to send what is no JSON.
                Value::String(text) => Call { body: text.clone().into_bytes(), ..call },
                body => call.body(body),
            };
        }
        let (status, body) = daemon.probe(&call).await?;
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Ok(Raw { status: status.as_u16(), body })
    }

    /// A call to `/admin`; skips the check where there is none.
    pub(super) async fn admin(
        &self,
        method: Method,
        target: &str,
        body: Value,
    ) -> Result<(), Flaw> {
        if !self.has_admin {
            return Err(Flaw::Skipped("the daemon has no /admin".to_owned()));
        }
        let raw = self.raw(&self.corrd, method, target, &[], Some(&body)).await?;
        ensure((200..300).contains(&raw.status), || format!("{target}: {raw:?}"))
    }

    /// The first device of a kind, with post-quantum signatures or without.
    pub(super) async fn device(&self, kind: DeviceKind, pqc: bool) -> Result<Device, Flaw> {
        let devices = self.attestd.devices().await?;
        devices
            .into_iter()
            .find(|device| device.kind == kind && device.pqc == pqc)
            .ok_or_else(|| Flaw::Skipped(format!("there is no {kind:?} device with pqc = {pqc}")))
    }

    pub(super) async fn attest(
        &self,
        device: &Device,
        owner: &Owner,
        pqc: bool,
    ) -> Result<Verified, Flaw> {
        Ok(self.attestd.verify(&question(device, owner, pqc)?).await?)
    }

    /// Gives back everything of this run. What cannot be given back is left to its lease.
    pub(super) async fn clean_up(&self) {
        let prefix = Owner::cluster_prefix(&self.cluster);
        if self.has_admin {
            let call = Call::new("forget faults", Method::DELETE, "/admin/faults".to_owned());
            let _ = self.corrd.probe(&call).await;
        }
        for corridor in self.corrd.as_corrd().list(&prefix).await.unwrap_or_default() {
            let _ = self.corrd.as_corrd().release(&corridor.corridor_id, &corridor.owner).await;
        }
        for bundle in self.memqosd.as_memqosd().list(&prefix).await.unwrap_or_default() {
            let _ = self.memqosd.as_memqosd().release(&bundle.ffm_handle, &bundle.owner).await;
        }
    }
}

/// What is asked of attestd before a device is used.
pub(super) fn question(device: &Device, owner: &Owner, pqc: bool) -> Result<VerifyRequest, Flaw> {
    Ok(VerifyRequest {
        device_id: device.device_id.clone(),
        nonce: fresh_nonce()?,
        subject: owner.object_uid().to_owned(),
        tenant: "team-a".to_owned(),
        pqc,
    })
}

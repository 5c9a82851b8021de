//! Pure: what attestation is required, which device can meet it, and whether a ticket does.

mod inventory;

use std::collections::BTreeMap;
use std::sync::Arc;

use crds::AttestationPolicy;
use daemons::attestd::{Device, DeviceKind};
use daemons::firmware_at_least;
use daemons::ticket::{self, TicketExpectation, TicketFault, TrustedKeys};
use jiff::{SignedDuration, Timestamp};

pub(crate) use self::inventory::DeviceInventory;

/// The sum of what an object and the policies of its namespace ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requirement {
    labels: BTreeMap<String, String>,
    claims: BTreeMap<String, String>,
    /// The newest of all oldest acceptable versions.
    min_firmware: Option<String>,
    pub pqc: bool,
    /// Two policies that no device can meet together.
    conflict: Option<String>,
}

impl Requirement {
    /// `None`: neither the object nor a policy asks for attestation.
    pub fn of(is_demanded: bool, policies: &[Arc<AttestationPolicy>]) -> Option<Self> {
        let mut all = Self::default();
        let mut is_required = is_demanded;
        let about_devices = policies.iter().filter(|it| it.spec.constrains_devices());
        for policy in about_devices {
            let spec = &policy.spec;
            let labels = spec.device_selectors.iter().flat_map(|it| &it.match_labels);
            all.pqc |= spec.pqc_required;
            if let Some(least) = &spec.min_firmware_version {
                let known = all.min_firmware.get_or_insert_with(|| least.clone());
                if firmware_at_least(least, known) {
                    known.clone_from(least);
                }
            }
            for (name, value) in labels {
                add(&mut all.labels, &mut all.conflict, "device label", name, value);
            }
            for (name, value) in &spec.required_claims {
                add(&mut all.claims, &mut all.conflict, "claim", name, value);
            }
        }
        is_required |= all != Self::default();
        is_required.then_some(all)
    }

    /// Whether a device of the right kind qualifies, or why not.
    fn admits(&self, device: &Device) -> Result<(), Unfit> {
        let unmet = |wanted: &BTreeMap<String, String>, have: &BTreeMap<String, String>| {
            let (name, value) =
                wanted.iter().find(|(name, value)| have.get(*name) != Some(value))?;
            let found = have.get(name).map_or("absent".to_owned(), |it| format!("{it:?}"));
            Some(format!("{name:?} is {found}, must be {value:?}"))
        };
        let unfit = |label, why: String| Err(Unfit { label, why });
        if let Some(why) = unmet(&self.labels, &device.labels) {
            return unfit("label", format!("label {why}"));
        }
        if let Some(why) = unmet(&self.claims, &device.claims) {
            return unfit("claim", format!("claim {why}"));
        }
        let newest = self.min_firmware.as_ref();
        if let Some(least) = newest.filter(|it| !firmware_at_least(&device.firmware, it)) {
            return unfit(
                "firmware",
                format!("firmware {:?} is older than {least:?}", device.firmware),
            );
        }
        if self.pqc && !device.pqc {
            return unfit("pqc", "it cannot sign post-quantum".to_owned());
        }
        Ok(())
    }
}

/// What a device lacks, with the label of `attestation_fail_total`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unfit {
    label: &'static str,
    why: String,
}

fn add(
    all: &mut BTreeMap<String, String>,
    conflict: &mut Option<String>,
    what: &str,
    name: &str,
    value: &str,
) {
    let known = all.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    if known != value {
        *conflict = Some(format!(
            "the policies contradict each other: {what} {name:?} must be {known:?} and {value:?}"
        ));
    }
}

/// The object that a ticket is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder<'a> {
    pub uid: &'a str,
    pub namespace: &'a str,
    pub kind: DeviceKind,
    /// The device that must not change, because Pods use it.
    pub pinned_device: Option<&'a str>,
    /// Devices to be preferred, the current one first.
    pub preferred_devices: &'a [&'a str],
    pub ticket: Option<&'a str>,
}

/// Whether an object may be allocated and changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    NotRequired,
    /// `renew_at`: attest again from then on, before it expires.
    Good {
        device: String,
        expires_at: Timestamp,
        renew_at: Timestamp,
    },
    /// attestd has to be asked. `fault`: there was a ticket, and this is wrong with it.
    Ask {
        device: String,
        fault: Option<TicketFault>,
    },
    /// No device qualifies.
    Denied {
        /// What each lacks; without a device, what all of them do.
        failures: Vec<DeviceFailure>,
        /// The policies of the object's own namespace refuse; else there is no device to look at.
        by_policy: bool,
        message: String,
    },
    /// Nothing is known about the devices.
    Unknown {
        message: String,
    },
}

/// A device that does not qualify, with the reason of `attestation_fail_total`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeviceFailure {
    /// Empty: there is none to name.
    pub device: String,
    pub reason: &'static str,
}

impl DeviceFailure {
    fn of_all() -> Vec<Self> {
        vec![Self { device: String::new(), reason: "claim" }]
    }
}

/// Devices of one object whose failures are counted one by one.
const FAILURES_MAX: usize = 64;

impl Trust {
    /// What has failed, to be counted.
    pub fn failures(&self) -> Vec<DeviceFailure> {
        match self {
            Self::Denied { failures, .. } => failures.clone(),
            Self::Ask { device, fault: Some(fault) } => {
                vec![DeviceFailure { device: device.clone(), reason: fault.reason() }]
            }
            _ => Vec::new(),
        }
    }

    /// Whether allocations and updates may go ahead.
    pub fn allows(&self) -> bool {
        matches!(self, Self::NotRequired | Self::Good { .. })
    }

    pub fn expires_at(&self) -> Option<Timestamp> {
        match self {
            Self::Good { expires_at, .. } => Some(*expires_at),
            _ => None,
        }
    }

    pub fn device(&self) -> Option<&str> {
        match self {
            Self::Good { device, .. } | Self::Ask { device, .. } => Some(device),
            _ => None,
        }
    }
}

/// A ticket whose signature was verified. Verifying costs more than the rest of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownTicket {
    ticket: String,
    device: String,
    requirement: Requirement,
    issued_at: Timestamp,
    expires_at: Timestamp,
}

impl KnownTicket {
    fn is(&self, ticket: &str, device: &str, requirement: &Requirement, now: Timestamp) -> bool {
        self.ticket == ticket
            && self.device == device
            && self.requirement == *requirement
            && now < self.expires_at
    }
}

pub(crate) fn judge(
    requirement: Option<&Requirement>,
    inventory: &Result<Vec<Device>, String>,
    keys: &TrustedKeys,
    holder: Holder<'_>,
    known: &mut Option<KnownTicket>,
    now: Timestamp,
) -> Trust {
    let Some(requirement) = requirement else { return Trust::NotRequired };
    if let Some(message) = requirement.conflict.clone() {
        return Trust::Denied { failures: DeviceFailure::of_all(), by_policy: true, message };
    }
    let device = match inventory {
        Ok(devices) => match choose(requirement, devices, holder) {
            Ok(device) => device,
            Err(denied) => return denied,
        },
        // A valid ticket counts while attestd is unreachable.
        Err(why) => match holder.preferred_devices.first() {
            Some(device) if holder.ticket.is_some() => (*device).to_owned(),
            _ => return Trust::Unknown { message: format!("no attestation: {why}") },
        },
    };
    let Some(ticket) = holder.ticket else { return Trust::Ask { device, fault: None } };
    let good = known.as_ref().filter(|it| it.is(ticket, &device, requirement, now));
    let times = match good {
        Some(good) => Ok((good.issued_at, good.expires_at)),
        None => verify(requirement, keys, holder, &device, ticket, None, now),
    };
    match times {
        Ok((issued_at, expires_at)) => {
            if good.is_none() {
                *known = Some(KnownTicket {
                    ticket: ticket.to_owned(),
                    device: device.clone(),
                    requirement: requirement.clone(),
                    issued_at,
                    expires_at,
                });
            }
            let renew_at = renewal(issued_at, expires_at);
            Trust::Good { device, expires_at, renew_at }
        }
        Err(fault) => {
            *known = None;
            Trust::Ask { device, fault: Some(fault) }
        }
    }
}

/// When the ticket was issued and when it expires.
pub(crate) fn verify(
    requirement: &Requirement,
    keys: &TrustedKeys,
    holder: Holder<'_>,
    device: &str,
    ticket: &str,
    nonce: Option<&str>,
    now: Timestamp,
) -> Result<(Timestamp, Timestamp), TicketFault> {
    let expected = TicketExpectation {
        now,
        subject: holder.uid,
        device_id: device,
        tenant: holder.namespace,
        nonce,
        pqc_required: requirement.pqc,
        min_firmware: requirement.min_firmware.as_deref(),
        required_claims: &requirement.claims,
    };
    let claims = ticket::verify(ticket, keys, &expected)?;
    Ok((claims.issued_at, claims.expires_at))
}

/// At two thirds of its life, so that time for many attempts remains.
fn renewal(issued_at: Timestamp, expires_at: Timestamp) -> Timestamp {
    let life = expires_at.duration_since(issued_at);
    let rest = SignedDuration::from_secs(life.as_secs() / 3);
    expires_at.checked_sub(rest).unwrap_or(issued_at)
}

/// Devices that a message names with what they lack.
const DEVICES_NAMED_MAX: usize = 4;

fn choose(
    requirement: &Requirement,
    devices: &[Device],
    holder: Holder<'_>,
) -> Result<String, Trust> {
    let pinned = |device: &&Device| holder.pinned_device.is_none_or(|it| it == device.device_id);
    let of_kind: Vec<&Device> =
        devices.iter().filter(|it| it.kind == holder.kind).filter(pinned).collect();
    let judged =
        of_kind.iter().map(|device| (device.device_id.as_str(), requirement.admits(device)));
    let (mut fit, mut unfit) = (Vec::new(), Vec::new());
    for (device, verdict) in judged {
        match verdict {
            Ok(()) => fit.push(device),
            Err(why) => unfit.push((device, why)),
        }
    }
    if let Some(known) = holder.preferred_devices.iter().find(|device| fit.contains(*device)) {
        return Ok((*known).to_owned());
    }
    // The same object always gets the same device, and many objects spread over all.
    let spread: usize = holder.uid.bytes().map(usize::from).sum();
    match fit.len() {
        0 => Err(denied(holder, &unfit)),
        count => Ok(fit[spread % count].to_owned()),
    }
}

fn denied(holder: Holder<'_>, unfit: &[(&str, Unfit)]) -> Trust {
    if unfit.is_empty() {
        let kind = match holder.kind {
            DeviceKind::Photonic => "photonic",
            DeviceKind::Memory => "memory",
        };
        let message = match holder.pinned_device {
            Some(pinned) => format!("attestd no longer knows device {pinned:?}, which is in use"),
            None => format!("attestd knows no {kind} device"),
        };
        return Trust::Denied { failures: DeviceFailure::of_all(), by_policy: false, message };
    }
    let named = unfit.iter().take(DEVICES_NAMED_MAX);
    let named: Vec<String> = named.map(|(device, it)| format!("{device}: {}", it.why)).collect();
    let more = match unfit.len().saturating_sub(DEVICES_NAMED_MAX) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let message =
        format!("no device meets the policies of the namespace: {}{more}", named.join("; "));
    let failures = unfit
        .iter()
        .take(FAILURES_MAX)
        .map(|(device, it)| DeviceFailure { device: (*device).to_owned(), reason: it.label });
    Trust::Denied { failures: failures.collect(), by_policy: true, message }
}

#[cfg(test)]
mod tests;

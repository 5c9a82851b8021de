//! Which device carries an allocation, and whether its ticket is good.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use super::{Ledger, Plan, Terms, not_found};
use crate::attestd::{Device, DeviceKind};
use crate::identity::Owner;
use crate::refusal::{Refusal, RefusalReason};
use crate::simulated::records::Change;
use crate::ticket;

/// Body of `PUT /admin/devices/{id}`: what is absent stays.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(in crate::simulated) struct DeviceChange {
    pub labels: Option<BTreeMap<String, String>>,
    pub firmware: Option<String>,
    pub claims: Option<BTreeMap<String, String>>,
    pub pqc: Option<bool>,
}

impl Ledger {
    /// The device that was asked for, else the first of its kind.
    pub(super) fn device_for<'a>(
        &'a self,
        kind: DeviceKind,
        asked: Option<&str>,
    ) -> Result<&'a str, Refusal> {
        let mut candidates = self.devices.values().filter(|device| device.kind == kind);
        let found = match asked {
            Some(asked) => candidates.find(|device| device.device_id == asked),
            None => candidates.next(),
        };
        found.map(|device| device.device_id.as_str()).ok_or_else(|| {
            let asked = asked.unwrap_or("any");
            let message = format!("there is no {kind:?} device {asked:?}");
            Refusal::new(RefusalReason::Device, message)
        })
    }

    pub(in crate::simulated) fn plan_device_change(
        &self,
        id: &str,
        change: DeviceChange,
    ) -> Plan<Device> {
        let mut device = self.devices.get(id).ok_or_else(|| not_found("device", id))?.clone();
        let DeviceChange { labels, firmware, claims, pqc } = change;
        device.labels = labels.unwrap_or(device.labels);
        device.firmware = firmware.unwrap_or(device.firmware);
        device.claims = claims.unwrap_or(device.claims);
        device.pqc = pqc.unwrap_or(device.pqc);
        Ok((vec![Change::PutDevice(Box::new(device.clone()))], device))
    }
}

/// A ticket that is given must be good for this owner's object and this device.
pub(super) fn check_ticket(
    terms: &Terms,
    now: Timestamp,
    owner: &Owner,
    device: &str,
    ticket: Option<&str>,
) -> Result<(), Refusal> {
    let no = |reason, message: String| Err(Refusal::new(reason, message));
    let Some(ticket) = ticket else {
        if terms.tickets_required {
            return no(RefusalReason::TicketRequired, "a ticket is required".into());
        }
        return Ok(());
    };
    let claims = match ticket::authenticate(ticket, &terms.trusted) {
        Ok((claims, _)) => claims,
        Err(fault) => return no(RefusalReason::TicketInvalid, fault.to_string()),
    };
    if let Err(fault) = ticket::check_lifetime(&claims, now) {
        return no(RefusalReason::TicketExpired, fault.to_string());
    }
    if claims.subject != owner.object_uid() {
        let message = format!("the ticket is for the object {}", claims.subject);
        return no(RefusalReason::TicketSubject, message);
    }
    if claims.device_id != device {
        let message = format!("the ticket is for the device {}", claims.device_id);
        return no(RefusalReason::TicketDevice, message);
    }
    Ok(())
}

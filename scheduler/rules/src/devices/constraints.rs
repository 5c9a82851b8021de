//! Constraints between the devices of a claim.

use model::{Attribute, ClaimSpec, Constraint};

use super::ask::Ask;
use super::chosen::Chosen;
use super::node_pools::{NodeDevice, NodePools};

/// Whether the device may join what its claim has been given.
pub(super) fn allow(
    pools: &NodePools,
    chosen: &Chosen,
    claim: usize,
    spec: &ClaimSpec,
    ask: &Ask,
    device: &NodeDevice,
) -> bool {
    spec.constraints.iter().all(|constraint| {
        let (requests, attribute) = match constraint {
            Constraint::Match { requests, attribute }
            | Constraint::Distinct { requests, attribute } => (requests, attribute),
            Constraint::Unknown => return false,
        };
        let means = |ask: &Ask| requests.is_empty() || ask.is_named_in(requests);
        if !means(ask) {
            return true;
        }
        // Without a value, it can be neither the same nor another.
        let Some(value) = value(device, attribute) else { return false };
        let wants_equal = matches!(constraint, Constraint::Match { .. });
        let mut others = chosen.of_claim(claim).filter(|choice| means(choice.ask));
        others.all(|choice| {
            let other = &pools.devices[choice.position];
            (self::value(other, attribute) == Some(value)) == wants_equal
        })
    })
}

/// The value of an attribute by its full name `domain/id`. The driver may have left its own domain out.
fn value<'a>(device: &'a NodeDevice, attribute: &str) -> Option<&'a Attribute> {
    let attributes = &device.device.device_type.attributes;
    attributes.get(attribute).or_else(|| {
        let (domain, id) = attribute.split_once('/')?;
        if domain == device.id.driver.as_ref() { attributes.get(id) } else { None }
    })
}

//! What is written of a solution: `status.allocation` of a claim.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    AllocatedDevice, Allocation, ConfigSource, DeviceConfig, DevicePlace, Node, RawNodeTerm,
    RawRequirement, SelectedNodes,
};

use super::FatalDeviceError;
use super::ask::{Ask, ClaimAsk};
use super::chosen::Choice;
use super::node_pools::NodePools;
use super::search::Solution;

/// Names the shares of devices, each by an ID that no other share has.
pub fn name_shares(allocation: &mut Allocation, mut new_id: impl FnMut() -> Arc<str>) {
    for share_id in allocation.devices.iter_mut().filter_map(|it| it.share_id.as_mut()) {
        *share_id = new_id();
    }
}

pub(super) fn of_claim(
    pools: &NodePools,
    claim: &ClaimAsk,
    index: usize,
    solution: &Solution,
) -> Result<Allocation, FatalDeviceError> {
    let choices = solution.choices.iter().filter(|choice| choice.claim == index);
    let choices: Vec<&Choice> = choices.collect();
    let chosen = claim.requests.iter().zip(&solution.alternatives[index]);
    let asks: Vec<&Ask> = chosen.map(|(alternatives, chosen)| &alternatives[*chosen]).collect();
    Ok(Allocation {
        devices: choices.iter().map(|choice| device(pools, choice)).collect(),
        configs: configs(claim, &asks),
        nodes: nodes(pools, claim, &choices)?.map(Arc::new),
        allocated_at_unix_s: None,
    })
}

fn device(pools: &NodePools, choice: &Choice) -> AllocatedDevice {
    let chosen = &pools.devices[choice.position];
    let is_share = chosen.device.device_type.allow_multiple_allocations;
    AllocatedDevice {
        request: choice.ask.name.clone(),
        id: chosen.id.clone(),
        admin_access: choice.ask.has_admin_access,
        tolerations: choice.ask.request.tolerations.clone(),
        binding_conditions: chosen.device.binding_conditions.clone(),
        binding_failure_conditions: chosen.device.binding_failure_conditions.clone(),
        share_id: is_share.then(Arc::default),
        consumed_capacity: if is_share { choice.amounts.clone() } else { BTreeMap::new() },
    }
}

/// Those of classes, each once with all requests of the class, then those of the claim that mean what was chosen.
fn configs(claim: &ClaimAsk, asks: &[&Ask]) -> Vec<DeviceConfig> {
    let mut configs = Vec::new();
    let mut seen = BTreeSet::new();
    for ask in asks.iter().filter(|ask| seen.insert(&ask.class.name)) {
        let of_class = asks.iter().filter(|other| other.class.name == ask.class.name);
        let requests: Vec<_> = of_class.map(|other| other.name.clone()).collect();
        configs.extend(ask.class.configs.iter().map(|opaque| DeviceConfig {
            source: ConfigSource::FromClass,
            requests: requests.clone(),
            opaque: opaque.clone(),
        }));
    }
    let of_claim = claim.claim.spec.configs.iter();
    let meant = of_claim.filter(|config| {
        config.requests.is_empty() || asks.iter().any(|ask| ask.is_named_in(&config.requests))
    });
    configs.extend(meant.map(|config| DeviceConfig {
        source: ConfigSource::FromClaim,
        requests: config.requests.clone(),
        opaque: config.opaque.clone(),
    }));
    configs
}

/// From where all of the devices can be used. `None`: everywhere.
fn nodes(
    pools: &NodePools,
    claim: &ClaimAsk,
    choices: &[&Choice],
) -> Result<Option<SelectedNodes>, FatalDeviceError> {
    let mut merged = RawNodeTerm::default();
    for choice in choices {
        let chosen = &pools.devices[choice.position];
        let terms = match chosen.place() {
            _ if chosen.device.binds_to_node => return Ok(Some(only(pools.node))),
            DevicePlace::Node(_) => return Ok(Some(only(pools.node))),
            DevicePlace::Nodes(nodes) => nodes.terms.as_slice(),
            DevicePlace::AllNodes | DevicePlace::PerDevice => &[],
        };
        match terms {
            [] => {}
            [term] => {
                add_missing(&mut merged.fields, &term.fields);
                add_missing(&mut merged.expressions, &term.expressions);
            }
            _ => {
                let (claim, terms) = (claim.claim.key.clone(), terms.len());
                return Err(FatalDeviceError::SeveralTerms { claim, terms });
            }
        }
    }
    let is_everywhere = merged.fields.is_empty() && merged.expressions.is_empty();
    Ok((!is_everywhere).then(|| SelectedNodes::parse(vec![merged])))
}

fn only(node: &Node) -> SelectedNodes {
    let name = RawRequirement::new("metadata.name", "In", &[node.name.as_str()]);
    SelectedNodes::parse(vec![RawNodeTerm { expressions: Vec::new(), fields: vec![name] }])
}

fn add_missing(merged: &mut Vec<RawRequirement>, requirements: &[RawRequirement]) {
    let values = |it: &RawRequirement| it.values.iter().cloned().collect::<BTreeSet<_>>();
    for new in requirements {
        let is_same = |old: &RawRequirement| {
            old.key == new.key && old.operator == new.operator && values(old) == values(new)
        };
        if !merged.iter().any(is_same) {
            merged.push(new.clone());
        }
    }
}

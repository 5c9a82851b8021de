//! What a change behind devices means to Pods that wait.

use model::{Allocation, DevicePlace, NodeName, ResourceClaim, ResourceSlice};

use crate::devices::DevicePools;
use crate::plugins::ClaimToReserve;
use crate::volume_change::{ClaimInterest, ClaimScope};

/// What has changed behind devices.
#[derive(Clone, Copy, Debug)]
pub enum DeviceChange<'a> {
    /// A DeviceClass.
    Class,
    Slice {
        before: Option<&'a ResourceSlice>,
        after: Option<&'a ResourceSlice>,
    },
    Claim {
        before: Option<&'a ResourceClaim>,
        after: Option<&'a ResourceClaim>,
    },
    /// What a Pod takes that is being placed.
    Taken(&'a [ClaimToReserve]),
    /// What a placed Pod had taken is free again.
    Released(&'a [ClaimToReserve]),
}

impl DeviceChange<'_> {
    /// Whom it may concern, and where. To anybody else it means nothing.
    pub fn concerns(&self, pools: &DevicePools) -> Vec<(ClaimInterest, ClaimScope)> {
        let everywhere = |interest| (interest, ClaimScope::Everywhere);
        let freed =
            |allocation: &Allocation| (ClaimInterest::Devices, scope_of_devices(pools, allocation));
        match *self {
            Self::Class => vec![everywhere(ClaimInterest::Devices)],
            Self::Slice { before, after } => {
                let versions: Vec<_> = before.into_iter().chain(after).collect();
                vec![(ClaimInterest::Devices, scope_of(&versions))]
            }
            Self::Claim { before, after } => {
                let Some(claim) = before.or(after) else { return Vec::new() };
                let own = ClaimInterest::ResourceClaim(claim.key.clone());
                let had = before.and_then(|it| it.allocation.as_deref());
                let has = after.and_then(|it| it.allocation.as_deref());
                let is_kept = |had: &&Allocation| has.is_some_and(|it| it.devices == had.devices);
                let freed = had.filter(|it| !is_kept(it)).map(freed);
                freed.into_iter().chain([everywhere(own)]).collect()
            }
            Self::Taken(_) => Vec::new(),
            Self::Released(claims) => {
                let of_claim = |it: &ClaimToReserve| {
                    let own = everywhere(ClaimInterest::ResourceClaim(it.key.clone()));
                    it.allocation.iter().map(|it| freed(it)).chain([own]).collect::<Vec<_>>()
                };
                claims.iter().flat_map(of_claim).collect()
            }
        }
    }
}

/// Where Nodes may have more devices than before, or fewer. `None`: nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceEffect {
    pub freed: Option<ClaimScope>,
    pub taken: Option<ClaimScope>,
}

impl DeviceChange<'_> {
    pub fn effect(&self, pools: &DevicePools) -> DeviceEffect {
        let reach = |allocation: &Allocation| scope_of_devices(pools, allocation);
        let together = |claims: &[ClaimToReserve]| together(pools, claims);
        let everywhere = || Some(ClaimScope::Everywhere);
        match *self {
            Self::Class => DeviceEffect { freed: everywhere(), taken: None },
            Self::Slice { before, after } => {
                let versions: Vec<_> = before.into_iter().chain(after).collect();
                DeviceEffect { freed: Some(scope_of(&versions)), taken: None }
            }
            Self::Claim { before, after } => {
                let had = before.and_then(|it| it.allocation.as_deref());
                let has = after.and_then(|it| it.allocation.as_deref());
                if had.map(|it| &it.devices) == has.map(|it| &it.devices) {
                    return DeviceEffect::default();
                }
                DeviceEffect { freed: had.map(reach), taken: has.map(reach) }
            }
            Self::Taken(claims) => DeviceEffect { freed: None, taken: together(claims) },
            Self::Released(claims) => DeviceEffect { freed: together(claims), taken: None },
        }
    }
}

fn together(pools: &DevicePools, claims: &[ClaimToReserve]) -> Option<ClaimScope> {
    let each = claims.iter().filter_map(|it| it.allocation.as_deref());
    let each = each.map(|it| scope_of_devices(pools, it));
    each.reduce(|one, other| match (one, other) {
        (ClaimScope::Nodes(mut one), ClaimScope::Nodes(other)) => {
            one.extend(other);
            ClaimScope::Nodes(one)
        }
        _ => ClaimScope::Everywhere,
    })
}

/// Where devices of these versions of a slice can be used.
fn scope_of(versions: &[&ResourceSlice]) -> ClaimScope {
    let nodes: Option<Vec<NodeName>> = versions.iter().map(|it| only_node(it)).collect();
    nodes.map_or(ClaimScope::Everywhere, |it| ClaimScope::Nodes(it.into_iter().collect()))
}

/// From where the devices can be used. The allocation itself may be usable from fewer Nodes: from those that reach all
/// of its devices.
fn scope_of_devices(pools: &DevicePools, allocation: &Allocation) -> ClaimScope {
    let nodes = allocation.devices.iter().map(|it| pools.only_node_of(&it.id).cloned());
    let nodes: Option<_> = nodes.collect();
    nodes.map_or(ClaimScope::Everywhere, ClaimScope::Nodes)
}

fn only_node(slice: &ResourceSlice) -> Option<NodeName> {
    match &slice.place {
        DevicePlace::Node(name) if slice.shared_counters.is_empty() => Some(name.clone()),
        _ => None,
    }
}

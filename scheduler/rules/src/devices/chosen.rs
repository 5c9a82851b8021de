//! What the search has chosen so far, and whether a device is still to be had beside it.

use std::collections::BTreeSet;

use model::Quantity;

use super::TakenDevices;
use super::ask::Ask;
use super::capacity::Amounts;
use super::node_pools::{NodeDevice, NodePools};

/// A device that is given to a request, for now.
#[derive(Debug)]
pub(super) struct Choice<'a> {
    /// The place of its claim.
    pub claim: usize,
    pub ask: &'a Ask<'a>,
    /// The place of the device in [`NodePools::devices`].
    pub position: usize,
    pub amounts: Amounts,
}

/// In order. Only the last is ever taken back.
#[derive(Debug, Default)]
pub(super) struct Chosen<'a> {
    pub choices: Vec<Choice<'a>>,
}

impl<'a> Chosen<'a> {
    pub fn of_claim(&self, claim: usize) -> impl Iterator<Item = &Choice<'a>> {
        self.choices.iter().filter(move |choice| choice.claim == claim)
    }

    /// Choices of a device that take something of it. Admin access does not.
    fn taking(&self, position: usize) -> impl Iterator<Item = &Choice<'a>> {
        let of_device = move |choice: &&Choice| choice.position == position;
        self.choices.iter().filter(of_device).filter(|choice| !choice.ask.has_admin_access)
    }

    /// The devices that choices take something of, each once.
    pub fn taken_positions(&self) -> BTreeSet<usize> {
        let taking = self.choices.iter().filter(|choice| !choice.ask.has_admin_access);
        taking.map(|choice| choice.position).collect()
    }

    /// Whether the request cannot have the device because another has it.
    pub fn is_in_use(
        &self,
        taken: &TakenDevices,
        claim: usize,
        ask: &Ask,
        position: usize,
        device: &NodeDevice,
    ) -> bool {
        let can_be_shared = device.device.device_type.allow_multiple_allocations;
        // A claim never has a device twice, however it uses it.
        let is_in_claim = || self.of_claim(claim).any(|choice| choice.position == position);
        if ask.has_admin_access {
            return !can_be_shared && is_in_claim();
        }
        let in_use = taken.device(&device.id);
        if in_use.is_some_and(|it| it.is_held() || !can_be_shared && it.is_shared()) {
            return true;
        }
        !can_be_shared && (is_in_claim() || self.taking(position).next().is_some())
    }

    /// Whether a device that can be shared has so much left of each capacity. Any other has been compared as a whole.
    pub fn has_left(
        &self,
        taken: &TakenDevices,
        ask: &Ask,
        position: usize,
        device: &NodeDevice,
        amounts: &Amounts,
    ) -> bool {
        let device_type = &device.device.device_type;
        if ask.has_admin_access || !device_type.allow_multiple_allocations {
            return true;
        }
        let in_use = taken.device(&device.id);
        device_type.capacity.iter().all(|(name, capacity)| {
            let consumed = in_use.map_or(Quantity::default(), |it| it.consumed(name));
            let choices = self.taking(position).filter_map(|choice| choice.amounts.get(name));
            let asked = choices.chain(amounts.get(name)).copied();
            asked.fold(consumed, Quantity::saturating_add) <= capacity.value
        })
    }

    /// Devices of a pool that draw from its counters for these choices alone: others are charged already.
    pub fn newly_drawing<'p>(
        &self,
        taken: &TakenDevices,
        pools: &'p NodePools<'p>,
        pool: usize,
    ) -> Vec<&'p NodeDevice<'p>> {
        let devices = self.taken_positions().into_iter().map(|position| &pools.devices[position]);
        let of_pool = devices.filter(|device| device.pool == pool);
        of_pool.filter(|device| taken.device(&device.id).is_none()).collect()
    }
}

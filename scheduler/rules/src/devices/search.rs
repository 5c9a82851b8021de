//! The search for devices: depth first, in order, the first full solution wins.

use std::sync::Arc;

use model::ResourceClaim;

use super::allocator::{AllocatorInput, DEVICES_PER_CLAIM_MAX};
use super::ask::{Ask, ClaimAsk, Wanted, is_meant};
use super::capacity::{Amounts, amounts};
use super::chosen::{Choice, Chosen};
use super::node_pools::NodePools;
use super::{AllocationFailure, FatalDeviceError, constraints, counters};

/// A search in progress.
pub(super) struct Search<'a> {
    input: &'a AllocatorInput<'a>,
    pools: &'a NodePools<'a>,
    claims: &'a [ClaimAsk<'a>],
    chosen: Chosen<'a>,
    /// The alternative of each request of each claim that is being tried.
    alternatives: Vec<Vec<usize>>,
    /// What requests take of types of devices, as it was found out; by where both are in memory.
    amounts: Vec<((usize, usize), Option<Amounts>)>,
    /// How often a device was given to a request.
    steps: u32,
}

/// What gives each claim its devices.
#[derive(Debug)]
pub(super) struct Solution<'a> {
    pub choices: Vec<Choice<'a>>,
    pub alternatives: Vec<Vec<usize>>,
}

/// How a branch of the search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Branch {
    Solved,
    Failed,
    /// Every way from here gives the claim more devices than it may have. Other devices for what came before do not
    /// help; other alternatives may.
    TooManyDevices,
}

/// What is looked for next.
#[derive(Clone, Copy)]
struct Wish {
    claim: usize,
    request: usize,
    alternative: usize,
    /// How many devices the request has already.
    has: usize,
}

type Found = Result<Branch, AllocationFailure>;

impl<'a> Search<'a> {
    /// `None`: there is no solution.
    pub fn run(
        input: &'a AllocatorInput<'a>,
        pools: &'a NodePools<'a>,
        claims: &'a [ClaimAsk<'a>],
    ) -> Result<Option<Solution<'a>>, AllocationFailure> {
        let alternatives = claims.iter().map(|claim| vec![0; claim.requests.len()]).collect();
        let chosen = Chosen::default();
        let mut search =
            Self { input, pools, claims, chosen, alternatives, amounts: Vec::new(), steps: 0 };
        let Self { chosen: Chosen { choices }, alternatives, .. } = match search.claim(0)? {
            Branch::Solved => search,
            Branch::Failed | Branch::TooManyDevices => return Ok(None),
        };
        Ok(Some(Solution { choices, alternatives }))
    }

    fn claim(&mut self, claim: usize) -> Found {
        if claim == self.claims.len() {
            return Ok(Branch::Solved);
        }
        self.request(claim, 0)
    }

    fn request(&mut self, claim: usize, request: usize) -> Found {
        let Some(alternatives) = self.claims[claim].requests.get(request) else {
            // Each claim has a limit of its own.
            return Ok(match self.claim(claim + 1)? {
                Branch::TooManyDevices => Branch::Failed,
                branch => branch,
            });
        };
        let mut failed = Branch::TooManyDevices;
        for alternative in 0..alternatives.len() {
            self.alternatives[claim][request] = alternative;
            match self.devices(Wish { claim, request, alternative, has: 0 }, 0)? {
                Branch::Solved => return Ok(Branch::Solved),
                Branch::Failed => failed = Branch::Failed,
                Branch::TooManyDevices => {}
            }
        }
        Ok(failed)
    }

    /// The devices of a request that it does not have yet, from a position on: combinations are tried, not permutations.
    fn devices(&mut self, wish: Wish, from: usize) -> Found {
        let claims = self.claims;
        let ask = &claims[wish.claim].requests[wish.request][wish.alternative];
        if matches!(&ask.wanted, Wanted::All(all) if all.is_empty()) {
            return Ok(Branch::Failed);
        }
        if wish.has >= ask.count() {
            return self.request(wish.claim, wish.request + 1);
        }
        let missing = ask.count() - wish.has;
        let has = self.chosen.of_claim(wish.claim).count();
        if has.saturating_add(missing) > DEVICES_PER_CLAIM_MAX {
            return Ok(Branch::TooManyDevices);
        }
        match &ask.wanted {
            Wanted::All(all) => self.next_of_all(wish, ask, all[wish.has]),
            Wanted::Exactly(_) => self.next_of_some(wish, ask, from),
        }
    }

    fn next_of_all(&mut self, wish: Wish, ask: &'a Ask<'a>, position: usize) -> Found {
        if self.is_in_use(wish, ask, position) || !self.suits(ask, position) {
            return Ok(Branch::Failed);
        }
        if !self.is_allowed(wish, ask, position) {
            let claim = self.claims[wish.claim].claim.key.clone();
            let request = ask.request.name.clone();
            let device = self.pools.devices[position].id.clone();
            return Err(FatalDeviceError::ConstraintExcludes { claim, request, device }.into());
        }
        match self.amounts(ask, position) {
            Some(amounts) => self.give(wish, ask, position, amounts),
            None => Ok(Branch::Failed),
        }
    }

    fn next_of_some(&mut self, wish: Wish, ask: &'a Ask<'a>, from: usize) -> Found {
        let (input, pools) = (self.input, self.pools);
        let claim: &ResourceClaim = self.claims[wish.claim].claim;
        for position in from..pools.devices.len() {
            if self.is_in_use(wish, ask, position) {
                continue;
            }
            let device = &pools.devices[position];
            if !is_meant(input, pools, claim, ask.request, ask.class, device)?
                || !self.suits(ask, position)
                || !self.is_allowed(wish, ask, position)
            {
                continue;
            }
            let Some(amounts) = self.amounts(ask, position) else { continue };
            match self.give(wish, ask, position, amounts)? {
                Branch::Failed => {}
                branch => return Ok(branch),
            }
        }
        Ok(Branch::Failed)
    }

    /// Gives the device to the request and looks for the rest; takes it back if that fails.
    fn give(&mut self, wish: Wish, ask: &'a Ask<'a>, position: usize, amounts: Amounts) -> Found {
        if self.steps == self.input.step_limit {
            let claim = self.claims[wish.claim].claim.key.clone();
            return Err(AllocationFailure::StepLimit { claim, steps: self.steps });
        }
        self.steps += 1;
        self.chosen.choices.push(Choice { claim: wish.claim, ask, position, amounts });
        let branch = self.devices(Wish { has: wish.has + 1, ..wish }, position + 1)?;
        if branch != Branch::Solved {
            self.chosen.choices.pop();
        }
        Ok(branch)
    }

    fn is_in_use(&self, wish: Wish, ask: &Ask, position: usize) -> bool {
        let device = &self.pools.devices[position];
        self.chosen.is_in_use(self.input.taken, wish.claim, ask, position, device)
    }

    /// Whether counters and taints let the request have the device.
    fn suits(&self, ask: &Ask, position: usize) -> bool {
        let device = &self.pools.devices[position];
        let tolerations = &ask.request.tolerations;
        let mut taints = device.device.taints.iter().filter(|taint| taint.repels());
        counters::has_left(self.input.taken, self.pools, &self.chosen, ask, device)
            && taints.all(|taint| tolerations.iter().any(|it| it.tolerates(taint)))
    }

    fn is_allowed(&self, wish: Wish, ask: &Ask, position: usize) -> bool {
        let device = &self.pools.devices[position];
        let spec = &self.claims[wish.claim].claim.spec;
        constraints::allow(self.pools, &self.chosen, wish.claim, spec, ask, device)
    }

    /// What the request takes of the device, if so much is left.
    fn amounts(&mut self, ask: &'a Ask<'a>, position: usize) -> Option<Amounts> {
        let device = &self.pools.devices[position];
        let device_type = &device.device.device_type;
        let place = (std::ptr::from_ref(ask).addr(), Arc::as_ptr(device_type).addr());
        let known = self.amounts.iter().position(|(of, _)| *of == place);
        let number = known.unwrap_or_else(|| {
            self.amounts.push((place, amounts(ask.request, device_type)));
            self.amounts.len() - 1
        });
        let amounts = self.amounts[number].1.as_ref()?;
        let has_left = self.chosen.has_left(self.input.taken, ask, position, device, amounts);
        has_left.then(|| amounts.clone())
    }
}

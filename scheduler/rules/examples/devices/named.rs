//! Where ours is to differ from kube-scheduler v1.36.4, and why. Each is known by what the two answers show, not by
//! what a case could lead to: an allocation of kube-scheduler that the independent checker refuses, or one of ours that
//! the checker accepts and that has what kube-scheduler keeps back. Places are in the package
//! `structured/internal/incubating` of `k8s.io/dynamic-resource-allocation`.

use std::collections::BTreeMap;

use random_clusters::devices::checker::{Rule, complaints};
use random_clusters::devices::milli;
use serde_json::Value;

use crate::outcome::{NODE_SELECTOR, Outcome};
use crate::translate::items;

/// What a difference is looked for in.
pub struct Scene<'a> {
    case: &'a Value,
    ours: &'a Outcome,
    real: &'a Outcome,
    /// What kube-scheduler's allocation breaks.
    broken: Vec<Rule>,
    /// Whether the checker accepts ours.
    is_accepted: bool,
}

impl<'a> Scene<'a> {
    pub fn new(case: &'a Value, node: &Value, ours: &'a Outcome, real: &'a Outcome) -> Self {
        let broken = |outcome: &Outcome| match outcome {
            Outcome::Fits(allocations) => complaints(case, node, allocations),
            _ => vec![],
        };
        let is_accepted = matches!(ours, Outcome::Fits(_)) && broken(ours).is_empty();
        let broken = broken(real).iter().map(|it| it.rule).collect();
        Self { case, ours, real, broken, is_accepted }
    }
}

impl Scene<'_> {
    fn real_breaks(&self, rule: Rule) -> bool {
        self.broken.contains(&rule)
    }

    /// Then only the reasons differ, and they come from somewhere in the search.
    fn fits_neither(&self) -> bool {
        !matches!(self.ours, Outcome::Fits(_)) && !matches!(self.real, Outcome::Fits(_))
    }

    fn claims(&self) -> impl Iterator<Item = &Value> {
        items(&self.case["claims"]).iter().map(|it| &it["spec"]["devices"])
    }

    fn has_constraint(&self, sort: &str) -> bool {
        let mut constraints = self.claims().flat_map(|it| items(&it["constraints"]));
        constraints.any(|it| it[sort].is_string())
    }

    fn has_outdated_strange_selector(&self) -> bool {
        let specs = || items(&self.case["slices"]).iter().map(|it| &it["spec"]);
        let generation = |spec: &Value| spec["pool"]["generation"].as_i64();
        let is_outdated = |spec: &Value| {
            let same = |it: &&Value| {
                it["driver"] == spec["driver"] && it["pool"]["name"] == spec["pool"]["name"]
            };
            specs().filter(same).any(|it| generation(it) > generation(spec))
        };
        specs().any(|spec| spec.to_string().contains("Strange") && is_outdated(spec))
    }

    fn asks_for_admin_access(&self) -> bool {
        let mut requests = self.claims().flat_map(|it| items(&it["requests"]));
        requests.any(|it| it["exactly"]["adminAccess"] == true)
    }

    fn has_all_beside_shares(&self) -> bool {
        let requests = self.claims().flat_map(|it| items(&it["requests"]));
        let mut asks =
            requests.flat_map(|it| items(&it["firstAvailable"]).iter().chain([&it["exactly"]]));
        let has_all = asks.any(|it| it["allocationMode"] == "All");
        has_all && self.allocated().any(|it| it["consumedCapacity"].is_object())
    }

    /// Whether some result of our allocations is such.
    fn gives(&self, is_such: fn(&Self, &Value) -> bool) -> bool {
        self.results().any(|result| is_such(self, result))
    }

    fn results(&self) -> impl Iterator<Item = &Value> {
        self.ours.allocations().iter().flat_map(|it| items(&it["devices"]["results"]))
    }

    /// The devices of that name, of all generations.
    fn published(&self, result: &Value) -> impl Iterator<Item = (&Value, &Value)> {
        let slices = items(&self.case["slices"]).iter().map(|it| &it["spec"]);
        let [driver, pool, name] = ["driver", "pool", "device"].map(|field| result[field].clone());
        let of_pool = slices.filter(move |it| it["driver"] == driver && it["pool"]["name"] == pool);
        let devices =
            of_pool.flat_map(|spec| items(&spec["devices"]).iter().map(move |it| (spec, it)));
        devices.filter(move |(_, it)| it["name"] == name)
    }

    fn uses_pool_of(&self, spec: &Value) -> bool {
        let mut results = self.results();
        results.any(|it| it["driver"] == spec["driver"] && it["pool"] == spec["pool"]["name"])
    }

    fn has_disagreeing_counts(&self, is_meant: impl Fn(&Value) -> bool) -> bool {
        let mut counts = BTreeMap::new();
        items(&self.case["slices"]).iter().map(|it| &it["spec"]).any(|spec| {
            let pool = &spec["pool"];
            let of = [&spec["driver"], &pool["name"], &pool["generation"]].map(Value::to_string);
            let count = &pool["resourceSliceCount"];
            *counts.entry(of).or_insert(count) != count && is_meant(spec)
        })
    }

    fn is_admin_of_counted(&self, result: &Value) -> bool {
        let is_counted = |(_, device): (&Value, &Value)| {
            device["consumesCounters"].is_array()
                || device["allowMultipleAllocations"] == true && device["capacity"].is_object()
        };
        let has_shares = |it: &Value| is_same_device(it, result) && it["shareID"].is_string();
        result["adminAccess"] == true
            && (self.published(result).any(is_counted) || self.allocated().any(has_shares))
    }

    fn is_beside_admin(&self, result: &Value) -> bool {
        let same = |other: &&Value| is_same_device(other, result);
        result["adminAccess"] != true
            && self.results().filter(same).any(|other| other["adminAccess"] == true)
    }

    fn is_charged_twice(&self, result: &Value) -> bool {
        let is_such = |(_, device): (&Value, &Value)| {
            device["consumesCounters"].is_array()
                && device["allowMultipleAllocations"] == true
                && device["capacity"].is_null()
        };
        let same = |other: &&Value| is_same_device(other, result);
        let uses = self.results().chain(self.allocated()).filter(same).count();
        uses > 1 && self.published(result).any(is_such)
    }

    fn allocated(&self) -> impl Iterator<Item = &Value> {
        let claims = items(&self.case["allocated"]).iter();
        claims.flat_map(|it| items(&it["status"]["allocation"]["devices"]["results"]))
    }

    /// The device draws from a pool of which claims have drawn more from some counter than there is.
    fn is_beside_overdrawn(&self, result: &Value) -> bool {
        self.published(result)
            .any(|(spec, device)| device["consumesCounters"].is_array() && self.is_overdrawn(spec))
    }

    fn is_overdrawn(&self, of: &Value) -> bool {
        let mut left: BTreeMap<(String, &str), i128> = BTreeMap::new();
        let amount =
            |counter: &Value| counter["value"].as_str().and_then(milli).unwrap_or_default();
        let of_pool = |it: &&Value| {
            it["driver"] == of["driver"]
                && it["pool"]["name"] == of["pool"]["name"]
                && it["pool"]["generation"] == of["pool"]["generation"]
        };
        for spec in items(&self.case["slices"]).iter().map(|it| &it["spec"]).filter(of_pool) {
            for set in items(&spec["sharedCounters"]) {
                for (name, counter) in set["counters"].as_object().into_iter().flatten() {
                    *left.entry((set["name"].to_string(), name)).or_default() += amount(counter);
                }
            }
            for device in items(&spec["devices"]) {
                let is_it = |result: &&Value| {
                    result["device"] == device["name"]
                        && result["driver"] == spec["driver"]
                        && result["pool"] == spec["pool"]["name"]
                        && result["adminAccess"] != true
                };
                if self.allocated().any(|it| is_it(&it)) {
                    for drawn in items(&device["consumesCounters"]) {
                        for (name, counter) in drawn["counters"].as_object().into_iter().flatten() {
                            let set = drawn["counterSet"].to_string();
                            *left.entry((set, name)).or_default() -= amount(counter);
                        }
                    }
                }
            }
        }
        left.values().any(|it| *it < 0)
    }
}

fn is_fatal(outcome: &Outcome, text: &str) -> bool {
    matches!(outcome, Outcome::Fatal(why) if why.contains(text))
}

fn is_same_device(a: &Value, b: &Value) -> bool {
    ["driver", "pool", "device"].iter().all(|field| a[*field] == b[*field])
}

pub struct Named {
    pub name: &'static str,
    pub why: &'static str,
    #[expect(dead_code, reason = "for whoever reads this list")]
    source: &'static str,
    covers: fn(&Scene) -> bool,
}

pub const NAMED: [Named; 9] = [
    Named {
        name: "distinctAttribute is kept between requests only",
        why: "within one request, kube-scheduler forgets all values but the last",
        source: "constraint.go, distinctAttributeConstraint.add: one value by name of request",
        covers: |scene| {
            scene.real_breaks(Rule::DistinctAttribute)
                || scene.fits_neither() && scene.has_constraint("distinctAttribute")
        },
    },
    Named {
        name: "All leaves full shared devices out",
        why: "the API says that each of all must be free",
        source: "allocator_incubating.go, validateDeviceRequest: continue after CmpRequestOverCapacity",
        covers: |scene| {
            let may_show = scene.fits_neither() || is_fatal(scene.real, "claim constraint");
            scene.real_breaks(Rule::All) || may_show && scene.has_all_beside_shares()
        },
    },
    Named {
        name: "a device with shares is given out as a whole",
        why: "it can no longer be shared, and its shares are in use still",
        source: "allocator_incubating.go, deviceInUse: only what was given out as a whole",
        covers: |scene| scene.real_breaks(Rule::InUse),
    },
    Named {
        name: "slices disagree on their number",
        why: "what kube-scheduler makes of it depends on the order in which it lists slices",
        source: "pools_incubating.go, GatherPools: slicesForPool[0].Spec.Pool.ResourceSliceCount",
        covers: |scene| {
            let is_any = scene.real_breaks(Rule::Reach) || scene.fits_neither();
            let is_unusable =
                [scene.ours, scene.real].iter().any(|it| is_fatal(it, "resource pool"));
            scene.has_disagreeing_counts(|spec| is_any || is_unusable || scene.uses_pool_of(spec))
        },
    },
    Named {
        name: "admin access is kept from counters and capacity in use",
        why: "it takes nothing",
        source: "allocator_incubating.go, allocateDevice: checkAvailableCounters and CmpRequestOverCapacity",
        covers: |scene| {
            scene.is_accepted && scene.gives(Scene::is_admin_of_counted)
                || scene.fits_neither() && scene.asks_for_admin_access()
        },
    },
    Named {
        name: "admin access of one claim keeps a device from another",
        why: "it takes nothing",
        source: "allocator_incubating.go, deviceInUse: allocatingDevices, whatever the access",
        covers: |scene| scene.is_accepted && scene.gives(Scene::is_beside_admin),
    },
    Named {
        name: "an overdrawn counter stops all devices with counters",
        why: "others have enough left of the counters that they draw from",
        source: "allocator_incubating.go, checkAvailableCounters: compares all counters of the pool",
        covers: |scene| scene.is_accepted && scene.gives(Scene::is_beside_overdrawn),
    },
    Named {
        name: "a shared device without capacity is charged its counters for each share",
        why: "the device draws once, however many have it",
        source: "allocator_incubating.go, deviceCapacityInUse: known by its capacity alone",
        covers: |scene| scene.is_accepted && scene.gives(Scene::is_charged_twice),
    },
    Named {
        name: "a node selector of an outdated slice cannot be parsed",
        why: "what is no longer valid stops nobody; no API server stores such a selector",
        source: "pools_incubating.go, GatherPools: parses before it compares generations",
        covers: |scene| {
            is_fatal(scene.real, NODE_SELECTOR) && scene.has_outdated_strange_selector()
        },
    },
];

/// The first that explains all of it.
pub fn name(scene: &Scene) -> Option<&'static str> {
    NAMED.iter().find(|it| (it.covers)(scene)).map(|it| it.name)
}

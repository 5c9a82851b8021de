//! ResourceSlices, by pools.

use serde_json::{Value, json};

use super::device::{Surroundings, device};
use super::{DRIVERS, Habits, ZONES, name};
use crate::random::Random;

/// Counters with their totals, by sets.
pub(super) type CounterSets = Vec<(String, Vec<(String, usize)>)>;

/// A pool that is being made.
struct Pool<'a> {
    driver: &'a str,
    name: String,
    generation: i64,
    counters: CounterSets,
    devices: usize,
    slices: Vec<Value>,
}

pub(super) fn slices(random: &mut Random, habits: &Habits, nodes: &[Value]) -> Vec<Value> {
    let mut slices = vec![];
    let drivers = random.between(1, DRIVERS.len());
    for driver in &DRIVERS[..drivers] {
        for node in nodes {
            if random.chance(90) {
                slices.extend(local_pool(random, habits, driver, name(node)));
            }
        }
        if habits.network && random.chance(80) {
            slices.extend(network_pool(random, habits, driver));
        }
    }
    for (number, slice) in slices.iter_mut().enumerate() {
        // Their order by name is not that in which they were made.
        slice["metadata"]["name"] = json!(format!("{}-s{number}", random.below(10)));
    }
    slices
}

fn local_pool(random: &mut Random, habits: &Habits, driver: &str, node: &str) -> Vec<Value> {
    let mut pool = Pool::new(random, habits, driver, node.to_owned());
    let slices = random.pick(&[1, 1, 2]);
    for _ in 0..slices {
        let devices = if habits.crowd {
            random.between(15, 20)
        } else {
            random.pick(&[1, 2, 2, 3, 3, 4]) / slices + 1
        };
        pool.add_slice(random, habits, &json!({"nodeName": node}), devices);
    }
    pool.finished(random, habits)
}

fn network_pool(random: &mut Random, habits: &Habits, driver: &str) -> Vec<Value> {
    let pool_name = random.pick(&["fabric", "n0"]);
    let mut pool = Pool::new(random, habits, driver, format!("{pool_name}-net"));
    let slices = random.between(1, 3);
    for _ in 0..slices {
        let reach = match random.below(10) {
            0..3 => json!({"allNodes": true}),
            3..6 => json!({"nodeSelector": node_selector(random, habits)}),
            6..9 => json!({"perDeviceNodeSelection": true}),
            _ => json!({"nodeName": format!("n{}", random.below(3))}),
        };
        let devices = random.between(1, 2);
        pool.add_slice(random, habits, &reach, devices);
    }
    pool.finished(random, habits)
}

/// One term, as slices must have; devices may have two.
pub(super) fn node_selector(random: &mut Random, habits: &Habits) -> Value {
    let zone = |random: &mut Random| {
        let values = random.pick(&[&ZONES[..1], &ZONES[1..], &ZONES[..]]);
        match random.below(8) {
            0 => json!({"key": "zone", "operator": "Exists"}),
            1 => json!({"key": "zone", "operator": "NotIn", "values": [random.pick(&ZONES)]}),
            2 => json!({"key": "zone", "operator": "DoesNotExist"}),
            _ => json!({"key": "zone", "operator": "In", "values": values}),
        }
    };
    let mut term = json!({"matchExpressions": random.list(1, 2, zone)});
    if random.chance(15) {
        let names = json!([format!("n{}", random.below(3))]);
        term["matchFields"] = json!([{"key": "metadata.name", "operator": "In", "values": names}]);
    }
    if habits.odd_objects && random.chance(10) {
        term["matchExpressions"][0]["operator"] = json!("Strange");
    }
    let mut terms = vec![term];
    if habits.odd_objects && random.chance(30) {
        terms.push(json!({"matchExpressions": [zone(random)]}));
    }
    json!({"nodeSelectorTerms": terms})
}

impl<'a> Pool<'a> {
    fn new(random: &mut Random, habits: &Habits, driver: &'a str, name: String) -> Self {
        let mut counters = vec![];
        if habits.counters {
            let sets = random.pick(&[1, 2, 2]);
            for set in 0..sets {
                let names = ["memory", "engines"].into_iter().take(random.between(1, 2));
                let totals = names.map(|it| (it.to_owned(), random.between(4, 10)));
                counters.push((format!("set{set}"), totals.collect()));
            }
        }
        let generation = if random.chance(30) { 2 } else { 1 };
        Self { driver, name, generation, counters, devices: 0, slices: vec![] }
    }

    fn slice(&self, reach: &Value) -> Value {
        let mut slice = json!({"metadata": {}, "spec": {
            "driver": self.driver,
            "pool": {"name": self.name, "generation": self.generation, "resourceSliceCount": 0},
        }});
        for (field, value) in reach.as_object().into_iter().flatten() {
            slice["spec"][field] = value.clone();
        }
        slice
    }

    fn add_slice(&mut self, random: &mut Random, habits: &Habits, reach: &Value, devices: usize) {
        let is_per_device = reach["perDeviceNodeSelection"] == true;
        let mut slice = self.slice(reach);
        let mut all = vec![];
        for _ in 0..devices {
            let around =
                Surroundings { driver: self.driver, counters: &self.counters, is_per_device };
            all.push(device(random, habits, &format!("d{}", self.devices), &around));
            self.devices += 1;
        }
        slice["spec"]["devices"] = json!(all);
        self.slices.push(slice);
    }

    fn add_counters(&mut self, random: &mut Random) {
        let reach = match random.below(3) {
            0 => json!({"allNodes": true}),
            _ => json!({"nodeName": format!("n{}", random.below(3))}),
        };
        let mut slice = self.slice(&reach);
        let sets = self.counters.iter().map(|(set, counters)| {
            let counters = counters.iter();
            let counters =
                counters.map(|(name, total)| (name.clone(), json!({"value": total.to_string()})));
            json!({"name": set, "counters": counters.collect::<serde_json::Map<_, _>>()})
        });
        slice["spec"]["sharedCounters"] = sets.collect();
        self.slices.push(slice);
    }

    /// The slices, complete in most cases.
    fn finished(mut self, random: &mut Random, habits: &Habits) -> Vec<Value> {
        if !self.counters.is_empty() {
            self.add_counters(random);
        }
        let odd = habits.odd_pools.then(|| random.below(9));
        if odd == Some(0) {
            self.repeat_device(random);
        }
        if odd == Some(1) && !self.counters.is_empty() {
            self.add_counters(random);
        }
        if odd == Some(2) && !self.counters.is_empty() {
            let counters =
                &mut self.slices.last_mut().expect("it has counters")["spec"]["sharedCounters"][0];
            counters["name"] = json!("other");
        }
        let count = self.slices.len();
        for slice in &mut self.slices {
            slice["spec"]["pool"]["resourceSliceCount"] = json!(count);
        }
        match odd {
            Some(3) => drop(self.slices.swap_remove(random.below(count))),
            Some(4) => self.set_count(random, count + 1),
            Some(5..7) => self.add_generation(random, habits, -1),
            Some(7) => self.add_generation(random, habits, 1),
            _ => {}
        }
        self.slices
    }

    fn set_count(&mut self, random: &mut Random, count: usize) {
        let place = random.below(self.slices.len());
        self.slices[place]["spec"]["pool"]["resourceSliceCount"] = json!(count);
    }

    fn repeat_device(&mut self, random: &mut Random) {
        let with_devices = |slice: &&mut Value| slice["spec"]["devices"].is_array();
        let slices: Vec<&mut Value> = self.slices.iter_mut().filter(with_devices).collect();
        let place = random.below(slices.len());
        for slice in slices.into_iter().skip(place).take(1) {
            let devices = slice["spec"]["devices"].as_array_mut().expect("it has devices");
            devices[0]["name"] = json!("d0");
            devices.push(devices[0].clone());
        }
    }

    /// A slice of the generation before or after, for the Nodes that one of these is for.
    fn add_generation(&mut self, random: &mut Random, habits: &Habits, by: i64) {
        let place = random.below(self.slices.len());
        let mut other = self.slices[place].clone();
        other["spec"]["pool"]["generation"] = json!(self.generation + by);
        other["spec"]["pool"]["resourceSliceCount"] = json!(random.pick(&[1, 1, 2]));
        if random.chance(40) && other["spec"]["nodeName"].is_string() {
            other["spec"]["nodeName"] = json!(format!("n{}", random.below(3)));
        }
        if habits.odd_objects && other["spec"]["devices"].is_array() {
            other["spec"]["devices"] = json!([]);
        }
        self.slices.push(other);
    }
}

//! The containers of a Pod, and what the Pod asks for beside them.

use serde_json::{Value, json};

use crate::random::Random;
use crate::rules::{Rule, Rules};

const MEBIBYTE: usize = 1 << 20;

/// What the containers ask for, all together.
#[derive(Default)]
struct Sum {
    cpu_milli: usize,
    memory: usize,
    has_huge_pages: bool,
}

pub(crate) struct Containers<'a> {
    taste: &'a Rules,
    sum: Sum,
    /// How many have a host port: the API server refuses a Pod that asks for the same one twice.
    ports: usize,
}

impl<'a> Containers<'a> {
    pub fn new(taste: &'a Rules) -> Self {
        Self { taste, sum: Sum::default(), ports: 0 }
    }

    pub fn list(&mut self, random: &mut Random, prefix: &str, count_max: usize) -> Vec<Value> {
        let count = random.between(1, count_max);
        (0..count).map(|number| self.container(random, &format!("{prefix}{number}"))).collect()
    }

    fn container(&mut self, random: &mut Random, name: &str) -> Value {
        let images = ["app", "app:latest", "db:v1", "reg:5000/x"];
        let image =
            if self.taste.has(Rule::Images) { random.pick(&images) } else { "never-pulled:1" };
        let mut container =
            json!({"name": name, "image": image, "resources": self.resources(random)});
        if self.taste.has(Rule::Ports) && random.chance(70) {
            let first = 80 + 2 * self.taste.if_unchecked(0, self.ports);
            self.ports += 1;
            container["ports"] = json!([{
                "containerPort": 80,
                "hostPort": random.between(first, first + 1),
                "hostIP": random.pick(&["", "", "10.0.0.1", "10.0.0.2"]),
                "protocol": random.pick(&["TCP", "TCP", "UDP"]),
            }]);
        }
        container
    }

    fn resources(&mut self, random: &mut Random) -> Value {
        let mut requests = json!({});
        let mut limits = json!({});
        if self.taste.has(Rule::Resources) {
            self.add_basic(random, &mut requests);
        }
        if self.taste.has(Rule::ExtendedResources) {
            self.add_extended(random, &mut requests, &mut limits);
        }
        json!({"requests": requests, "limits": limits})
    }

    fn add_basic(&mut self, random: &mut Random, requests: &mut Value) {
        if random.chance(75) {
            let milli = random.below(12) * 100;
            self.sum.cpu_milli += milli;
            requests["cpu"] = json!(format!("{milli}m"));
        }
        if random.chance(75) {
            let mebibytes = random.below(12) * 100 * MEBIBYTE;
            let bytes = random.pick(&[mebibytes, mebibytes, random.clone().below(2_000_000_000)]);
            self.sum.memory += bytes;
            requests["memory"] = json!(bytes.to_string());
        }
        if self.taste.is_unchecked() && random.chance(20) {
            // Half a byte is rounded up.
            let choices = [format!("{}Mi", random.below(12) * 100), "500m".to_owned()];
            requests["memory"] = json!(random.pick(&choices));
        }
        if self.taste.is_unchecked() && random.chance(3) {
            requests["strange"] = json!("1");
        }
    }

    fn add_extended(&mut self, random: &mut Random, requests: &mut Value, limits: &mut Value) {
        if random.chance(40) {
            requests["ephemeral-storage"] = json!(format!("{}Mi", random.below(10) * 50));
        }
        if random.chance(60) {
            let count = json!(random.below(3).to_string());
            (requests["example.com/gpu"], limits["example.com/gpu"]) = (count.clone(), count);
        }
        if random.chance(25) {
            if !self.taste.is_unchecked() {
                // An API server wants a request for one of the others beside it.
                let milli = 100;
                self.sum.cpu_milli += milli;
                requests["cpu"] = json!(format!("{milli}m"));
            }
            self.sum.has_huge_pages = true;
            let size = json!("4Mi");
            (requests["hugepages-2Mi"], limits["hugepages-2Mi"]) = (size.clone(), size);
        }
    }

    /// An API server wants no less than the containers ask for together.
    pub fn pod_resources(&self, random: &mut Random) -> Value {
        let Sum { cpu_milli, memory, has_huge_pages } = self.sum;
        let is_any = self.taste.is_unchecked() && random.chance(50);
        let (cpu_milli, memory) = if is_any { (0, 0) } else { (cpu_milli, memory) };
        let cpu = format!("{}m", cpu_milli + random.between(1, 6) * 100);
        let memory = (memory + random.between(1, 6) * 100 * MEBIBYTE).to_string();
        if !has_huge_pages && random.chance(15) {
            let huge = json!({"cpu": cpu, "hugepages-2Mi": "4Mi"});
            return json!({"requests": huge, "limits": {"hugepages-2Mi": "4Mi"}});
        }
        let requests = random.pick(&[
            json!({"cpu": cpu}),
            json!({"memory": memory}),
            json!({"cpu": cpu, "memory": memory}),
        ]);
        json!({"requests": requests})
    }
}

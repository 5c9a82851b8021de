//! Random expressions, most of which the API server would accept.

mod bools;
mod devices;
mod mixed;
mod random;
mod terms;
mod words;

use model::DeviceType;
use serde_json::{Value, json};

use random::Random;
use terms::Type;

/// An expression is compiled once for so many devices.
pub const DEVICES_EACH: usize = 5;
const DEPTH: usize = 4;

pub struct Question {
    pub expression: String,
    pub devices: Vec<DeviceType>,
}

impl Question {
    pub fn as_json(&self) -> Value {
        let devices: Vec<Value> = self.devices.iter().map(devices::as_json).collect();
        json!({ "expression": self.expression, "devices": devices })
    }
}

pub fn question(seed: u64) -> Question {
    let mut random = Random::new(seed);
    let devices = (0..DEVICES_EACH).map(|_| devices::device(&mut random)).collect();
    let mut expression = Generator { random, variables: Vec::new(), names: 0 };
    let depth = 1 + expression.random.below(DEPTH);
    let expression = expression.bool(depth);
    Question { expression, devices }
}

pub struct Generator {
    random: Random,
    /// In scope, innermost last.
    variables: Vec<(String, Type)>,
    names: usize,
}

impl Generator {
    /// A new variable, whose name may hide another one.
    fn name(&mut self) -> String {
        if self.random.percent(20) {
            return self.random.of(&["x", "y", "it"]).to_owned();
        }
        self.names += 1;
        format!("v{}", self.names)
    }

    /// What `inside` makes while the variables are in scope.
    fn with(
        &mut self,
        variables: &[(&str, Type)],
        inside: impl FnOnce(&mut Self) -> String,
    ) -> String {
        let before = self.variables.len();
        self.variables.extend(variables.iter().map(|(name, it)| ((*name).to_owned(), *it)));
        let made = inside(self);
        self.variables.truncate(before);
        made
    }

    fn variable(&mut self, wanted: Type) -> Option<String> {
        let seen = |name: &str, at: usize, all: &[(String, Type)]| {
            !all.iter().skip(at + 1).any(|(other, _)| other == name)
        };
        let fits: Vec<String> = self
            .variables
            .iter()
            .enumerate()
            .filter(|(at, (name, it))| *it == wanted && seen(name, *at, &self.variables))
            .map(|(_, (name, _))| name.clone())
            .collect();
        (!fits.is_empty()).then(|| fits[self.random.below(fits.len())].clone())
    }
}

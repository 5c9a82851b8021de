//! Expressions of selectors and types of devices: each pair is evaluated once, here, so that a decision only looks up
//! the verdict.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use device_selectors::Expression;
use engine::{Event, SelectorEvaluation};
use model::{
    DeviceClass, DeviceSelector, DeviceType, ObjectKey, RequestAlternatives, ResourceClaim,
    ResourceSlice, SelectorVerdict,
};

/// What is needed now, and what of that was not handed to the engine yet.
#[derive(Debug, Default)]
pub(crate) struct SelectorEvaluations {
    types: HashMap<Arc<DeviceType>, usize>,
    expressions: BTreeMap<Arc<str>, Used>,
    /// What each object needs.
    of_slices: BTreeMap<Arc<str>, Vec<Arc<DeviceType>>>,
    of_classes: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    of_claims: BTreeMap<ObjectKey, Vec<Arc<str>>>,
    pending: Vec<Event>,
}

#[derive(Debug)]
struct Used {
    compiled: Result<Expression, Arc<str>>,
    objects: usize,
}

impl Used {
    fn evaluate(&self, device_type: &DeviceType) -> SelectorVerdict {
        match &self.compiled {
            Ok(expression) => expression.evaluate(device_type),
            Err(why) => SelectorVerdict::Fails(why.clone()),
        }
    }
}

impl SelectorEvaluations {
    /// The one copy of the type that is in use.
    pub fn share(&self, device_type: DeviceType) -> Arc<DeviceType> {
        let known = self.types.get_key_value(&device_type);
        known.map_or_else(|| Arc::new(device_type), |(known, _)| known.clone())
    }

    /// What has to be handed to the engine before the object that was seen last.
    pub fn take_pending(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.pending)
    }

    pub fn class_seen(&mut self, class: &DeviceClass) {
        let expressions = expressions(&class.selectors).collect();
        let before = self.of_classes.insert(class.name.clone(), expressions);
        let now = self.of_classes.get(&class.name).cloned().unwrap_or_default();
        self.replace_expressions(before.unwrap_or_default(), &now);
    }

    pub fn class_gone(&mut self, name: &str) {
        let before = self.of_classes.remove(name).unwrap_or_default();
        self.replace_expressions(before, &[]);
    }

    /// Of a claim that has its devices, nothing is evaluated.
    pub fn claim_seen(&mut self, claim: &ResourceClaim) {
        if claim.allocation.is_some() {
            return self.claim_gone(&claim.key);
        }
        let now: Vec<Arc<str>> = claim.spec.requests.iter().flat_map(asked_in).collect();
        let before = self.of_claims.insert(claim.key.clone(), now.clone());
        self.replace_expressions(before.unwrap_or_default(), &now);
    }

    pub fn claim_gone(&mut self, claim: &ObjectKey) {
        let before = self.of_claims.remove(claim).unwrap_or_default();
        self.replace_expressions(before, &[]);
    }

    pub fn slice_seen(&mut self, slice: &ResourceSlice) {
        let now: Vec<_> = slice.devices.iter().map(|device| device.device_type.clone()).collect();
        let before = self.of_slices.insert(slice.name.clone(), now.clone());
        self.replace_types(before.unwrap_or_default(), now);
    }

    pub fn slice_gone(&mut self, name: &str) {
        let before = self.of_slices.remove(name).unwrap_or_default();
        self.replace_types(before, Vec::new());
    }

    /// The new ones first: what both have is not evaluated again.
    fn replace_expressions(&mut self, before: Vec<Arc<str>>, now: &[Arc<str>]) {
        for expression in now {
            if let Some(known) = self.expressions.get_mut(expression) {
                known.objects += 1;
                continue;
            }
            let compiled = Expression::compile(expression);
            let compiled = compiled.map_err(|error| format!("CEL compile error: {error}").into());
            let used = Used { compiled, objects: 1 };
            let types = self.types.keys();
            let mut verdicts: Vec<_> = types.map(|it| (it.clone(), used.evaluate(it))).collect();
            // The journal is the same whatever the order in which types are kept.
            verdicts.sort_by(|(one, _), (other, _)| one.cmp(other));
            let evaluation = SelectorEvaluation { expression: expression.clone(), verdicts };
            self.expressions.insert(expression.clone(), used);
            self.pending.push(Event::SelectorsEvaluated(vec![evaluation]));
        }
        for expression in before {
            let Some(known) = self.expressions.get_mut(&expression) else { continue };
            known.objects -= 1;
            if known.objects == 0 {
                self.expressions.remove(&expression);
                self.pending.push(Event::SelectorGone(expression));
            }
        }
    }

    fn replace_types(&mut self, before: Vec<Arc<DeviceType>>, now: Vec<Arc<DeviceType>>) {
        for device_type in now {
            if let Some(devices) = self.types.get_mut(&device_type) {
                *devices += 1;
                continue;
            }
            let each = self.expressions.iter().map(|(expression, used)| SelectorEvaluation {
                expression: expression.clone(),
                verdicts: vec![(device_type.clone(), used.evaluate(&device_type))],
            });
            let evaluations: Vec<_> = each.collect();
            if !evaluations.is_empty() {
                self.pending.push(Event::SelectorsEvaluated(evaluations));
            }
            self.types.insert(device_type, 1);
        }
        for device_type in before {
            let Some(devices) = self.types.get_mut(&device_type) else { continue };
            *devices -= 1;
            if *devices == 0 {
                self.types.remove(&device_type);
                self.pending.push(Event::DeviceTypeGone(device_type));
            }
        }
    }
}

fn asked_in(request: &model::DeviceRequest) -> Vec<Arc<str>> {
    let asked = match &request.alternatives {
        RequestAlternatives::Exactly(asked) => std::slice::from_ref(asked),
        RequestAlternatives::FirstAvailable(all) => all,
        RequestAlternatives::Unknown => &[],
    };
    asked.iter().flat_map(|it| expressions(&it.selectors)).collect()
}

fn expressions(selectors: &[DeviceSelector]) -> impl Iterator<Item = Arc<str>> + '_ {
    selectors.iter().filter_map(|selector| match selector {
        DeviceSelector::Cel(expression) => Some(expression.clone()),
        DeviceSelector::Unknown => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Attribute, Device, DevicePlace};

    fn class(name: &str, expression: &str) -> DeviceClass {
        DeviceClass {
            name: name.into(),
            created_at_unix_s: 0,
            selectors: vec![DeviceSelector::Cel(expression.into())],
            configs: Vec::new(),
            extended_resource: None,
        }
    }

    fn slice(name: &str, cores: &[i64]) -> ResourceSlice {
        let device = |cores: &i64| Device {
            device_type: Arc::new(DeviceType {
                driver: "d".into(),
                attributes: [("cores".into(), Attribute::Int(*cores))].into(),
                ..DeviceType::default()
            }),
            ..Device::default()
        };
        ResourceSlice {
            name: name.into(),
            driver: "d".into(),
            pool: "p".into(),
            generation: 1,
            slice_count: 1,
            place: DevicePlace::AllNodes,
            devices: cores.iter().map(device).collect(),
            shared_counters: Vec::new(),
        }
    }

    const MANY: &str = "device.attributes['d'].cores > 4";

    fn evaluated(events: Vec<Event>) -> Vec<SelectorVerdict> {
        let evaluations = events.into_iter().flat_map(|event| match event {
            Event::SelectorsEvaluated(evaluations) => evaluations,
            _ => Vec::new(),
        });
        evaluations.flat_map(|it| it.verdicts).map(|(_, verdict)| verdict).collect()
    }

    #[test]
    fn each_pair_is_evaluated_once_whatever_comes_first() {
        let mut all = SelectorEvaluations::default();
        all.slice_seen(&slice("s", &[2, 8, 8]));
        assert!(all.take_pending().is_empty());
        all.class_seen(&class("a", MANY));
        let found = evaluated(all.take_pending());
        assert_eq!(found, [SelectorVerdict::DoesNotMatch, SelectorVerdict::Matches]);
        all.class_seen(&class("b", MANY));
        all.slice_seen(&slice("t", &[8]));
        assert!(all.take_pending().is_empty(), "known already");
        all.slice_seen(&slice("u", &[16]));
        assert_eq!(evaluated(all.take_pending()), [SelectorVerdict::Matches]);
    }

    #[test]
    fn what_no_object_has_any_more_is_forgotten() {
        let mut all = SelectorEvaluations::default();
        all.slice_seen(&slice("s", &[2, 2]));
        all.class_seen(&class("a", MANY));
        all.class_seen(&class("b", MANY));
        all.take_pending();
        all.class_gone("a");
        assert!(all.take_pending().is_empty(), "the other class has it");
        all.class_gone("b");
        assert!(matches!(&all.take_pending()[..], [Event::SelectorGone(it)] if **it == *MANY));
        all.slice_seen(&slice("s", &[]));
        assert!(matches!(&all.take_pending()[..], [Event::DeviceTypeGone(_)]));
    }
}

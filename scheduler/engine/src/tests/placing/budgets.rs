//! PodDisruptionBudgets that come, change and go.

use std::sync::Arc;

use model::{LabelSelector, ObjectKey, PodDisruptionBudget};

use super::story::{NAMESPACES, Story, labels};

impl Story {
    pub fn change_budget(&mut self) {
        let name = ["b1", "b2"][self.below(2)];
        let key = ObjectKey::new(NAMESPACES[self.below(2)], name);
        let before = self.cluster.objects.budgets.get(&key).cloned();
        let app = labels(&[("app", format!("a{}", self.below(3)))]);
        let selector =
            if self.one_in(8) { LabelSelector::EVERYTHING } else { LabelSelector::of_labels(&app) };
        let keeps_selector = !self.one_in(3);
        let known = before.as_ref().filter(|_| keeps_selector);
        let selector = known.map_or(selector, |known| known.selector.clone());
        let disruptions_allowed = i32::try_from(self.below(3)).unwrap();
        let disrupted = (0..self.below(3)).map(|_| format!("p{}", self.below(self.pods + 1)));
        let disrupted_pods = disrupted.map(|name| Arc::from(name.as_str())).collect();
        let after = PodDisruptionBudget { key, selector, disruptions_allowed, disrupted_pods };
        if before.is_some() && self.one_in(5) {
            self.cluster.objects.budgets.remove(&after.key);
            self.placing.budget_changed(before.as_ref(), None);
            return;
        }
        self.cluster.objects.budgets.insert(after.key.clone(), after.clone());
        self.placing.budget_changed(before.as_ref(), Some(&after));
    }
}

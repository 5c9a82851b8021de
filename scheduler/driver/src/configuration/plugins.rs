//! `plugins` of a profile: which of them take part at which point, and what scores weigh. Their order is
//! kube-scheduler's and cannot be chosen. What does not exist here is refused by name.

use std::collections::BTreeSet;

use engine::{Plugin, Point, Role, Rules};
use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ProfileError;

/// The field of each extension point.
macro_rules! plugins {
    ($($field:ident: $point:ident,)+) => {
        #[derive(Debug, Default, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        pub(super) struct Plugins {
            /// At every point that a plugin has; a point's own list goes before.
            multi_point: PluginSet,
            $($field: PluginSet,)+
        }

        impl Plugins {
            fn of(&self, point: Point) -> &PluginSet {
                match point {
                    $(Point::$point => &self.$field,)+
                }
            }

            fn points(&self) -> impl Iterator<Item = (Point, &PluginSet)> {
                [$((Point::$point, &self.$field)),+].into_iter()
            }
        }
    };
}

plugins! {
    pre_enqueue: PreEnqueue,
    queue_sort: QueueSort,
    pre_filter: PreFilter,
    filter: Filter,
    post_filter: PostFilter,
    pre_score: PreScore,
    score: Score,
    reserve: Reserve,
    permit: Permit,
    pre_bind: PreBind,
    bind: Bind,
    post_bind: PostBind,
    placement_generate: PlacementGenerate,
    placement_score: PlacementScore,
}

/// Plugins of one extension point.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct PluginSet {
    /// Beside those that are on by default.
    enabled: Vec<NamedPlugin>,
    /// `*` is all of them.
    disabled: Vec<NamedPlugin>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct NamedPlugin {
    /// kube-scheduler's name, or Corridor.
    name: String,
    /// Of a score. 0 is the default weight.
    weight: i32,
}

/// In a list of disabled plugins: all of them.
const ALL: &str = "*";

/// Files for kube-scheduler that switch everything off do not mean this one, which they do not know.
const OURS: Plugin = Plugin::Corridor;

impl Plugins {
    /// Sets what the file says of each plugin.
    pub fn apply(&self, rules: &mut Rules) -> Result<(), ProfileError> {
        self.multi_point.check("multiPoint", None)?;
        for (point, set) in self.points() {
            set.check(point.name(), Some(point))?;
        }
        self.refuse_without_ours()?;
        for plugin in Plugin::ALL.iter().copied().filter(|plugin| *plugin != OURS) {
            match plugin.registration().role {
                Role::Optional => self.switch(plugin, rules)?,
                Role::Required => self.refuse_off(plugin)?,
            }
        }
        for (point, set) in [("multiPoint", &self.multi_point), ("score", &self.score)] {
            for plugin in &set.enabled {
                plugin.weigh(point, rules)?;
            }
        }
        Ok(())
    }

    /// Whether the plugin takes part at a point: what is said of the point goes before what is said of all.
    fn is_on(&self, plugin: Plugin, point: Point) -> bool {
        let of_all = self.multi_point.enables(plugin) || !self.multi_point.disables(plugin);
        let set = self.of(point);
        set.enables(plugin) || of_all && !set.disables(plugin)
    }

    fn switch(&self, plugin: Plugin, rules: &mut Rules) -> Result<(), ProfileError> {
        let registration = plugin.registration();
        if plugin == Plugin::DefaultPreemption {
            rules.switched_off.preemption = !self.is_on(plugin, Point::PostFilter);
        }
        let halves = [(Point::PreFilter, Point::Filter), (Point::PreScore, Point::Score)];
        for (before, point) in halves {
            if !registration.is_at(point) {
                continue;
            }
            let is_on = self.is_on(plugin, point);
            let prepares = !registration.is_at(before) || self.is_on(plugin, before);
            // Half of a plugin that rejects Pods before any Node is looked at cannot be switched off.
            let rejects_early = point == Point::Filter && registration.rejects_early();
            if is_on && !prepares || !is_on && prepares && rejects_early {
                let (first, second) = (before.name(), point.name());
                return Err(ProfileError::Half { plugin: plugin.name(), first, second });
            }
            let off = match point {
                Point::Filter => &mut rules.switched_off.filters,
                _ => &mut rules.switched_off.scores,
            };
            if !is_on {
                off.insert(plugin);
            }
        }
        Ok(())
    }

    fn refuse_off(&self, plugin: Plugin) -> Result<(), ProfileError> {
        let mut points = plugin.registration().points.iter();
        match points.find(|point| !self.is_on(plugin, **point)) {
            Some(point) => {
                Err(ProfileError::Disabled { point: point.name(), plugin: plugin.name() })
            }
            None => Ok(()),
        }
    }

    fn refuse_without_ours(&self) -> Result<(), ProfileError> {
        let of_all = ("multiPoint", &self.multi_point);
        let sets = self.points().map(|(point, set)| (point.name(), set));
        match sets.chain([of_all]).find(|(_, set)| set.names(OURS)) {
            Some((point, _)) => Err(ProfileError::Disabled { point, plugin: OURS.name() }),
            None => Ok(()),
        }
    }
}

impl PluginSet {
    fn enables(&self, plugin: Plugin) -> bool {
        self.enabled.iter().any(|it| it.name == plugin.name())
    }

    fn disables(&self, plugin: Plugin) -> bool {
        self.names(plugin) || self.disabled.iter().any(|it| it.name == ALL)
    }

    fn names(&self, plugin: Plugin) -> bool {
        self.disabled.iter().any(|it| it.name == plugin.name())
    }

    /// No point: all of them.
    fn check(&self, name: &'static str, point: Option<Point>) -> Result<(), ProfileError> {
        let mut seen = BTreeSet::new();
        for plugin in &self.enabled {
            let named = plugin.name.clone();
            let Some(known) = Plugin::by_name(&plugin.name) else {
                return Err(ProfileError::UnknownPlugin { point: name, plugin: named });
            };
            if point.is_some_and(|point| !known.registration().is_at(point)) {
                return Err(ProfileError::NotThere { point: name, plugin: named });
            }
            if !seen.insert(&plugin.name) {
                return Err(ProfileError::EnabledTwice { point: name, plugin: named });
            }
        }
        let unknown = |it: &&NamedPlugin| it.name != ALL && Plugin::by_name(&it.name).is_none();
        match self.disabled.iter().find(unknown) {
            Some(plugin) => {
                Err(ProfileError::UnknownPlugin { point: name, plugin: plugin.name.clone() })
            }
            None => Ok(()),
        }
    }
}

impl NamedPlugin {
    /// Plugins that score nothing have a weight without a meaning, as in kube-scheduler.
    fn weigh(&self, point: &'static str, rules: &mut Rules) -> Result<(), ProfileError> {
        let scoring = Plugin::by_name(&self.name)
            .filter(|plugin| plugin.registration().is_at(Point::Score))
            .filter(|plugin| plugin.registration().role == Role::Optional);
        let Some(plugin) = scoring else { return Ok(()) };
        let refused =
            || ProfileError::Weight { point, plugin: self.name.clone(), weight: self.weight };
        let weight = self.weight.try_into().map_err(|_| refused())?;
        rules.weights.insert(plugin, weight);
        Ok(())
    }
}

#[cfg(test)]
mod tests;

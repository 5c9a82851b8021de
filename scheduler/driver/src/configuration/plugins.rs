//! `plugins` of a profile: which of them take part at which point, and what scores weigh. Their order is
//! kube-scheduler's and cannot be chosen. What does not exist here is refused by name.

use std::collections::BTreeSet;

use engine::{Plugin as RuleName, Rules, Weights};
use schemars::JsonSchema;
use serde::Deserialize;

use super::error::ProfileError;
use super::plugin_table::{Known, OURS, PLUGINS, Point, Role, known};

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Plugins {
    /// At every point that a plugin has; a point's own list goes before.
    multi_point: PluginSet,
    pre_enqueue: PluginSet,
    queue_sort: PluginSet,
    pre_filter: PluginSet,
    filter: PluginSet,
    post_filter: PluginSet,
    pre_score: PluginSet,
    score: PluginSet,
    reserve: PluginSet,
    permit: PluginSet,
    pre_bind: PluginSet,
    bind: PluginSet,
    post_bind: PluginSet,
    placement_generate: PluginSet,
    placement_score: PluginSet,
}

/// Plugins of one extension point.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct PluginSet {
    /// Beside those that are on by default.
    enabled: Vec<Plugin>,
    /// `*` is all of them.
    disabled: Vec<Plugin>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Plugin {
    /// kube-scheduler's name, or Corridor.
    name: String,
    /// Of a score. 0 is the default weight.
    weight: i32,
}

/// In a list of disabled plugins: all of them.
const ALL: &str = "*";

/// Filters that reject Pods before any Node is looked at: half of such a one cannot be switched off.
const REJECT_EARLY: [RuleName; 3] =
    [RuleName::NodeAffinity, RuleName::PodTopologySpread, RuleName::InterPodAffinity];

impl Plugins {
    /// Sets what the file says of each plugin. What people should know about it is noted.
    pub fn apply(&self, rules: &mut Rules, notes: &mut Vec<String>) -> Result<(), ProfileError> {
        self.multi_point.check("multiPoint", None)?;
        for (point, set) in self.points() {
            set.check(point.name(), Some(point))?;
        }
        self.refuse_without_ours()?;
        for plugin in &PLUGINS {
            match plugin.role {
                Role::Rule(rule) => self.switch(plugin, rule, rules)?,
                Role::Preemption => {
                    rules.switched_off.preemption = !self.is_on(plugin, Point::PostFilter);
                }
                Role::Indispensable => self.refuse_off(plugin)?,
                Role::NotImplemented => notes.extend(self.note_of(plugin)),
            }
        }
        for (point, set) in [("multiPoint", &self.multi_point), ("score", &self.score)] {
            for plugin in &set.enabled {
                plugin.weigh(point, &mut rules.weights)?;
            }
        }
        Ok(())
    }

    /// Whether the plugin takes part at a point: what is said of the point goes before what is said of all.
    fn is_on(&self, plugin: &Known, point: Point) -> bool {
        let of_all = self.multi_point.enables(plugin) || !self.multi_point.disables(plugin);
        let set = self.of(point);
        set.enables(plugin) || of_all && !set.disables(plugin)
    }

    fn switch(
        &self,
        plugin: &Known,
        rule: RuleName,
        rules: &mut Rules,
    ) -> Result<(), ProfileError> {
        let halves = [(Point::PreFilter, Point::Filter), (Point::PreScore, Point::Score)];
        for (before, point) in halves {
            if !plugin.is_at(point) {
                continue;
            }
            let is_on = self.is_on(plugin, point);
            let prepares = !plugin.is_at(before) || self.is_on(plugin, before);
            let rejects_early = point == Point::Filter && REJECT_EARLY.contains(&rule);
            if is_on && !prepares || !is_on && prepares && rejects_early {
                let (first, second) = (before.name(), point.name());
                return Err(ProfileError::Half { plugin: plugin.name, first, second });
            }
            let off = match point {
                Point::Filter => &mut rules.switched_off.filters,
                _ => &mut rules.switched_off.scores,
            };
            if !is_on {
                off.insert(rule);
            }
        }
        Ok(())
    }

    fn refuse_off(&self, plugin: &Known) -> Result<(), ProfileError> {
        match plugin.points.iter().find(|point| !self.is_on(plugin, **point)) {
            Some(point) => Err(ProfileError::Disabled { point: point.name(), plugin: plugin.name }),
            None => Ok(()),
        }
    }

    /// Files for kube-scheduler that switch everything off do not mean ours, which they do not know.
    fn refuse_without_ours(&self) -> Result<(), ProfileError> {
        let of_all = ("multiPoint", &self.multi_point);
        let mut sets = self.points().into_iter().map(|(point, set)| (point.name(), set));
        match sets.by_ref().chain([of_all]).find(|(_, set)| set.names(&OURS)) {
            Some((point, _)) => Err(ProfileError::Disabled { point, plugin: OURS.name }),
            None => Ok(()),
        }
    }

    /// For a plugin that is named and has nothing to do here.
    fn note_of(&self, plugin: &Known) -> Option<String> {
        let sets = self.points().map(|(_, set)| set);
        let mut sets = sets.into_iter().chain([&self.multi_point]);
        let is_named = sets.any(|set| set.enables(plugin) || set.names(plugin));
        is_named.then(|| format!("{} is not used: Pods that need it are held", plugin.name))
    }

    fn of(&self, point: Point) -> &PluginSet {
        match point {
            Point::PreEnqueue => &self.pre_enqueue,
            Point::QueueSort => &self.queue_sort,
            Point::PreFilter => &self.pre_filter,
            Point::Filter => &self.filter,
            Point::PostFilter => &self.post_filter,
            Point::PreScore => &self.pre_score,
            Point::Score => &self.score,
            Point::Reserve => &self.reserve,
            Point::Permit => &self.permit,
            Point::PreBind => &self.pre_bind,
            Point::Bind => &self.bind,
            Point::PostBind => &self.post_bind,
            Point::PlacementGenerate => &self.placement_generate,
            Point::PlacementScore => &self.placement_score,
        }
    }

    fn points(&self) -> [(Point, &PluginSet); 14] {
        [
            Point::PreEnqueue,
            Point::QueueSort,
            Point::PreFilter,
            Point::Filter,
            Point::PostFilter,
            Point::PreScore,
            Point::Score,
            Point::Reserve,
            Point::Permit,
            Point::PreBind,
            Point::Bind,
            Point::PostBind,
            Point::PlacementGenerate,
            Point::PlacementScore,
        ]
        .map(|point| (point, self.of(point)))
    }
}

impl PluginSet {
    fn enables(&self, plugin: &Known) -> bool {
        self.enabled.iter().any(|it| it.name == plugin.name)
    }

    fn disables(&self, plugin: &Known) -> bool {
        self.names(plugin) || self.disabled.iter().any(|it| it.name == ALL)
    }

    fn names(&self, plugin: &Known) -> bool {
        self.disabled.iter().any(|it| it.name == plugin.name)
    }

    /// No point: all of them.
    fn check(&self, name: &'static str, point: Option<Point>) -> Result<(), ProfileError> {
        let mut seen = BTreeSet::new();
        for plugin in &self.enabled {
            let named = plugin.name.clone();
            let Some(known) = known(&plugin.name) else {
                return Err(ProfileError::UnknownPlugin { point: name, plugin: named });
            };
            if point.is_some_and(|point| !known.is_at(point)) {
                return Err(ProfileError::NotThere { point: name, plugin: named });
            }
            if !seen.insert(&plugin.name) {
                return Err(ProfileError::EnabledTwice { point: name, plugin: named });
            }
        }
        let unknown = |it: &&Plugin| it.name != ALL && known(&it.name).is_none();
        match self.disabled.iter().find(unknown) {
            Some(plugin) => {
                Err(ProfileError::UnknownPlugin { point: name, plugin: plugin.name.clone() })
            }
            None => Ok(()),
        }
    }
}

impl Plugin {
    /// Plugins that score nothing have a weight without a meaning, as in kube-scheduler.
    fn weigh(&self, point: &'static str, weights: &mut Weights) -> Result<(), ProfileError> {
        let Some(weight) = weight_of(weights, &self.name) else { return Ok(()) };
        let plugin = self.name.clone();
        let refused = ProfileError::Weight { point, plugin, weight: self.weight };
        *weight = self.weight.try_into().map_err(|_| refused)?;
        Ok(())
    }
}

fn weight_of<'a>(weights: &'a mut Weights, plugin: &str) -> Option<&'a mut u32> {
    Some(match plugin {
        "TaintToleration" => &mut weights.taint_toleration,
        "NodeAffinity" => &mut weights.node_affinity,
        "NodeResourcesFit" => &mut weights.node_resources_fit,
        "PodTopologySpread" => &mut weights.pod_topology_spread,
        "InterPodAffinity" => &mut weights.inter_pod_affinity,
        "NodeResourcesBalancedAllocation" => &mut weights.balanced_allocation,
        "ImageLocality" => &mut weights.image_locality,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;

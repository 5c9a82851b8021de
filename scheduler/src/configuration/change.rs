//! What new settings ask of a process that runs.

use controllers::Settings;
use engine::EngineConfig;

use super::Configuration;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SettingsChange {
    /// For the scheduler, at once.
    pub engine: Option<EngineConfig>,
    /// For the controllers, at once.
    pub settings: Option<Settings>,
    /// What holds only after the next start, by the names of the fields.
    pub at_start: Vec<&'static str>,
}

impl SettingsChange {
    pub fn between(running: &Configuration, new: &Configuration) -> Self {
        let engine = engine(&running.scheduler.engine, &new.scheduler.engine);
        // The identity of this process does not come from the configuration.
        let settings = Settings {
            cluster_name: running.settings.cluster_name.clone(),
            identity: running.settings.identity.clone(),
            ..new.settings.clone()
        };
        let names =
            |it: &Configuration| it.scheduler.engine.profiles.names().cloned().collect::<Vec<_>>();
        let election =
            |it: &Configuration| (it.scheduler.election.clone(), it.scheduler.leader_elect);
        let fixed = [
            ("profiles[].schedulerName", names(running) != names(new)),
            ("leaderElection", election(running) != election(new)),
            ("backends", running.corridor.backends != new.corridor.backends),
            (
                "attestation.trustedKeys",
                running.corridor.attestation.trusted_keys != new.corridor.attestation.trusted_keys,
            ),
        ];
        Self {
            engine: (engine != running.scheduler.engine).then_some(engine),
            settings: (running.settings != settings).then_some(settings),
            at_start: fixed.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect(),
        }
    }

    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// For people.
    pub fn message(&self) -> String {
        let mut parts = Vec::new();
        if self.engine.is_some() {
            parts.push("the scheduler's settings hold now".to_owned());
        }
        if self.settings.is_some() {
            parts.push("the controllers' settings hold now".to_owned());
        }
        if !self.at_start.is_empty() {
            parts.push(format!("{} will hold after a restart", self.at_start.join(", ")));
        }
        parts.join("; ")
    }
}

/// The names that are served stay as they are: a profile that was taken away keeps its rules until the next
/// start, and a new one waits for it.
fn engine(running: &EngineConfig, new: &EngineConfig) -> EngineConfig {
    let EngineConfig { seed, events, cache, .. } = *running;
    let mut engine = EngineConfig { seed, events, cache, ..new.clone() };
    engine.profiles = running.profiles.clone();
    for name in running.profiles.names() {
        if new.profiles.names().any(|it| it == name) {
            engine.profiles.insert(name, new.profiles.of(name).clone());
        }
    }
    engine
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Plugin;
    use std::time::Duration;

    fn with_profiles(names: &[&str], weight: u32) -> Configuration {
        let mut configuration = Configuration::default();
        configuration.scheduler.engine = EngineConfig::default();
        for name in names {
            let mut profile = engine::Profile::default();
            profile.rules.weights.insert(Plugin::ImageLocality, weight);
            configuration.scheduler.engine.profiles.insert(name, profile);
        }
        configuration
    }

    #[test]
    fn the_same_is_no_change() {
        let same = Configuration::default();
        assert!(SettingsChange::between(&same, &same).is_nothing());
    }

    #[test]
    fn weights_hold_at_once() {
        let change = SettingsChange::between(&with_profiles(&["a"], 1), &with_profiles(&["a"], 9));
        let engine = change.engine.unwrap();
        assert_eq!(engine.profiles.of("a").rules.weight_of(Plugin::ImageLocality), 9);
        assert!(change.at_start.is_empty() && change.settings.is_none());
    }

    #[test]
    fn other_profiles_wait_for_a_start_and_those_that_stay_change() {
        let change =
            SettingsChange::between(&with_profiles(&["a", "b"], 1), &with_profiles(&["b", "c"], 9));
        assert_eq!(change.at_start, ["profiles[].schedulerName"]);
        let profiles = change.engine.as_ref().unwrap().profiles.clone();
        let weight = |name| profiles.of(name).rules.weight_of(Plugin::ImageLocality);
        assert_eq!((weight("a"), weight("b"), profiles.len()), (1, 9, 2));
        assert!(change.message().ends_with("will hold after a restart"), "{}", change.message());
    }

    #[test]
    fn the_controllers_settings_hold_at_once_and_their_daemons_do_not() {
        let mut new = Configuration::default();
        new.settings.ber_dwell = Duration::from_secs(7);
        new.corridor.backends.corrd_url = Some("http://elsewhere".to_owned());
        let change = SettingsChange::between(&Configuration::default(), &new);
        assert_eq!(change.settings.unwrap().ber_dwell, Duration::from_secs(7));
        assert_eq!(change.at_start, ["backends"]);
    }
}

//! Every field of `KubeSchedulerConfiguration` and of plugins' args, for docs/configuration.md.

use engine::Bypass;
use model::FailurePolicy;
use schemars::{Schema, schema_for};
use serde_json::{Value, json};

use super::{CORRIDOR_PLUGIN, KubeSchedulerConfiguration, plugin_args};
use crate::election::ElectionSettings;

/// A document, or the args of a plugin.
#[derive(Clone, Debug)]
pub struct Described {
    pub title: String,
    pub schema: Schema,
    /// What holds where nothing is said, as far as it has a default of ours.
    pub defaults: Value,
}

/// All of them.
pub fn described() -> Vec<Described> {
    let document = Described {
        title: KubeSchedulerConfiguration::KIND.to_owned(),
        schema: schema_for!(KubeSchedulerConfiguration),
        defaults: defaults(),
    };
    let args = plugin_args::schemas().map(|(plugin, schema)| Described {
        title: format!("{plugin}Args"),
        schema,
        defaults: if plugin == CORRIDOR_PLUGIN { corridor_defaults() } else { Value::Null },
    });
    [document].into_iter().chain(args).collect()
}

fn defaults() -> Value {
    let election = ElectionSettings::default();
    let seconds = |it: std::time::Duration| format!("{}s", it.as_secs());
    json!({
        "profiles": [{ "schedulerName": crds::SCHEDULER_NAME }],
        "leaderElection": {
            "leaderElect": true,
            "leaseDuration": seconds(election.lease_duration),
            "renewDeadline": seconds(election.renew_deadline),
            "retryPeriod": seconds(election.retry_period),
            "resourceLock": "leases",
            "resourceName": election.name,
            "resourceNamespace": election.namespace,
        },
    })
}

fn corridor_defaults() -> Value {
    let bypass = Bypass::default();
    let policy = match FailurePolicy::default() {
        FailurePolicy::Queue => "Queue",
        FailurePolicy::FailFast => "FailFast",
    };
    json!({
        "failurePolicy": policy,
        "bypass": { "times": bypass.times_max, "seconds": bypass.span_max.as_secs() },
    })
}

//! `corridor-scheduler run --shadow NAME`: beside another scheduler, without a single write.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use driver::{Driver, Fence, Health, Metrics, Shadow, Tenure};
use engine::Profiles;
use tracing::info;

use crate::args::RunArgs;
use crate::client;
use crate::configuration::Configuration;
use crate::http::{self, Status};
use crate::run::{RunError, configure};

/// No write passes, so none takes any time.
const NO_WRITES: Duration = Duration::ZERO;

/// Watches the cluster and compares, until told to stop. Neither election nor controllers: both write.
pub async fn look_on(
    args: &RunArgs,
    of: &str,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), RunError> {
    let access = client::find(args.kubeconfig.as_deref()).await?;
    let (configuration, _) = configure(args, &access).await?;
    let tenure = Tenure::onlooker();
    let client = client::fenced(&access, &Fence::new(tenure.clone(), NO_WRITES))?;
    let (health, metrics) =
        (Arc::new(Health::default()), Arc::new(Metrics::new(&args.cluster_name)?));
    let mut engine = configuration.scheduler.engine.clone();
    engine.profiles = profile_of(of, &configuration);
    let shadow = Shadow::of(of, &metrics.registry)?;
    let book = shadow.book();
    let driver = Driver::new(client, tenure.clone(), engine, metrics.clone(), health.clone())
        .with_shadow(shadow);
    let status = Status {
        health: health.clone(),
        metrics,
        controllers: Arc::new(controllers::Metrics::new(&args.cluster_name)),
        questions: driver.questions(),
        journal: driver.journal(),
        tenure,
        shadow: Some(book),
    };
    let routes = http::routes(status);
    let address = http::serve(args.http, routes.clone())
        .await
        .map_err(|source| RunError::Http { address: args.http, source })?;
    let https = http::serve_https(&args.https, routes, client::unfenced(&access)?).await?;
    info!(
        version = env!("CARGO_PKG_VERSION"),
        shadow = of,
        http = %address,
        https = https.map(tracing::field::display),
        "looking on; nothing is written"
    );
    // On another thread than this one, which could not notice otherwise that it is stuck.
    let mut driving = tokio::spawn(driver.run(stop));
    tokio::select! {
        ended = &mut driving => match ended {
            Ok(ended) => ended?,
            Err(failed) => return Err(RunError::Thread(io::Error::other(failed))),
        },
        stuck = health.until_stuck() => {
            health.fail(stuck.to_string());
            return Err(stuck.into());
        }
    }
    info!("stopped");
    Ok(())
}

/// The rules that the other scheduler is held to: those of the profile by its name; else those of ours, by
/// whatever name.
fn profile_of(of: &str, configuration: &Configuration) -> Profiles {
    let given = &configuration.scheduler.engine.profiles;
    let has_own = given.names().any(|name| &**name == of);
    let rules = given.of(if has_own { of } else { crds::SCHEDULER_NAME }).clone();
    let mut profiles = Profiles::default();
    profiles.insert(of, rules);
    profiles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_scheduler_is_held_to_its_own_profile_or_to_ours() {
        let mut configuration = Configuration::default();
        let mut weighed = engine::Profile::default();
        weighed.rules.weights.insert(engine::Plugin::ImageLocality, 9);
        let profiles = &mut configuration.scheduler.engine.profiles;
        profiles.insert("default-scheduler", weighed.clone());
        assert_eq!(
            profile_of("default-scheduler", &configuration).of("default-scheduler"),
            &weighed
        );
        let others = profile_of("third", &configuration);
        assert_eq!(others.of("third"), &engine::Profile::default());
        assert_eq!(others.len(), 1);
    }
}

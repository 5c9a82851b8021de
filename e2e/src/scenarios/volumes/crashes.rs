//! The scheduler is killed between any two of the writes by which a Pod with volumes is bound.

use super::gate::{GatedScheduler, Then, Write};
use super::{FAST, LOCAL, TEAM, VolumeSite};
use crate::error::{Result, ensure};
use crate::objects::nodes::NodeTemplate;
use crate::objects::pods::{PodState as _, PodTemplate};
use crate::objects::volumes::{ClaimState, ClaimTemplate, ClassTemplate, VolumeTemplate};
use crate::provisioner::{self, Provisioner};

/// A write, how many of its kind come before it, and whether it is carried out.
const POINTS: [(Write, usize, bool); 7] = [
    (Write::Volume, 0, false),
    (Write::Volume, 0, true),
    (Write::Volume, 1, false),
    (Write::Volume, 1, true),
    (Write::Claim, 0, false),
    (Write::Claim, 0, true),
    (Write::Binding, 0, false),
];

/// A Pod with two claims for volumes that people made, and one to be provisioned. The next process goes on from
/// what is written, and no claim ever has a second volume, though there are enough of them.
pub async fn killed_between_any_two_writes(site: &VolumeSite) -> Result<()> {
    let admin = site.admin();
    site.cluster.create_nodes(2, &NodeTemplate::new("4", "16Gi")).await?;
    ClassTemplate::made_by_hand().create(admin, LOCAL).await?;
    provisioner::class().create(admin, FAST).await?;
    let _provisioner = Provisioner::start(admin);
    for (number, (write, others, is_carried_out)) in POINTS.into_iter().enumerate() {
        for node in ["node-1", "node-2"] {
            for which in ["a", "b"] {
                let volume = VolumeTemplate::local(LOCAL, "5Gi", node);
                site.create_volume(&format!("{which}-{number}-{node}"), &volume).await?;
            }
        }
        let claims = [format!("a-{number}"), format!("b-{number}"), format!("c-{number}")];
        for (claim, class) in claims.iter().zip([LOCAL, LOCAL, FAST]) {
            ClaimTemplate::new(class, "5Gi").create(admin, TEAM, claim).await?;
        }
        let then = if is_carried_out { Then::HoldReply } else { Then::HoldCall };
        let scheduler = GatedScheduler::start(&site.cluster, write, others, then).await?;
        let claims: Vec<&str> = claims.iter().map(String::as_str).collect();
        let pod = format!("pod-{number}");
        site.create_pod(&pod, &PodTemplate::small().claims(&claims)).await?;
        scheduler.kill_when_reached().await?;
        let was_bound =
            site.cluster.until_pod(TEAM, &pod, "there", |_| true).await?.node().is_some();
        ensure(!was_bound, || format!("{pod} was bound before {write:?} was done"))?;

        let next = site.cluster.start_scheduler().await?;
        site.until_bound(&pod).await?;
        for claim in claims {
            site.until_claim(claim, "bound when its Pod is", ClaimState::is_bound).await?;
        }
        let code = next.terminate().await?;
        ensure(code == 0, || format!("the scheduler ended with exit code {code} after SIGTERM"))?;
    }
    Ok(())
}

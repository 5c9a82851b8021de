//! Two replicas, one of which leads: killed, stopped past its Lease and continued, restarted in turn and
//! cut off, under load. The tool `failover` does the same as often as one likes.

#![allow(clippy::panic, reason = "a test ends at the first thing that is wrong")]

use e2e::binaries::say;
use e2e::objects::nodes::NodeTemplate;
use e2e::objects::pods::{PodState as _, PodTemplate};
use e2e::replicas::line::Condition;
use e2e::replicas::rounds::{End, Outcome, play};
use e2e::replicas::site::ReplicaSite;
use e2e::replicas::{LEASE_DURATION, SLACK};
use e2e::{Error, Result};

async fn play_with_two(ends: &[End]) -> Result<Outcome> {
    let mut site = ReplicaSite::start(2).await?;
    let outcome = play(&mut site, ends).await?;
    say(&format!(
        "{} changes of leader: {}; {} Pods, waiting {}; {} late Bindings refused",
        ends.len(),
        outcome.takeovers,
        outcome.pods,
        outcome.waits,
        outcome.refused,
    ));
    Ok(outcome)
}

fn ok<T>(outcome: Result<T>) -> T {
    outcome.unwrap_or_else(|problem| panic!("{problem}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_ends_is_succeeded_and_refused_when_it_comes_back() {
    let ends = [[End::Killed; 5], [End::Stopped; 5]];
    let outcome = ok(play_with_two(ends.as_flattened()).await);
    assert!(outcome.refused >= 5, "only {} late Bindings were refused", outcome.refused);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_restarted_in_turn_keep_nobody_waiting() {
    let outcome = ok(play_with_two(&[End::Restarted; 4]).await);
    let longest = outcome.waits.max();
    assert!(longest <= LEASE_DURATION + SLACK, "a Pod waited {longest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_cannot_renew_stops_leading_and_comes_back_by_itself() {
    ok(cut_off_and_back().await);
}

async fn cut_off_and_back() -> Result<()> {
    let site = ReplicaSite::start(1).await?;
    let replica = &site.replicas[0];
    site.cluster.ensure_namespace("team-a").await?;
    site.cluster.create_nodes(1, &NodeTemplate::new("4", "64Gi")).await?;
    site.leader().await?;
    let former = site.term().await?;
    replica.line.set(Condition::Cut);
    let led_on = replica.until_it_leads(false, LEASE_DURATION).await?;
    say(&format!("cut off, it led for another {} ms", led_on.as_millis()));
    PodTemplate::small().create(site.admin(), "team-a", "meanwhile").await?;
    replica.line.set(Condition::Open);
    let pod =
        site.cluster.until_pod("team-a", "meanwhile", "bound", |pod| pod.node().is_some()).await?;
    let leader = pod.annotation("corridoros.io/leader").unwrap_or_default().to_owned();
    if leader == former || leader != site.term().await? {
        return Err(Error::Violated(format!("{former} was cut off, and came back as {leader}")));
    }
    Ok(())
}

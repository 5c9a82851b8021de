use super::*;
use crate::corrd::PathSpec;
use crate::identity::Owner;
use crate::simulated::records::{CorridorRecord, ForcedCorridor};

fn at(seconds: i64) -> Timestamp {
    // A multiple of the period.
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn record(number: u32, forced_gbps: Option<f64>) -> Change {
    let path = PathSpec { lanes: 1, lambda_nm: vec![1550], min_gbps: 50, ..PathSpec::default() };
    Change::PutCorridor(Box::new(CorridorRecord {
        id: format!("cor-{number}"),
        owner: Owner::new("c", format!("o{number}")).unwrap(),
        key: format!("o{number}:0123456789abcdef").parse().unwrap(),
        asked: path.clone(),
        path,
        created_at: at(0),
        lease_expires_at: at(100_000),
        tuned_at: at(0),
        forced: ForcedCorridor { achievable_gbps: forced_gbps, ..ForcedCorridor::default() },
    }))
}

struct World {
    ledger: Ledger,
    feed: Feed,
}

impl World {
    fn new() -> Self {
        let mut world = Self { ledger: Ledger::default(), feed: Feed::new("epoch".to_owned(), 1) };
        world.feed.look(&world.ledger, at(0));
        world
    }

    fn change(&mut self, change: Change, now: Timestamp) -> bool {
        self.feed.touch(&change);
        self.ledger.apply(change);
        self.feed.look(&self.ledger, now)
    }

    /// Corridors and losses that a reader at `since` is told about.
    fn news(&self, since: &Revision) -> Option<(usize, usize, bool)> {
        let page = self.feed.news_since(Some(since))?;
        Some((page.corridors.len(), page.gone.len(), page.full))
    }
}

#[test]
fn only_crossings_are_news_between_samples() {
    let mut world = World::new();
    assert!(world.change(record(1, None), at(1)));
    let since = world.feed.now();
    assert!(!world.change(record(1, Some(51.0)), at(2)));
    assert!(world.change(record(1, Some(49.0)), at(3)), "it fell below");
    assert!(!world.change(record(1, Some(10.0)), at(4)), "it is still below");
    assert!(world.change(record(1, Some(50.0)), at(5)), "it is back");
    assert_eq!(world.news(&since), Some((1, 0, false)));
}

#[test]
fn every_object_is_sampled_once_a_period() {
    let mut world = World::new();
    world.change(record(1, None), at(1));
    world.change(record(2, None), at(2));
    let since = world.feed.now();
    assert!(!world.feed.look(&world.ledger, at(9)));
    assert_eq!(world.news(&since), None);
    assert!(world.feed.look(&world.ledger, at(10)));
    assert_eq!(world.news(&since), Some((2, 0, false)));
    assert!(!world.feed.look(&world.ledger, at(19)));
}

#[test]
fn a_reader_that_missed_too_many_losses_gets_everything() {
    let mut world = World::new();
    let since = world.feed.now();
    for number in 0..2 {
        world.change(record(number, None), at(1));
        world.change(Change::DropCorridor(format!("cor-{number}")), at(1));
    }
    assert_eq!(world.news(&since), Some((0, 2, false)));
    let later = world.feed.now();
    for number in 0..u32::try_from(GONE_MAX).unwrap() {
        world.change(record(number, None), at(1));
        world.change(Change::DropCorridor(format!("cor-{number}")), at(1));
    }
    assert_eq!(world.news(&since), Some((0, 0, true)));
    assert!(world.news(&later).is_some_and(|(_, gone, full)| gone == GONE_MAX && !full));
}

#[test]
fn a_revision_from_the_future_or_another_epoch_is_answered_in_full() {
    let mut world = World::new();
    world.change(record(1, None), at(1));
    for since in ["epoch-99", "other-1", "epoch-", "-1", ""] {
        assert_eq!(world.news(&Revision(since.to_owned())), Some((1, 0, true)), "{since:?}");
    }
    assert!(world.feed.news_since(None).is_some_and(|page| page.full));
}

//! One pace, shared fairly among users: a loop of one user takes nothing from another. Time is an argument.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::pace::Pace;

/// Users that are remembered: the recent ones, far more than ask at a time. Of more, the one that has
/// asked the least is forgotten, and begins anew.
const USERS_MAX: usize = 256;

/// Whose questions count together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Requester {
    /// Plain HTTP, which knows no users.
    Loopback,
    User(Arc<str>),
}

impl Requester {
    /// The ServiceAccounts of a namespace are one user: a tenant that may create one may create a thousand.
    pub fn of_user(name: &str) -> Self {
        let account = name.strip_prefix("system:serviceaccount:").and_then(|it| it.split_once(':'));
        match account {
            Some((namespace, _)) => {
                Self::User(format!("system:serviceaccounts:{namespace}").into())
            }
            None => Self::User(name.into()),
        }
    }
}

/// A bucket of tokens for each user, and one stream of tokens that fills them: it is divided equally among the
/// buckets that are not full. So one user alone has the whole pace, `n` users have an `n`th each, all together
/// never more than the pace, and a user without recent requests has a burst at hand.
///
/// It is kept as a clock that runs slower the more buckets are being filled, and the moment on that clock at
/// which each is full again.
#[derive(Debug)]
pub struct FairPace {
    /// In which one token comes back.
    every: Duration,
    /// In which an empty bucket fills.
    whole: Duration,
    /// Up to when the clock has been brought; `None` = no request yet.
    brought_to: Option<Instant>,
    clock: Duration,
    /// On that clock, of the users whose bucket is not full.
    full_at: HashMap<Requester, Duration>,
}

impl FairPace {
    pub fn new(pace: Pace) -> Self {
        let every = Duration::from_secs(1) / pace.per_second.max(1);
        Self {
            every,
            whole: every * pace.burst.max(1),
            brought_to: None,
            clock: Duration::ZERO,
            full_at: HashMap::new(),
        }
    }

    /// Takes a token of this user, or says how long it takes until there is one if no other user comes.
    pub fn take(&mut self, user: &Requester, now: Instant) -> Result<(), Duration> {
        self.advance(now);
        let was_full_at = self.full_at.get(user).copied().unwrap_or(self.clock);
        let full_at = was_full_at + self.every;
        let too_soon_by = full_at.saturating_sub(self.clock).saturating_sub(self.whole);
        if !too_soon_by.is_zero() {
            return Err(too_soon_by * self.shares());
        }
        self.make_room(user);
        self.full_at.insert(user.clone(), full_at);
        Ok(())
    }

    /// Brings the clock to `now`; a user whose bucket fills on the way no longer takes a share.
    fn advance(&mut self, now: Instant) {
        let brought_to = self.brought_to.unwrap_or(now);
        let mut elapsed = now.saturating_duration_since(brought_to);
        self.brought_to = Some(brought_to.max(now));
        while let Some(next) = self.full_at.values().min().copied() {
            let until_next = next.saturating_sub(self.clock) * self.shares();
            if until_next > elapsed {
                self.clock += elapsed / self.shares();
                return;
            }
            elapsed -= until_next;
            self.clock = next;
            self.full_at.retain(|_, full_at| *full_at > next);
        }
    }

    fn shares(&self) -> u32 {
        u32::try_from(self.full_at.len()).unwrap_or(u32::MAX).max(1)
    }

    fn make_room(&mut self, user: &Requester) {
        if self.full_at.len() < USERS_MAX || self.full_at.contains_key(user) {
            return;
        }
        let least = self.full_at.iter().min_by_key(|(_, full_at)| **full_at);
        if let Some(least) = least.map(|(user, _)| user.clone()) {
            self.full_at.remove(&least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { per_second: 10, burst: 20 };
    const MILLISECOND: Duration = Duration::from_millis(1);

    fn user(name: &str) -> Requester {
        Requester::of_user(name)
    }

    fn taken(pace: &mut FairPace, user: &Requester, now: Instant, tries: usize) -> usize {
        (0..tries).filter(|_| pace.take(user, now).is_ok()).count()
    }

    #[test]
    fn one_user_alone_has_the_whole_pace() {
        let (mut pace, start, alone) = (FairPace::new(PACE), Instant::now(), user("alone"));
        assert_eq!(taken(&mut pace, &alone, start, 100), 20);
        let mut passed = 0;
        for millisecond in 1..=10_000 {
            passed += taken(&mut pace, &alone, start + millisecond * MILLISECOND, 3);
        }
        assert_eq!(passed, 100);
    }

    #[test]
    fn a_loop_of_one_user_takes_nothing_from_another() {
        let (mut pace, start) = (FairPace::new(PACE), Instant::now());
        let (tenant, operator) = (user("tenant"), user("operator"));
        let (mut refused, mut of_tenant) = (0, 0);
        for millisecond in 0..60_000 {
            let now = start + millisecond * MILLISECOND;
            of_tenant += taken(&mut pace, &tenant, now, 1);
            // Four in a second, which is below the half.
            if millisecond % 250 == 0 {
                refused += usize::from(pace.take(&operator, now).is_err());
            }
        }
        assert_eq!(refused, 0);
        let all = of_tenant + 240;
        assert!((590..=660).contains(&all), "{all} in 60 s: what the loop may cost is the same");
    }

    #[test]
    fn many_users_share_alike_and_together_have_one_pace() {
        let (mut pace, start) = (FairPace::new(PACE), Instant::now());
        let users: Vec<Requester> = (0..5).map(|number| user(&format!("user-{number}"))).collect();
        let mut passed = vec![0; users.len()];
        for millisecond in 0..100_000 {
            let now = start + millisecond * MILLISECOND;
            for (passed, user) in passed.iter_mut().zip(&users) {
                *passed += taken(&mut pace, user, now, 1);
            }
        }
        // Each its burst, then a fifth of the pace.
        assert!(passed.iter().all(|passed| (218..=222).contains(passed)), "{passed:?}");
    }

    #[test]
    fn a_user_that_waits_as_long_as_required_passes() {
        let (mut pace, start) = (FairPace::new(PACE), Instant::now());
        let users = [user("a"), user("b")];
        for user in &users {
            assert_eq!(taken(&mut pace, user, start, 100), 20);
        }
        let wait = pace.take(&users[0], start).unwrap_err();
        assert_eq!(wait, Duration::from_millis(200), "a half of the pace");
        assert!(pace.take(&users[0], start + wait.saturating_sub(MILLISECOND)).is_err());
        assert!(pace.take(&users[0], start + wait).is_ok());
    }

    #[test]
    fn a_long_pause_earns_one_burst_and_nothing_is_kept() {
        let (mut pace, start) = (FairPace::new(PACE), Instant::now());
        for number in 0..50 {
            taken(&mut pace, &user(&number.to_string()), start, 100);
        }
        let later = start + Duration::from_hours(1);
        assert_eq!(taken(&mut pace, &user("1"), later, 100), 20);
        assert_eq!(pace.full_at.len(), 1);
    }

    #[test]
    fn however_many_users_come_few_are_remembered() {
        let (mut pace, start) = (FairPace::new(PACE), Instant::now());
        let busy = user("busy");
        assert_eq!(taken(&mut pace, &busy, start, 100), 20);
        for number in 0..10_000 {
            assert!(pace.take(&user(&format!("u{number}")), start).is_ok());
        }
        assert_eq!(pace.full_at.len(), USERS_MAX);
        assert!(pace.take(&busy, start).is_err(), "the busiest user is not forgotten");
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing_away() {
        let (mut pace, earlier, alone) = (FairPace::new(PACE), Instant::now(), user("alone"));
        let now = earlier + Duration::from_mins(1);
        assert_eq!(taken(&mut pace, &alone, now, 100), 20);
        assert_eq!(taken(&mut pace, &alone, earlier, 100), 0);
        assert_eq!(taken(&mut pace, &alone, now, 100), 0);
    }

    #[test]
    fn the_service_accounts_of_a_namespace_are_one_user() {
        let one = user("system:serviceaccount:team-a:one");
        assert_eq!(one, user("system:serviceaccount:team-a:two"));
        assert_ne!(one, user("system:serviceaccount:team-b:one"));
        assert_ne!(user("jane"), user("joe"));
        assert_ne!(user("jane"), Requester::Loopback);
    }
}

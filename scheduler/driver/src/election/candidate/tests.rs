use super::*;
use std::time::Duration;

const WALL: Timestamp = Timestamp::UNIX_EPOCH;

const fn at(millis: u64) -> Instant {
    Instant::from_start(Duration::from_millis(millis))
}

/// 15 s, 10 s, 2 s.
fn candidate(identity: &str) -> Candidate {
    Candidate::new(ElectionSettings::default(), identity.to_owned(), at(0))
}

/// The API server's side: one Lease with its version.
#[derive(Debug, Default)]
struct Server {
    lease: Option<Lease>,
    version: u64,
}

impl Server {
    fn read(&self) -> Reply {
        self.lease.clone().map_or(Reply::NotFound, |lease| Reply::Found(Box::new(lease)))
    }

    fn write(&mut self, wanted: &Lease, create: bool) -> Reply {
        let version = |lease: &Lease| lease.metadata.resource_version.clone();
        match &self.lease {
            None if !create => return Reply::NotFound,
            Some(_) if create => return Reply::Conflict,
            Some(lease) if version(lease) != version(wanted) => return Reply::Conflict,
            _ => {}
        }
        self.version += 1;
        let mut lease = wanted.clone();
        lease.metadata.resource_version = Some(self.version.to_string());
        self.lease = Some(lease.clone());
        Reply::Found(Box::new(lease))
    }

    /// Lets a candidate act until it waits; its time does not pass meanwhile.
    fn serve(&mut self, candidate: &mut Candidate, now: Instant) {
        candidate.note_time(now, || "next".to_owned());
        for _ in 0..5 {
            match candidate.next(now, WALL) {
                Step::Wait(_) => return,
                Step::Read => {
                    candidate.after_read(now, self.read(), 0.0, || "next".to_owned());
                }
                Step::Create(lease) => candidate.after_write(now, self.write(&lease, true), 0.0),
                Step::Replace(lease) => candidate.after_write(now, self.write(&lease, false), 0.0),
            }
        }
        panic!("it never waits: {candidate:?}");
    }
}

fn term(candidate: &Candidate) -> Option<Term> {
    match candidate.leadership() {
        LeadershipState::Leading(term) => Some(term),
        LeadershipState::Following { .. } => None,
    }
}

fn name(candidate: &Candidate) -> Option<String> {
    term(candidate).and_then(|term| term.name).map(|name| name.to_string())
}

#[test]
fn the_first_takes_it_and_the_second_knows_the_leader() {
    let (mut server, mut a, mut b) = (Server::default(), candidate("a"), candidate("b"));
    server.serve(&mut a, at(0));
    server.serve(&mut b, at(0));
    assert_eq!(name(&a).as_deref(), Some("a/0"));
    assert_eq!(term(&a).unwrap().until, Some(at(10_000)));
    assert_eq!(b.leadership(), LeadershipState::Following { leader: Some("a".into()) });
    server.serve(&mut a, at(2_000));
    assert_eq!(term(&a).unwrap().until, Some(at(12_000)), "renewed");
    assert_eq!(term(&a).unwrap().began, at(0));
}

#[test]
fn a_silent_leader_is_succeeded_after_the_lease_duration_and_has_stopped_before() {
    let (mut server, mut a, mut b) = (Server::default(), candidate("a"), candidate("b"));
    server.serve(&mut a, at(0));
    let mut now = at(0);
    while term(&b).is_none() {
        server.serve(&mut b, now);
        now = now + Duration::from_millis(100);
        assert!(now < at(17_000), "nobody leads");
    }
    assert!(now > at(15_000));
    assert_eq!(name(&b).as_deref(), Some("b/1"));
    // The old one is continued: it has run out, and comes back under another name only.
    a.note_time(now, || "a2".to_owned());
    assert_eq!(term(&a), None);
    server.serve(&mut a, now);
    assert_eq!(a.leadership(), LeadershipState::Following { leader: Some("b".into()) });
}

#[test]
fn a_lease_that_is_given_back_is_taken_at_the_next_look() {
    let (mut server, mut a, mut b) = (Server::default(), candidate("a"), candidate("b"));
    server.serve(&mut a, at(0));
    server.serve(&mut b, at(0));
    let released = a.release(WALL).unwrap();
    server.write(&released, false);
    server.serve(&mut b, at(2_000));
    assert_eq!(name(&b).as_deref(), Some("b/1"));
}

#[test]
fn an_api_server_that_is_away_costs_the_term_after_the_deadline() {
    let (mut server, mut a) = (Server::default(), candidate("a"));
    server.serve(&mut a, at(0));
    let mut now = at(0);
    while term(&a).is_some() {
        assert!(now < at(10_000), "it leads beyond its deadline");
        match a.next(now, WALL) {
            Step::Wait(until) => now = until,
            Step::Read => a.after_read(now, Reply::Failed, 0.0, || unreachable!()),
            _ => a.after_write(now, Reply::Failed, 0.0),
        }
        a.note_time(now, || "a2".to_owned());
    }
    // It is back, and the Lease has not been touched since: it has expired for all.
    server.serve(&mut a, now + Duration::from_secs(6));
    assert_eq!(name(&a).as_deref(), Some("a2/1"));
}

#[test]
fn an_answer_that_was_lost_is_found_out_by_a_look() {
    let (mut server, mut a) = (Server::default(), candidate("a"));
    assert_eq!(a.next(at(0), WALL), Step::Read);
    a.after_read(at(0), Reply::NotFound, 0.0, || unreachable!());
    let Step::Create(lease) = a.next(at(0), WALL) else { panic!("{a:?}") };
    server.write(&lease, true);
    a.after_write(at(3_000), Reply::Failed, 0.0);
    assert_eq!(term(&a), None);
    server.serve(&mut a, at(5_000));
    assert_eq!(term(&a).unwrap().until, Some(at(15_000)), "renewed by the look's next step");
    // The same for a renewal: what was written counts only from a clear answer.
    let Step::Replace(lease) = a.next(at(7_000), WALL) else { panic!("{a:?}") };
    server.write(&lease, false);
    a.after_write(at(8_000), Reply::Failed, 0.0);
    assert_eq!(term(&a).unwrap().until, Some(at(15_000)));
    server.serve(&mut a, at(10_000));
    assert_eq!(term(&a).unwrap().until, Some(at(20_000)));
}

#[test]
fn doubt_is_settled_by_a_look() {
    let (mut server, mut a, mut b) = (Server::default(), candidate("a"), candidate("b"));
    server.serve(&mut a, at(0));
    a.doubt();
    server.serve(&mut a, at(500));
    assert_eq!(name(&a).as_deref(), Some("a/0"), "the API server was behind, not we");
    // It was taken by force.
    let mut stolen = server.lease.clone().unwrap();
    stolen.spec.as_mut().unwrap().holder_identity = Some("b".to_owned());
    server.write(&stolen, false);
    a.doubt();
    server.serve(&mut a, at(600));
    assert_eq!(a.leadership(), LeadershipState::Following { leader: Some("b".into()) });
    server.serve(&mut b, at(600));
    assert_eq!(term(&b), None, "whoever merely shares the name does not lead");
}

#[test]
fn a_deleted_lease_ends_the_term_and_is_made_anew() {
    let (mut server, mut a) = (Server::default(), candidate("a"));
    server.serve(&mut a, at(0));
    server.lease = None;
    server.serve(&mut a, at(2_000));
    assert_eq!(name(&a).as_deref(), Some("next/0"));
}

/// Random delays, lost answers, stopped processes and clocks that differ: never two at a time.
#[test]
fn never_two_lead_at_once() {
    let mut led = 0;
    for seed in 0..300 {
        led += Story::new(seed).play();
    }
    assert!(led > 1_000, "only {led} terms: the story is too quiet");
}

struct Story {
    server: Server,
    random: u64,
    replicas: Vec<Replica>,
    /// The time, by no replica's clock.
    now_ms: u64,
    terms: usize,
}

struct Replica {
    candidate: Candidate,
    ahead_ms: u64,
    stopped_until_ms: u64,
    terms: usize,
}

impl Story {
    fn new(seed: u64) -> Self {
        let replicas = (0..3).map(|number| Replica {
            candidate: candidate(&format!("r{number}")),
            ahead_ms: 1_000_000 * number,
            stopped_until_ms: 0,
            terms: 0,
        });
        let random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        Self {
            server: Server::default(),
            random,
            replicas: replicas.collect(),
            now_ms: 0,
            terms: 0,
        }
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound
    }

    fn play(mut self) -> usize {
        for turn in 0..2_000 {
            self.now_ms += 1 + self.below(400);
            let number = usize::try_from(self.below(3)).unwrap();
            if self.replicas[number].stopped_until_ms <= self.now_ms {
                if self.chance(40) {
                    self.replicas[number].stopped_until_ms = self.now_ms + self.below(40_000);
                } else {
                    self.act(number, turn);
                }
            }
            self.check();
        }
        self.terms
    }

    fn act(&mut self, number: usize, turn: usize) {
        let lost = self.chance(8);
        let takes_ms = self.below(3_000);
        let jitter = f64::from(u8::try_from(self.below(100)).unwrap()) / 100.0;
        let (now_ms, server) = (self.now_ms, &mut self.server);
        let replica = &mut self.replicas[number];
        let fresh = || format!("r{number}-{turn}");
        let sent = at(now_ms + replica.ahead_ms);
        let answered = sent + Duration::from_millis(takes_ms);
        let was = term(&replica.candidate).is_some();
        replica.candidate.note_time(sent, fresh);
        let step = replica.candidate.next(sent, WALL);
        let hidden = |reply| if lost { Reply::Failed } else { reply };
        match step {
            Step::Wait(_) => return,
            Step::Read => {
                let reply = hidden(server.read());
                replica.candidate.after_read(answered, reply, jitter, fresh);
            }
            Step::Create(lease) => {
                let reply = hidden(server.write(&lease, true));
                replica.candidate.after_write(answered, reply, jitter);
            }
            Step::Replace(lease) => {
                let reply = hidden(server.write(&lease, false));
                replica.candidate.after_write(answered, reply, jitter);
            }
        }
        // A replica that waits for a reply does nothing else meanwhile.
        replica.stopped_until_ms = now_ms + takes_ms;
        let is = term(&replica.candidate).is_some();
        if is && !was {
            replica.terms += 1;
            self.terms += 1;
        }
    }

    /// Which replica leads by its own clock, whatever it has noticed.
    fn check(&self) {
        let leads = |replica: &&Replica| {
            let until = term(&replica.candidate).and_then(|term| term.until);
            until.is_some_and(|until| at(self.now_ms + replica.ahead_ms) < until)
        };
        let leaders: Vec<_> = self.replicas.iter().filter(leads).collect();
        assert!(
            leaders.len() <= 1,
            "at {} ms: {:?}",
            self.now_ms,
            leaders.iter().map(|it| it.candidate.leadership()).collect::<Vec<_>>()
        );
    }
}

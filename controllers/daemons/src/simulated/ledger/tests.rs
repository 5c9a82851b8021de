use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::corrd::{CorridorChange, CorridorRequest, PathSpec};
use crate::memqosd::{
    BandwidthChange, BundleRequest, BundleSpec, LatencyClass, LatencyClassChange,
};
use crate::simulated::config::{SimulatedConfig, TierPool};
use crate::ticket::Algorithm;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// Made once: keys take their time.
static TERMS: LazyLock<Terms> = LazyLock::new(new_terms);

fn new_terms() -> Terms {
    let [es256, ml_dsa] = [Algorithm::Es256, Algorithm::MlDsa65]
        .map(|algorithm| SigningKey::derive(algorithm, 1).unwrap());
    let trusted =
        TrustedKeys::read(&[es256.trusted().unwrap(), ml_dsa.trusted().unwrap()]).unwrap();
    let tier = TierPool { bytes: 1000, gbs: 100 };
    Terms {
        seed: 1,
        pools: Pools { lanes: 16, gbps: 1000, tiers: [tier; 4] },
        lease_ttl: Duration::from_mins(1),
        ticket_ttl: Duration::from_mins(10),
        tickets_required: false,
        es256,
        ml_dsa,
        trusted,
    }
}

fn ledger() -> Ledger {
    Ledger::new(&SimulatedConfig::default().devices, vec![])
}

fn owner(number: u32) -> Owner {
    Owner::new("c", format!("o{number}")).unwrap()
}

fn path_of(number: u32, lanes: u32, min_gbps: u32) -> CorridorRequest {
    let path = PathSpec { lanes, min_gbps, lambda_nm: vec![1550], ..PathSpec::default() };
    CorridorRequest { owner: owner(number), path, ticket: None }
}

fn memory_of(number: u32, bytes: u64, floor_gbs: u32, persistence: Persistence) -> BundleRequest {
    let memory = BundleSpec { bytes, floor_gbs, persistence, ..BundleSpec::default() };
    BundleRequest { owner: owner(number), memory, ticket: None }
}

impl Ledger {
    /// Carries a plan out, as the daemon does.
    fn now<T>(&mut self, plan: Plan<T>) -> Result<T, RefusalReason> {
        let (changes, answer) = plan.map_err(|refusal| refusal.reason)?;
        for change in changes {
            self.apply(change);
        }
        Ok(answer)
    }

    fn corridor_now(
        &mut self,
        at: Timestamp,
        ask: &CorridorRequest,
    ) -> Result<String, RefusalReason> {
        let plan = CorridorRecord::plan(self, &TERMS, at, &ask.key(), ask);
        self.now(plan).map(|(Allocated::Now(record) | Allocated::Before(record))| record.id)
    }

    fn bundle_now(&mut self, at: Timestamp, ask: &BundleRequest) -> Result<String, RefusalReason> {
        let plan = BundleRecord::plan(self, &TERMS, at, &ask.key(), ask);
        self.now(plan).map(|(Allocated::Now(record) | Allocated::Before(record))| record.handle)
    }

    fn expire_now(&mut self, at: Timestamp) {
        for change in self.plan_expiry(at) {
            self.apply(change);
        }
    }
}

#[test]
fn an_expired_corridor_gives_everything_back() {
    let mut ledger = ledger();
    let id = ledger.corridor_now(at(0), &path_of(1, 16, 900)).unwrap();
    let other = path_of(2, 1, 100);
    assert_eq!(ledger.corridor_now(at(59), &other), Err(RefusalReason::PoolLanes));
    ledger.expire_now(at(59));
    assert!(ledger.find::<CorridorRecord>(&id).is_ok());
    ledger.expire_now(at(60));
    assert!(ledger.find::<CorridorRecord>(&id).is_err());
    assert!(ledger.corridor_now(at(60), &other).is_ok());
}

#[test]
fn a_lapsed_durable_bundle_keeps_bytes_and_must_win_its_bandwidth_back() {
    let mut ledger = ledger();
    let durable = memory_of(1, 600, 80, Persistence::Durable);
    let handle = ledger.bundle_now(at(0), &durable).unwrap();
    ledger.expire_now(at(60));
    let too_large = memory_of(2, 500, 80, Persistence::None);
    assert_eq!(ledger.bundle_now(at(60), &too_large), Err(RefusalReason::PoolBytes));
    let fits = memory_of(3, 400, 80, Persistence::None);
    let rival = ledger.bundle_now(at(60), &fits).unwrap();
    let plan = ledger.plan_lease::<BundleRecord>(&TERMS, at(61), &handle, None);
    assert_eq!(ledger.now(plan), Err(RefusalReason::PoolBandwidth));
    let plan = ledger.plan_release::<BundleRecord>(&rival, &fits.owner);
    ledger.now(plan).unwrap();
    let plan = ledger.plan_lease::<BundleRecord>(&TERMS, at(62), &handle, None);
    ledger.now(plan).unwrap();
    assert!(!ledger.find::<BundleRecord>(&handle).unwrap().lapsed);
    // Lapsed bundles do not expire twice.
    assert_eq!(ledger.plan_expiry(at(100)), []);
}

#[test]
fn required_tickets_are_required_and_expire() {
    let terms = Terms { tickets_required: true, ..new_terms() };
    let mut ledger = ledger();
    let mut ask = path_of(1, 1, 10);
    let refused = CorridorRecord::plan(&ledger, &terms, at(0), &ask.key(), &ask).unwrap_err();
    assert_eq!(refused.reason, RefusalReason::TicketRequired);
    let question = crate::attestd::VerifyRequest {
        device_id: "phot-0".into(),
        nonce: "0123456789abcdef".into(),
        subject: ask.owner.object_uid().into(),
        tenant: "team-a".into(),
        pqc: true,
    };
    let plan = ledger.plan_verify(&terms, at(0), &question);
    let verified = ledger.now(plan).unwrap().unwrap();
    ask.ticket = Some(verified.ticket);
    ask.path.device_id = Some("phot-0".into());
    assert!(CorridorRecord::plan(&ledger, &terms, at(599), &ask.key(), &ask).is_ok());
    let refused = CorridorRecord::plan(&ledger, &terms, at(600), &ask.key(), &ask).unwrap_err();
    assert_eq!(refused.reason, RefusalReason::TicketExpired);
    // The wish of a lost reply is still answered when its ticket has expired meanwhile.
    let plan = CorridorRecord::plan(&ledger, &terms, at(599), &ask.key(), &ask);
    ledger.now(plan).unwrap();
    let (changes, _) = CorridorRecord::plan(&ledger, &terms, at(601), &ask.key(), &ask).unwrap();
    assert_eq!(changes, []);
}

#[test]
fn old_nonces_are_forgotten() {
    let mut ledger = ledger();
    let ask = |nonce: &str| crate::attestd::VerifyRequest {
        device_id: "phot-0".into(),
        nonce: format!("nonce-nonce-nonce-{nonce}"),
        subject: "s".into(),
        tenant: "t".into(),
        pqc: false,
    };
    for (seconds, nonce) in [(0, "a"), (1, "b"), (2, "c")] {
        let plan = ledger.plan_verify(&TERMS, at(seconds), &ask(nonce));
        ledger.now(plan).unwrap().unwrap();
    }
    let day = 24 * 3600;
    let plan = ledger.plan_verify(&TERMS, at(day + 1), &ask("d"));
    ledger.now(plan).unwrap().unwrap();
    let left: Vec<&str> = ledger.nonces.keys().map(|it| &it[it.len() - 1..]).collect();
    assert_eq!(left, ["c", "d"]);
    assert_eq!(ledger.nonces_by_age.len(), 2);
}

/// What the pools have given away, counted anew.
fn counted(ledger: &Ledger) -> Usage {
    let mut usage = Usage::default();
    ledger.corridors.values().for_each(|record| usage.take_path(&record.path));
    ledger.bundles.values().for_each(|record| usage.take_memory(&record.memory, record.lapsed));
    usage
}

#[derive(Clone, Debug)]
enum Step {
    Corridor { owner: u32, lanes: u32, gbps: u32 },
    Bundle { owner: u32, bytes: u64, gbs: u32, durable: bool },
    Release { index: usize, owner: u32 },
    Change { index: usize, amount: u32, class: usize },
    Renew { index: usize },
    Wait { seconds: i64 },
}

fn step() -> impl Strategy<Value = Step> {
    let owner = 0_u32..4;
    prop_oneof![
        (owner.clone(), 0_u32..20, 0_u32..1200).prop_map(|(owner, lanes, gbps)| Step::Corridor {
            owner,
            lanes,
            gbps
        }),
        (owner.clone(), 0_u64..700, 0_u32..120, any::<bool>())
            .prop_map(|(owner, bytes, gbs, durable)| Step::Bundle { owner, bytes, gbs, durable }),
        (0_usize..8, owner).prop_map(|(index, owner)| Step::Release { index, owner }),
        (0_usize..8, 0_u32..1200, 0_usize..4).prop_map(|(index, amount, class)| Step::Change {
            index,
            amount,
            class
        }),
        (0_usize..8).prop_map(|index| Step::Renew { index }),
        (0_i64..90).prop_map(|seconds| Step::Wait { seconds }),
    ]
}

/// Takes one step; refusals are fine.
fn take(ledger: &mut Ledger, step: &Step, clock: &mut i64) {
    let now = at(*clock);
    let id = |ledger: &Ledger, index: usize| ledger.corridors.keys().nth(index).cloned();
    let handle = |ledger: &Ledger, index: usize| ledger.bundles.keys().nth(index).cloned();
    match *step {
        Step::Corridor { owner, lanes, gbps } => {
            let _ = ledger.corridor_now(now, &path_of(owner, lanes, gbps));
        }
        Step::Bundle { owner, bytes, gbs, durable } => {
            let persistence = if durable { Persistence::Durable } else { Persistence::None };
            let _ = ledger.bundle_now(now, &memory_of(owner, bytes, gbs, persistence));
        }
        Step::Release { index, owner: caller } => {
            if let Some(id) = id(ledger, index) {
                let plan = ledger.plan_release::<CorridorRecord>(&id, &owner(caller));
                let _ = ledger.now(plan);
            }
            if let Some(handle) = handle(ledger, index) {
                let plan = ledger.plan_release::<BundleRecord>(&handle, &owner(caller));
                let _ = ledger.now(plan);
            }
        }
        Step::Change { index, amount, class } => {
            if let Some(id) = id(ledger, index) {
                let change = CorridorChange { min_gbps: Some(amount), ..Default::default() };
                let plan = ledger.plan_corridor_change(&TERMS, &id, None, &change);
                let _ = ledger.now(plan);
            }
            if let Some(handle) = handle(ledger, index) {
                let change = BandwidthChange { floor_gbs: amount / 10 };
                let plan = ledger.plan_bandwidth(&TERMS, &handle, None, change);
                let _ = ledger.now(plan);
                let change = LatencyClassChange { latency_class: LatencyClass::ALL[class] };
                let plan = ledger.plan_latency_class(&TERMS, &handle, None, change);
                let _ = ledger.now(plan);
            }
        }
        Step::Renew { index } => {
            if let Some(id) = id(ledger, index) {
                let plan = ledger.plan_lease::<CorridorRecord>(&TERMS, now, &id, None);
                let _ = ledger.now(plan);
            }
            if let Some(handle) = handle(ledger, index) {
                let plan = ledger.plan_lease::<BundleRecord>(&TERMS, now, &handle, None);
                let _ = ledger.now(plan);
            }
        }
        Step::Wait { seconds } => {
            *clock += seconds;
            ledger.expire_now(at(*clock));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    /// Whatever happens: sums are right, pools are never overdrawn, indexes lead to what exists,
    /// and no id is given twice.
    #[test]
    fn the_books_balance(steps in prop::collection::vec(step(), 1..60)) {
        let (mut ledger, mut clock) = (ledger(), 0);
        let mut seen = BTreeMap::new();
        for step in &steps {
            take(&mut ledger, step, &mut clock);
            let usage = counted(&ledger);
            prop_assert_eq!(&usage, ledger.usage());
            prop_assert!(usage.check_paths(&TERMS.pools).is_ok());
            for class in LatencyClass::ALL {
                prop_assert!(usage.check_tier(class, &TERMS.pools).is_ok());
            }
            let count = ledger.corridors.len() + ledger.bundles.len();
            prop_assert_eq!(ledger.keys.len(), count);
            prop_assert_eq!(ledger.owners.len(), count);
            let lapsed = ledger.bundles.values().filter(|it| it.lapsed).count();
            prop_assert_eq!(ledger.expiries.len(), count - lapsed);
            for record in ledger.corridors.values() {
                let first = seen.entry(record.id.clone()).or_insert_with(|| record.key.clone());
                prop_assert_eq!(&*first, &record.key, "{} was given twice", record.id);
            }
        }
    }
}

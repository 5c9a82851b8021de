//! How the simulated daemons are set up.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use crate::attestd::{Device, DeviceKind};

const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// Everything that shapes a simulation. The default fits a demo.
#[derive(Clone, Debug)]
pub struct SimulatedConfig {
    /// Loopback only: the daemons ask for no credentials. Port 0: any.
    pub listen: SocketAddr,
    /// Where the state is kept. `None`: in memory, gone with the process.
    pub state_dir: Option<PathBuf>,
    /// The same seed, objects and times give the same readings, and the same signing keys.
    pub seed: u64,
    /// Whether `/admin` exists.
    pub enable_admin: bool,
    pub pools: Pools,
    pub devices: Vec<Device>,
    /// An allocation is lost when its lease is not renewed for this long.
    pub lease_ttl: Duration,
    /// How long a ticket is good.
    pub ticket_ttl: Duration,
    /// Whether corrd and memqosd refuse a request without a ticket. Off: the caller decides whom it
    /// attests; a ticket that is given is always checked.
    pub tickets_required: bool,
    pub clock: Clock,
}

impl Default for SimulatedConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            state_dir: None,
            seed: 1,
            enable_admin: false,
            pools: Pools::default(),
            devices: default_devices(),
            // Longer than a change of leader, shorter than anyone waits for leaked capacity.
            lease_ttl: Duration::from_mins(15),
            ticket_ttl: Duration::from_hours(1),
            tickets_required: false,
            clock: Clock::System,
        }
    }
}

/// What there is to give away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pools {
    pub lanes: u64,
    pub gbps: u64,
    /// T0 to T3.
    pub tiers: [TierPool; 4],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierPool {
    pub bytes: u64,
    /// GB/s.
    pub gbs: u64,
}

impl Default for Pools {
    fn default() -> Self {
        Self {
            lanes: 16_384,
            gbps: 1_600_000,
            tiers: [
                TierPool { bytes: 512 * GIB, gbs: 16_000 },
                TierPool { bytes: 8 * TIB, gbs: 8_000 },
                TierPool { bytes: 32 * TIB, gbs: 4_000 },
                TierPool { bytes: 128 * TIB, gbs: 1_000 },
            ],
        }
    }
}

/// Two photonic and two memory devices. The second of each cannot sign post-quantum.
fn default_devices() -> Vec<Device> {
    let device = |name: &str, kind, rack: &str, pqc: bool| Device {
        device_id: name.to_owned(),
        kind,
        labels: BTreeMap::from([
            ("corridoros.io/rack".to_owned(), rack.to_owned()),
            ("corridoros.io/vendor".to_owned(), "simulated".to_owned()),
        ]),
        firmware: if pqc { "1.4.2" } else { "1.2.0" }.to_owned(),
        claims: BTreeMap::from([
            ("debug".to_owned(), "disabled".to_owned()),
            ("secureBoot".to_owned(), "true".to_owned()),
        ]),
        pqc,
    };
    vec![
        device("mem-0", DeviceKind::Memory, "a", true),
        device("mem-1", DeviceKind::Memory, "b", false),
        device("phot-0", DeviceKind::Photonic, "a", true),
        device("phot-1", DeviceKind::Photonic, "b", false),
    ]
}

/// What time the daemons believe it is.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    #[default]
    System,
    /// Stands still until a test moves it.
    Manual(Arc<Mutex<Timestamp>>),
}

impl Clock {
    pub fn manual(start: Timestamp) -> Self {
        Self::Manual(Arc::new(Mutex::new(start)))
    }

    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            Self::Manual(now) => *now.lock(),
        }
    }

    /// Moves a manual clock; the system's stays as it is.
    pub fn advance(&self, by: Duration) {
        if let Self::Manual(now) = self {
            let mut now = now.lock();
            *now = later(*now, by);
        }
    }
}

/// `time + by`, or the end of time.
pub(super) fn later(time: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by)
        .ok()
        .and_then(|by| time.checked_add(by).ok())
        .unwrap_or(Timestamp::MAX)
}

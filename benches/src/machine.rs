//! Where and when something was measured.

use std::{fmt, fs, thread};

use jiff::Timestamp;
use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub memory_gib: u64,
    pub kernel: String,
    /// The first word of `/proc/loadavg` at the start: the load of other processes.
    pub load_before: String,
    pub date: String,
}

impl Machine {
    /// This one, now. What cannot be read is empty.
    pub fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            let value = line.and_then(|line| line.split_once(':'));
            value.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        let kib: u64 = field(&read("/proc/meminfo"), "MemTotal")
            .split_whitespace()
            .next()
            .and_then(|digits| digits.parse().ok())
            .unwrap_or(0);
        Self {
            cpu: field(&read("/proc/cpuinfo"), "model name"),
            cores: thread::available_parallelism().map_or(0, usize::from),
            memory_gib: kib >> 20,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load_before: read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
            date: Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, cores, memory_gib, kernel, load_before, date } = self;
        write!(
            f,
            "{date}; {cores} cores of {cpu}, {memory_gib} GiB, Linux {kernel}, load before {load_before}"
        )
    }
}

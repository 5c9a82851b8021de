//! What a process costs, as the kernel says.

use std::fs;

use crate::error::{Doing as _, Error, Result};

/// Of Linux on every platform that Rust knows.
const CLOCK_TICKS_PER_SECOND: f64 = 100.0;

/// User and system time of a process so far.
pub fn cpu_seconds(process: u32) -> Result<f64> {
    /// Fields 14 and 15 of `proc_pid_stat(5)`, counted after the name, which may hold anything.
    const USER_AND_SYSTEM: [usize; 2] = [11, 12];
    let path = format!("/proc/{process}/stat");
    let stat = fs::read_to_string(&path).doing(format!("reading {path}"))?;
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks =
        USER_AND_SYSTEM.map(|index| fields.get(index).and_then(|it| it.parse::<u32>().ok()));
    match ticks {
        [Some(user), Some(system)] => Ok(f64::from(user + system) / CLOCK_TICKS_PER_SECOND),
        _ => Err(Error::malformed(format!("reading {path}"), stat)),
    }
}

/// Resident memory of a process now.
pub fn resident_kib(process: u32) -> Result<u64> {
    status_kib(process, "VmRSS:")
}

/// The most resident memory that a process ever had.
pub fn peak_resident_kib(process: u32) -> Result<u64> {
    status_kib(process, "VmHWM:")
}

fn status_kib(process: u32, field: &str) -> Result<u64> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path).doing(format!("reading {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse().ok())
        .ok_or_else(|| Error::malformed(format!("reading {path}"), format!("it has no {field}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_can_be_looked_at() {
        assert!(resident_kib(std::process::id()).unwrap() > 1000);
        assert!(peak_resident_kib(std::process::id()).unwrap() > 1000);
        assert!(cpu_seconds(std::process::id()).unwrap() >= 0.0);
    }
}

//! A wall clock that can be set, for one process and without any right to set the machine's.

use std::fs;
use std::path::{Path, PathBuf};

use super::preload::Preload;
use crate::error::{Doing as _, Result};

/// Seconds that a process started by [`Self::wrap`] is ahead of the machine.
#[derive(Debug)]
pub struct WallClock {
    preload: Preload,
}

impl WallClock {
    /// Compiles the library that stands between the process and its clock.
    pub async fn new() -> Result<Self> {
        let this = Self { preload: Preload::compile(include_str!("clock_shim.c")).await? };
        this.set(0)?;
        Ok(this)
    }

    /// Steps the clock, under the running process.
    pub fn set(&self, seconds_ahead: i64) -> Result<()> {
        let doing = "setting a clock";
        // In one step: the other side reads at any time.
        let new = self.preload.path("offset.new");
        fs::write(&new, seconds_ahead.to_string()).doing(doing)?;
        fs::rename(&new, self.preload.path("offset")).doing(doing)
    }

    /// A program that runs `binary` by this clock.
    pub fn wrap(&self, binary: &Path) -> Result<PathBuf> {
        self.preload.wrap(binary, &[("CORRIDOR_CLOCK_OFFSET", &self.preload.path("offset"))])
    }
}

//! A thread of a process, or a folder, that hangs: without a signal, which would stop the whole process.

use std::fs;
use std::path::{Path, PathBuf};

use super::preload::Preload;
use crate::error::{Doing as _, Result};

/// Processes started by [`Self::wrap`] hang where they are told to.
#[derive(Debug)]
pub struct Hang {
    preload: Preload,
}

impl Hang {
    pub async fn new() -> Result<Self> {
        let this = Self { preload: Preload::compile(include_str!("hang_shim.c")).await? };
        fs::create_dir(this.trigger()).doing("making a folder for triggers")?;
        Ok(this)
    }

    /// A program that runs `binary`, whose thread of this name hangs once it is struck.
    pub fn wrap(&self, binary: &Path, thread: &str) -> Result<PathBuf> {
        let variables = [
            ("CORRIDOR_HANG_THREAD", Path::new(thread)),
            ("CORRIDOR_HANG_TRIGGER", &self.trigger()),
        ];
        self.preload.wrap(binary, &variables)
    }

    /// From its next wait on, the thread of this process does nothing, for ever.
    pub fn strike(&self, process: u32) -> Result<()> {
        fs::write(self.trigger().join(process.to_string()), "").doing("striking a thread")
    }

    /// A program that runs `binary`, for which to make [`Self::folder`] takes for ever.
    pub fn wrap_with_folder(&self, binary: &Path) -> Result<PathBuf> {
        self.preload.wrap(binary, &[("CORRIDOR_HANG_FOLDER", &self.folder())])
    }

    pub fn folder(&self) -> PathBuf {
        self.preload.path("hangs")
    }

    fn trigger(&self) -> PathBuf {
        self.preload.path("trigger")
    }
}

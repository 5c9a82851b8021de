//! A folder that is made once and then found, by however many test processes.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::say;
use crate::error::{Doing as _, Error, Result};

/// What is kept, and where.
pub(super) struct Cached<'a> {
    /// The folder in the cache of this project.
    pub place: &'a str,
    /// Every version that decides what comes out.
    pub key: String,
    /// For people.
    pub what: String,
    /// The files without which it is of no use.
    pub needed: &'a [&'a str],
}

impl Cached<'_> {
    /// The folder, made by `make` if need be. Made beside its place and renamed at the end, so that it
    /// is whole whenever it exists.
    pub fn made_once(&self, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let place = base()?.join(self.place);
        let folder = place.join(&self.key);
        if missing(&folder, self.needed).is_empty() {
            return Ok(folder);
        }
        fs::create_dir_all(&place).doing(format!("creating the cache {}", place.display()))?;
        let lock_path = place.join(format!("{}.lock", self.key));
        let lock = File::create(&lock_path).doing(format!("opening {}", lock_path.display()))?;
        if lock.try_lock().is_err() {
            say(&format!("another process is making {}; waiting for it", self.what));
            lock.lock().doing(format!("locking {}", lock_path.display()))?;
        }
        if !missing(&folder, self.needed).is_empty() {
            self.make_anew(&place, &folder, make)?;
        }
        Ok(folder)
    }

    fn make_anew(
        &self,
        place: &Path,
        folder: &Path,
        make: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<()> {
        let started = Instant::now();
        say(&format!("making {} in {}; this may take minutes, once", self.what, folder.display()));
        let prefix = format!("{}.partial-", self.key);
        remove_stale(place, &prefix)?;
        let partial = tempfile::Builder::new()
            .prefix(&prefix)
            .tempdir_in(place)
            .doing(format!("creating a folder in {}", place.display()))?;
        make(partial.path())?;
        let missing = missing(partial.path(), self.needed);
        if !missing.is_empty() {
            let problem = format!("{} came out without {}", self.what, missing.join(", "));
            return Err(Error::malformed(format!("making {}", folder.display()), problem));
        }
        // A folder that lacks a program is of no use, and would be in the way.
        if folder.exists() {
            fs::remove_dir_all(folder).doing(format!("removing {}", folder.display()))?;
        }
        let whole = partial.keep();
        fs::rename(&whole, folder).doing(format!("renaming {}", whole.display()))?;
        say(&format!("made {} ({} s)", self.what, started.elapsed().as_secs()));
        Ok(())
    }
}

/// Which of these files a folder lacks.
pub(super) fn missing<'a>(folder: &Path, needed: &[&'a str]) -> Vec<&'a str> {
    needed.iter().copied().filter(|file| !folder.join(file).is_file()).collect()
}

fn base() -> Result<PathBuf> {
    let base = env::var_os("XDG_CACHE_HOME")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".cache")))
        .ok_or_else(|| {
            Error::NoProgram(
                "There is no place for programs of others: set HOME or XDG_CACHE_HOME.".into(),
            )
        })?;
    Ok(base.join("corridor"))
}

/// Only the holder of the lock makes it: other partial folders are of processes that died.
fn remove_stale(place: &Path, prefix: &str) -> Result<()> {
    let doing = || format!("looking for stale folders in {}", place.display());
    for entry in fs::read_dir(place).doing(doing())? {
        let entry = entry.doing(doing())?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            fs::remove_dir_all(entry.path()).doing(doing())?;
        }
    }
    Ok(())
}

//! Journals in a folder: the last few, written when something went wrong.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

/// Enough to see whether the same thing happens again and again; the oldest goes.
const FILES_MAX: usize = 8;

const PREFIX: &str = "journal-";
const SUFFIX: &str = ".jsonl.gz";
/// Always the same: what is left of one that was broken off is overwritten.
const UNFINISHED: &str = "unfinished";

#[derive(Debug)]
pub(crate) struct Files {
    folder: PathBuf,
}

impl Files {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Writes a journal. Where the folder is, this may take for ever.
    pub fn save(&self, parts: &[Arc<[u8]>], why: &str, time: Timestamp) -> io::Result<PathBuf> {
        let name = format!("{PREFIX}{}-{why}{SUFFIX}", time.strftime("%Y%m%dT%H%M%SZ"));
        let path = self.folder.join(name);
        fs::create_dir_all(&self.folder)?;
        // A reader sees a whole journal or none.
        let unfinished = self.folder.join(UNFINISHED);
        let mut file = create(&unfinished)?;
        for part in parts {
            file.write_all(part)?;
        }
        file.sync_all()?;
        fs::rename(&unfinished, &path)?;
        self.drop_the_oldest()?;
        Ok(path)
    }

    /// By their names, which begin with the time.
    fn drop_the_oldest(&self) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.starts_with(PREFIX) && name.ends_with(SUFFIX) {
                names.push(name);
            }
        }
        names.sort();
        let too_many = names.len().saturating_sub(FILES_MAX);
        names.iter().take(too_many).try_for_each(|name| fs::remove_file(self.folder.join(name)))
    }
}

/// For its owner's eyes: it names the Pods of every namespace.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_last_few_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::new(folder.path().join("journals"));
        for minutes in 0..=10 {
            let time = Timestamp::UNIX_EPOCH.checked_add(Duration::from_mins(minutes)).unwrap();
            files.save(&[Arc::from(*b"x")], "quarantine", time).unwrap();
        }
        let names = fs::read_dir(folder.path().join("journals")).unwrap();
        let mut names: Vec<_> = names.map(|it| it.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names.len(), FILES_MAX);
        assert_eq!(names[0], "journal-19700101T000300Z-quarantine.jsonl.gz");
    }
}

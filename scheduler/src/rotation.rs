//! Files that are replaced while the process runs: certificates and keys.
//!
//! Their content is what counts: a kubelet swaps a symbolic link, others write in place.

use std::io::{self, Read as _};
use std::path::PathBuf;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tracing::{info, warn};

/// How soon new files are noticed. Certificates are renewed hours before they end, and reading a few
/// kilobytes this often costs nothing.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// A bundle of a hundred authorities has 200 KB; nothing honest is larger.
const FILE_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
pub struct FileError {
    path: PathBuf,
    source: io::Error,
}

/// What all the files hold, in the order of their paths.
pub type Contents<const N: usize> = [Vec<u8>; N];

/// Files that belong together, and what they held when they were last looked at.
#[derive(Debug)]
pub struct Files<const N: usize> {
    paths: [PathBuf; N],
    // Not the content: keys should lie around in as few places as possible.
    seen: Option<[u8; 32]>,
}

impl<const N: usize> Files<N> {
    pub fn new(paths: [PathBuf; N]) -> Self {
        Self { paths, seen: None }
    }

    /// What they hold, if that is not what the last look found. A failure is returned once, too.
    pub fn look(&mut self) -> Option<Result<Contents<N>, FileError>> {
        let found = self.read();
        let fingerprint = fingerprint(&found);
        let is_new = self.seen.replace(fingerprint) != Some(fingerprint);
        is_new.then_some(found)
    }

    /// What they hold now.
    pub fn read_first(&mut self) -> Result<Contents<N>, FileError> {
        let found = self.read();
        self.seen = Some(fingerprint(&found));
        found
    }

    fn read(&self) -> Result<Contents<N>, FileError> {
        let mut contents = std::array::from_fn(|_| Vec::new());
        for (path, content) in self.paths.iter().zip(&mut contents) {
            let file = std::fs::File::open(path);
            let length = file.and_then(|it| it.take(FILE_BYTES_MAX + 1).read_to_end(content));
            let length = length.map_err(|source| FileError { path: path.clone(), source })?;
            if length as u64 > FILE_BYTES_MAX {
                let source = io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes"));
                return Err(FileError { path: path.clone(), source });
            }
        }
        Ok(contents)
    }
}

fn fingerprint<const N: usize>(found: &Result<Contents<N>, FileError>) -> [u8; 32] {
    let mut hash = Sha256::new();
    match found {
        Ok(contents) => {
            for content in contents {
                // With the length, so that no byte can move from one file to the next unseen.
                hash.update((content.len() as u64).to_be_bytes());
                hash.update(content);
            }
        }
        Err(error) => hash.update(error.to_string()),
    }
    hash.finalize().into()
}

/// Hands new contents to `take` for as long as the process lives. What `take` refuses is not used,
/// and whatever it took last stays in use.
pub async fn follow<const N: usize>(
    what: &'static str,
    mut files: Files<N>,
    take: impl Fn(Contents<N>) -> Result<(), String>,
) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        // A file system that hangs must not take a worker thread with it.
        let looked = tokio::task::spawn_blocking(move || {
            let found = files.look();
            (files, found)
        });
        let Ok((same_files, found)) = looked.await else {
            warn!("{what}: no longer looked at; restart to use new files");
            return;
        };
        files = same_files;
        let Some(found) = found else { continue };
        match found.map_err(|error| error.to_string()).and_then(&take) {
            Ok(()) => info!("{what}: the new files are in use"),
            Err(why) => warn!("{what}: the new files are not used, the last good ones stay: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_and_each_failure_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        std::fs::write(&a, "1").unwrap();
        let mut files = Files::new([a.clone(), b.clone()]);
        let missing = files.look().unwrap().unwrap_err();
        assert!(missing.to_string().contains("/b: "), "{missing}");
        assert!(files.look().is_none());

        std::fs::write(&b, "2").unwrap();
        assert_eq!(files.look().unwrap().unwrap(), [b"1".to_vec(), b"2".to_vec()]);
        assert!(files.look().is_none());

        // The same bytes in other files are another content.
        std::fs::write(&a, "12").unwrap();
        std::fs::write(&b, "").unwrap();
        assert!(files.look().unwrap().is_ok());
        assert!(files.look().is_none());
    }

    #[test]
    fn a_file_without_end_is_refused() {
        let mut files = Files::new([PathBuf::from("/dev/zero")]);
        let error = files.read_first().unwrap_err();
        assert!(error.to_string().contains("more than"), "{error}");
    }
}

//! What the two halves of one process really said about an object.
//!
//! Controllers and driver meet at the API server, where whoever may write a status can put words into
//! their mouths. So each also tells the other, here, what it says there. A word that was not given is
//! not believed; where nothing was said (at the start, or with one half in another process) the API
//! server is.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::Phase;

/// What a status and a ticket say of an object, as far as Pods are placed by it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Promised {
    pub phase: Option<Phase>,
    /// `corridorId`, `ffmHandle`.
    pub handle: Option<String>,
    /// `floorGbps`, `floorGBs`.
    pub floor: Option<f64>,
    /// `achievableGbps`, `achievedGBs`.
    pub measured: Option<f64>,
    pub ticket: Option<String>,
}

/// What the driver says of an object's use, as far as its controller acts by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    pub is_in_use: bool,
    /// The generation for which it said that nothing is bound or in flight any more.
    pub drained_generation: Option<i64>,
}

/// The newest word, and the one before: a watch lags behind, and what it shows late is no forgery.
#[derive(Clone, Debug)]
struct Spoken {
    newest: Promised,
    former: Option<Promised>,
}

/// By the UID of the object. Entries go with their object.
#[derive(Debug, Default)]
pub struct Witness {
    promised: RwLock<HashMap<String, Spoken>>,
    used: RwLock<HashMap<String, Used>>,
    /// Objects that their own spec or the policies of their namespace have refused.
    refused: RwLock<HashSet<String>>,
    driver_speaks: AtomicBool,
}

impl Witness {
    /// The controllers are about to write this.
    pub fn promises(&self, uid: &str, promised: Promised) {
        let mut all = write(&self.promised);
        let former = match all.remove(uid) {
            Some(spoken) if spoken.newest == promised => spoken.former,
            Some(spoken) => Some(spoken.newest),
            None => None,
        };
        all.insert(uid.to_owned(), Spoken { newest: promised, former });
    }

    /// The controllers are about to write this ticket; all else they said stands.
    pub fn promises_ticket(&self, uid: &str, ticket: &str) {
        let newest = read(&self.promised).get(uid).map(|spoken| spoken.newest.clone());
        if let Some(newest) = newest {
            self.promises(uid, Promised { ticket: Some(ticket.to_owned()), ..newest });
        }
    }

    /// What is true of an object that the API server shows so.
    pub fn believed(&self, uid: &str, shown: Promised) -> Promised {
        match read(&self.promised).get(uid) {
            Some(Spoken { newest, former })
                if *newest != shown && former.as_ref() != Some(&shown) =>
            {
                newest.clone()
            }
            _ => shown,
        }
    }

    /// The object's own spec or the policies of its namespace refuse it: that it is not Ready is its
    /// owner's matter.
    pub fn refuses(&self, uid: &str) {
        write(&self.refused).insert(uid.to_owned());
    }

    /// Whether that was ever said, also if the owner has put it right since.
    pub fn was_refused(&self, uid: &str) -> bool {
        read(&self.refused).contains(uid)
    }

    /// The object is gone.
    pub fn forget(&self, uid: &str) {
        write(&self.promised).remove(uid);
        write(&self.used).remove(uid);
        write(&self.refused).remove(uid);
    }

    /// The controllers of this process say nothing any more: another's may.
    pub fn forget_promises(&self) {
        write(&self.promised).clear();
        write(&self.refused).clear();
    }

    /// The driver of this process says nothing any more: another's may.
    pub fn forget_uses(&self) {
        write(&self.used).clear();
    }

    /// From now on a driver tells here what it tells the API server.
    pub fn driver_speaks(&self) {
        self.driver_speaks.store(true, Ordering::Relaxed);
    }

    pub fn is_used(&self, uid: &str, used: Used) {
        write(&self.used).insert(uid.to_owned(), used);
    }

    /// `None`: there is no driver to ask. One that has not spoken of this object has not said that it
    /// is drained.
    pub fn used(&self, uid: &str) -> Option<Option<Used>> {
        self.driver_speaks.load(Ordering::Relaxed).then(|| read(&self.used).get(uid).copied())
    }
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floor(floor: f64) -> Promised {
        Promised { phase: Some(Phase::Ready), floor: Some(floor), ..Promised::default() }
    }

    #[test]
    fn only_a_word_that_was_given_is_believed() {
        let witness = Witness::default();
        assert_eq!(witness.believed("u", floor(9.0)), floor(9.0), "nobody has spoken yet");
        witness.promises("u", floor(1.0));
        assert_eq!(witness.believed("u", floor(9.0)), floor(1.0));
        witness.promises("u", floor(2.0));
        witness.promises("u", floor(2.0));
        assert_eq!(witness.believed("u", floor(1.0)), floor(1.0), "shown late");
        assert_eq!(witness.believed("u", floor(9.0)), floor(2.0));
        witness.forget("u");
        assert_eq!(witness.believed("u", floor(9.0)), floor(9.0));
    }

    #[test]
    fn silence_of_a_driver_is_not_its_absence() {
        let witness = Witness::default();
        assert_eq!(witness.used("u"), None);
        witness.driver_speaks();
        assert_eq!(witness.used("u"), Some(None));
        witness.is_used("u", Used { is_in_use: true, drained_generation: None });
        assert!(witness.used("u").flatten().is_some_and(|used| used.is_in_use));
    }
}

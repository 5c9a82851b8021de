//! Writes of ours whose outcome is not known: what they say may be shown at any time, and is ours.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What is remembered of one object: a fault that lasts is met by a write every few seconds.
const UNCLEAR_MAX: usize = 8;
/// The API server gives up on a write after 10 s, and a watch shows it some seconds later.
const UNCLEAR_FOR: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(super) struct Unclear<T>(VecDeque<(Instant, T)>);

impl<T> Default for Unclear<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: PartialEq> Unclear<T> {
    /// A write that says this is about to be sent.
    pub fn sends(&mut self, now: Instant, said: T) {
        self.0.retain(|(_, known)| *known != said);
        if self.0.len() >= UNCLEAR_MAX {
            self.0.pop_front();
        }
        self.0.push_back((now, said));
    }

    /// A write that says this has its answer: that it is shown again is somebody else's doing.
    pub fn answered(&mut self, said: &T) {
        self.0.retain(|(_, known)| known != said);
    }

    /// Whether a write that says this may have been carried out.
    pub fn may_have_said(&self, now: Instant, shown: &T) -> bool {
        self.0.iter().any(|(sent, said)| said == shown && now - *sent < UNCLEAR_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_ours_for_a_while_and_the_last_few_count() {
        let (mut unclear, now) = (Unclear::default(), Instant::now());
        assert!(!unclear.may_have_said(now, &0));
        for said in 0..UNCLEAR_MAX {
            unclear.sends(now, said);
        }
        unclear.sends(now, 0);
        assert!((0..UNCLEAR_MAX).all(|said| unclear.may_have_said(now, &said)), "0 is known");
        unclear.sends(now, 99);
        assert!(!unclear.may_have_said(now, &1), "the oldest is forgotten");
        assert!(unclear.may_have_said(now, &99) && !unclear.may_have_said(now + UNCLEAR_FOR, &99));
        unclear.answered(&99);
        assert!(!unclear.may_have_said(now, &99));
    }
}

//! Writes whose outcome is not known: the API server may show their content at any time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Of one object. A fault that lasts is met by a write every few seconds.
const PENDING_MAX: usize = 8;
/// The API server gives up on a write after 10 s, and a watch shows it some seconds later.
const PENDING_FOR: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(super) struct PendingWrites<T>(VecDeque<(Instant, T)>);

impl<T> Default for PendingWrites<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: PartialEq> PendingWrites<T> {
    /// A write with this content is about to be sent.
    pub fn sending(&mut self, now: Instant, content: T) {
        self.0.retain(|(_, known)| *known != content);
        if self.0.len() >= PENDING_MAX {
            self.0.pop_front();
        }
        self.0.push_back((now, content));
    }

    /// The write was answered. If the content is shown again later, another account has written it.
    pub fn answered(&mut self, content: &T) {
        self.0.retain(|(_, known)| known != content);
    }

    /// Whether a write with this content may have been carried out.
    pub fn may_have_written(&self, now: Instant, shown: &T) -> bool {
        self.0.iter().any(|(sent, content)| content == shown && now - *sent < PENDING_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_few_writes_count_for_a_while() {
        let (mut pending, now) = (PendingWrites::default(), Instant::now());
        assert!(!pending.may_have_written(now, &0));
        for said in 0..PENDING_MAX {
            pending.sending(now, said);
        }
        pending.sending(now, 0);
        assert!((0..PENDING_MAX).all(|said| pending.may_have_written(now, &said)), "0 is known");
        pending.sending(now, 99);
        assert!(!pending.may_have_written(now, &1), "the oldest is forgotten");
        assert!(
            pending.may_have_written(now, &99) && !pending.may_have_written(now + PENDING_FOR, &99)
        );
        pending.answered(&99);
        assert!(!pending.may_have_written(now, &99));
    }
}

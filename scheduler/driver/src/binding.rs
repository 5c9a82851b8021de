//! From the replies to a Binding to its clear outcome, without I/O.
//!
//! The same Binding is repeated until the answer is clear. With a resourceVersion precondition a
//! repeat of an applied Binding answers "precondition failed", not "already assigned", so unless
//! the answer was 201 a read of the Pod decides.

use std::time::Duration;

/// What the API server said to `POST …/binding`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PostReply {
    Bound,
    /// A 4xx other than 408 and 429: this call changed nothing. An earlier one may have.
    Refused {
        message: String,
    },
    /// The fence took us for a leader of the past: this call changed nothing. An earlier one may have.
    Fenced {
        message: String,
    },
    /// The term ended before there was an answer: it is not for us to find out any more.
    TermEnded,
    /// A time-out, a lost connection, 408, 429, 5xx.
    Unclear {
        retry_after: Option<Duration>,
    },
}

/// What a quorum read of the Pod showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadReply {
    /// On our Node with our grant.
    AsDecided,
    Otherwise,
    Gone,
    Unclear,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Post { after: Duration },
    Read { after: Duration },
    Settled(Outcome),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Bound,
    /// The Pod is there and not as we decided.
    Refused {
        message: String,
    },
    /// The same, because the API server took us for a leader of the past.
    Fenced {
        message: String,
    },
    /// Not known, and another replica's business now.
    TermEnded,
    Gone,
}

impl Outcome {
    /// For a metric.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Bound => "bound",
            Self::Refused { .. } => "refused",
            Self::Fenced { .. } => "fenced",
            Self::TermEnded => "term_ended",
            Self::Gone => "gone",
        }
    }
}

const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// An API server that is back should be asked again soon.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// However long a server asks us to stay away, a held reservation is worth asking about.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Binding {
    pause: Duration,
    refusal: String,
    fenced: bool,
}

impl Binding {
    pub fn new() -> Self {
        Self { pause: PAUSE_FIRST, refusal: String::new(), fenced: false }
    }

    pub fn after_post(&mut self, reply: PostReply) -> Next {
        match reply {
            PostReply::Bound => Next::Settled(Outcome::Bound),
            PostReply::Refused { message } => self.refused(message, false),
            PostReply::Fenced { message } => self.refused(message, true),
            PostReply::TermEnded => Next::Settled(Outcome::TermEnded),
            PostReply::Unclear { retry_after } => {
                let pause = self.next_pause();
                let asked = retry_after.unwrap_or_default().min(RETRY_AFTER_MAX);
                Next::Post { after: pause.max(asked) }
            }
        }
    }

    fn refused(&mut self, message: String, fenced: bool) -> Next {
        (self.refusal, self.fenced) = (message, fenced);
        Next::Read { after: Duration::ZERO }
    }

    pub fn after_read(&mut self, reply: &ReadReply) -> Next {
        match reply {
            ReadReply::AsDecided => Next::Settled(Outcome::Bound),
            ReadReply::Otherwise => {
                let message = std::mem::take(&mut self.refusal);
                Next::Settled(if self.fenced {
                    Outcome::Fenced { message }
                } else {
                    Outcome::Refused { message }
                })
            }
            ReadReply::Gone => Next::Settled(Outcome::Gone),
            ReadReply::Unclear => Next::Read { after: self.next_pause() },
        }
    }

    fn next_pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (pause * 2).min(PAUSE_MAX);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> PostReply {
        PostReply::Refused { message: "conflict".into() }
    }

    #[test]
    fn a_created_binding_is_bound() {
        let next = Binding::new().after_post(PostReply::Bound);
        assert_eq!(next, Next::Settled(Outcome::Bound));
    }

    #[test]
    fn a_refusal_is_decided_by_reading_the_pod() {
        let outcomes = [
            (ReadReply::AsDecided, Outcome::Bound),
            (ReadReply::Otherwise, Outcome::Refused { message: "conflict".into() }),
            (ReadReply::Gone, Outcome::Gone),
        ];
        for (read, outcome) in outcomes {
            let mut binding = Binding::new();
            assert_eq!(binding.after_post(refused()), Next::Read { after: Duration::ZERO });
            assert_eq!(binding.after_read(&read), Next::Settled(outcome));
        }
    }

    #[test]
    fn a_late_leader_is_told_apart_from_a_refused_pod() {
        let mut binding = Binding::new();
        let message = "stale leader a/1, lease is b/2".to_owned();
        let next = binding.after_post(PostReply::Fenced { message: message.clone() });
        assert_eq!(next, Next::Read { after: Duration::ZERO }, "an earlier call may have bound it");
        let settled = Next::Settled(Outcome::Fenced { message });
        assert_eq!(binding.after_read(&ReadReply::Otherwise), settled);
        let ended = Binding::new().after_post(PostReply::TermEnded);
        assert_eq!(ended, Next::Settled(Outcome::TermEnded));
    }

    #[test]
    fn a_lost_reply_repeats_the_same_binding_until_the_answer_is_clear() {
        let mut binding = Binding::new();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            match binding.after_post(PostReply::Unclear { retry_after: None }) {
                Next::Post { after } => pauses.push(after.as_millis()),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        // The first call had been applied: the repeat is refused, the read tells.
        binding.after_post(refused());
        assert_eq!(binding.after_read(&ReadReply::Unclear), Next::Read { after: PAUSE_MAX });
        assert_eq!(binding.after_read(&ReadReply::AsDecided), Next::Settled(Outcome::Bound));
    }

    #[test]
    fn a_server_that_asks_for_time_gets_it_within_reason() {
        let wait = |seconds| {
            let retry_after = Some(Duration::from_secs(seconds));
            Binding::new().after_post(PostReply::Unclear { retry_after })
        };
        assert_eq!(wait(2), Next::Post { after: Duration::from_secs(2) });
        assert_eq!(wait(86_400), Next::Post { after: RETRY_AFTER_MAX });
    }
}

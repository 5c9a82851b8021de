//! From the replies to a Binding to its clear outcome, without I/O.
//!
//! A Binding that got no clear answer is repeated, a few times: with a resourceVersion precondition a repeat of an
//! applied Binding answers "precondition failed", not "already assigned". So unless the answer was 201, a quorum read of
//! the Pod decides, and not before the last call can no longer land. A Pod that is unbound then is given back.

use std::time::Duration;

/// What the API server said to `POST …/binding`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PostReply {
    Bound,
    /// A 4xx other than 408 and 429: this call changed nothing. An earlier one may have.
    Refused(Refused),
    /// The fence took us for a leader of the past: this call changed nothing. An earlier one may have.
    Fenced {
        message: String,
    },
    /// The term ended before there was an answer: it is not for us to find out any more.
    TermEnded,
    /// No connection: the call was never sent.
    Unsent,
    /// The API server has ended the call with an error: it will not land later. 429, and 500 in its own words.
    Failed {
        message: String,
        retry_after: Option<Duration>,
    },
    /// A time-out, a lost connection, other 5xx: the call may still land.
    Unclear {
        message: String,
        retry_after: Option<Duration>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refused {
    pub message: String,
    /// 409: the Pod is not as it was when it was read.
    pub is_conflict: bool,
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
    Refused(Refused),
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
/// Calls without a clear answer before a read decides: an API server that was only hurt for a moment binds the Pod, one
/// whose admission is down keeps its room for less than a second.
const POSTS_MAX: u32 = 3;
/// No write of ours has a longer time-out at the API server (`?timeout=`): what has not landed by then never will.
const LANDS_WITHIN: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Binding {
    pause: Duration,
    /// Calls that were sent and got no clear answer.
    failed_posts: u32,
    /// A call without an answer may still be carried out.
    may_land: bool,
    /// What a read decides about, if it does: else the same Binding is sent again.
    refusal: Option<PendingRefusal>,
}

#[derive(Debug)]
enum PendingRefusal {
    Refused(Refused),
    Fenced { message: String },
}

impl Binding {
    pub fn new() -> Self {
        Self { pause: PAUSE_FIRST, failed_posts: 0, may_land: false, refusal: None }
    }

    pub fn after_post(&mut self, reply: PostReply) -> Next {
        match reply {
            PostReply::Bound => Next::Settled(Outcome::Bound),
            PostReply::Refused(refused) => self.decide(PendingRefusal::Refused(refused)),
            PostReply::Fenced { message } => self.decide(PendingRefusal::Fenced { message }),
            PostReply::TermEnded => Next::Settled(Outcome::TermEnded),
            PostReply::Unsent => Next::Read { after: self.next_pause() },
            PostReply::Failed { message, retry_after } => self.again(message, retry_after),
            PostReply::Unclear { message, retry_after } => {
                self.may_land = true;
                self.again(message, retry_after)
            }
        }
    }

    /// Sends the same Binding again, or has a read decide.
    fn again(&mut self, message: String, retry_after: Option<Duration>) -> Next {
        self.failed_posts += 1;
        if self.failed_posts >= POSTS_MAX {
            return self.decide(PendingRefusal::Refused(Refused { message, is_conflict: false }));
        }
        let asked = retry_after.unwrap_or_default().min(RETRY_AFTER_MAX);
        Next::Post { after: self.next_pause().max(asked) }
    }

    fn decide(&mut self, refusal: PendingRefusal) -> Next {
        self.refusal = Some(refusal);
        Next::Read { after: Duration::ZERO }
    }

    pub fn after_read(&mut self, reply: &ReadReply) -> Next {
        match reply {
            ReadReply::AsDecided => Next::Settled(Outcome::Bound),
            ReadReply::Gone => Next::Settled(Outcome::Gone),
            ReadReply::Unclear => Next::Read { after: self.next_pause() },
            ReadReply::Otherwise if self.may_land => {
                self.may_land = false;
                Next::Read { after: LANDS_WITHIN }
            }
            ReadReply::Otherwise => match self.refusal.take() {
                Some(PendingRefusal::Refused(refused)) => Next::Settled(Outcome::Refused(refused)),
                Some(PendingRefusal::Fenced { message }) => {
                    Next::Settled(Outcome::Fenced { message })
                }
                // The API server is back, and has not heard of it.
                None => Next::Post { after: Duration::ZERO },
            },
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
        PostReply::Refused(Refused { message: "conflict".into(), is_conflict: true })
    }

    fn failed() -> PostReply {
        PostReply::Failed { message: "webhook is down".into(), retry_after: None }
    }

    fn unclear() -> PostReply {
        PostReply::Unclear { message: "no answer in time".into(), retry_after: None }
    }

    const fn read_after(after: Duration) -> Next {
        Next::Read { after }
    }

    const fn post_after_millis(millis: u64) -> Next {
        Next::Post { after: Duration::from_millis(millis) }
    }

    #[test]
    fn a_created_binding_is_bound() {
        let next = Binding::new().after_post(PostReply::Bound);
        assert_eq!(next, Next::Settled(Outcome::Bound));
    }

    #[test]
    fn a_refusal_is_decided_by_reading_the_pod() {
        let conflict = Refused { message: "conflict".into(), is_conflict: true };
        let outcomes = [
            (ReadReply::AsDecided, Outcome::Bound),
            (ReadReply::Otherwise, Outcome::Refused(conflict)),
            (ReadReply::Gone, Outcome::Gone),
        ];
        for (read, outcome) in outcomes {
            let mut binding = Binding::new();
            assert_eq!(binding.after_post(refused()), read_after(Duration::ZERO));
            assert_eq!(binding.after_read(&read), Next::Settled(outcome));
        }
    }

    #[test]
    fn a_late_leader_is_told_apart_from_a_refused_pod() {
        let mut binding = Binding::new();
        let message = "stale leader a/1, lease is b/2".to_owned();
        let next = binding.after_post(PostReply::Fenced { message: message.clone() });
        assert_eq!(next, read_after(Duration::ZERO), "an earlier call may have bound it");
        let settled = Next::Settled(Outcome::Fenced { message });
        assert_eq!(binding.after_read(&ReadReply::Otherwise), settled);
        let ended = Binding::new().after_post(PostReply::TermEnded);
        assert_eq!(ended, Next::Settled(Outcome::TermEnded));
    }

    #[test]
    fn an_api_server_that_keeps_failing_is_asked_three_times_and_then_read() {
        let mut binding = Binding::new();
        assert_eq!(binding.after_post(failed()), post_after_millis(100));
        assert_eq!(binding.after_post(failed()), post_after_millis(200));
        assert_eq!(binding.after_post(failed()), read_after(Duration::ZERO));
        let refused = Refused { message: "webhook is down".into(), is_conflict: false };
        let settled = Next::Settled(Outcome::Refused(refused));
        assert_eq!(binding.after_read(&ReadReply::Otherwise), settled);
    }

    #[test]
    fn a_pod_is_given_back_only_when_none_of_its_bindings_can_land_any_more() {
        for replies in [[unclear(), failed(), failed()], [failed(), failed(), unclear()]] {
            let mut binding = Binding::new();
            let nexts = replies.map(|reply| binding.after_post(reply));
            let read = read_after(Duration::ZERO);
            assert_eq!(nexts, [post_after_millis(100), post_after_millis(200), read]);
            assert_eq!(binding.after_read(&ReadReply::Otherwise), read_after(LANDS_WITHIN));
            let settled = binding.after_read(&ReadReply::Otherwise);
            assert!(matches!(settled, Next::Settled(Outcome::Refused(_))), "{settled:?}");
        }
    }

    #[test]
    fn a_lost_reply_of_an_applied_binding_is_found_by_the_repeat() {
        let mut binding = Binding::new();
        binding.after_post(unclear());
        assert_eq!(binding.after_post(refused()), read_after(Duration::ZERO));
        assert_eq!(binding.after_read(&ReadReply::AsDecided), Next::Settled(Outcome::Bound));
    }

    #[test]
    fn while_the_api_server_is_away_the_pod_is_read_until_it_is_back_and_then_bound() {
        let mut binding = Binding::new();
        assert_eq!(binding.after_post(PostReply::Unsent), read_after(Duration::from_millis(100)));
        let mut pauses = Vec::new();
        for _ in 0..7 {
            match binding.after_read(&ReadReply::Unclear) {
                Next::Read { after } => pauses.push(after.as_millis()),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(pauses, [200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(binding.after_read(&ReadReply::Otherwise), post_after_millis(0));
    }

    #[test]
    fn a_server_that_asks_for_time_gets_it_within_reason() {
        let wait = |seconds| {
            let retry_after = Some(Duration::from_secs(seconds));
            Binding::new().after_post(PostReply::Failed { message: String::new(), retry_after })
        };
        assert_eq!(wait(2), Next::Post { after: Duration::from_secs(2) });
        assert_eq!(wait(86_400), Next::Post { after: RETRY_AFTER_MAX });
    }
}

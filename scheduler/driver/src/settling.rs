//! From the replies to one write to its clear outcome, without I/O. Every action is led there by this machine.
//!
//! A write that got no clear answer is repeated, a few times. A repeat of a write that was applied may be refused: with a
//! resourceVersion precondition a second Binding answers "precondition failed", not "already assigned". So unless a call
//! succeeded, a quorum read decides; where a write that lands late would matter, not before none can land any more.

use std::time::Duration;

/// What the API server said to the write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteReply {
    Done,
    /// A 4xx other than 408 and 429: this call changed nothing. An earlier one may have.
    Refused(Refused),
    /// The admission policy `leader-fence.yaml` refused it, because the Lease names another leader: this call changed
    /// nothing. An earlier one may have.
    StaleLeader {
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
    /// 409: the object is not as it was when it was read.
    pub is_conflict: bool,
}

/// What a quorum read of the object showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadReply {
    /// The write has taken effect.
    AsWritten,
    Otherwise,
    Gone,
    Unclear,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Write { after: Duration },
    Read { after: Duration },
    Settled(Outcome),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// The object is there and not as it was to be written.
    Refused(Refused),
    /// The same, because the Lease names another leader.
    StaleLeader {
        message: String,
    },
    /// Not known: the next leader finds out.
    TermEnded,
    Gone,
}

const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// An API server that is back should be asked again soon.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// However long a server asks us to stay away, a held reservation is worth asking about.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);
/// Calls without a clear answer before a read decides: an API server that was unavailable for a moment carries the write
/// out, one whose admission is down keeps what is reserved for less than a second.
pub(crate) const WRITES_MAX: u32 = 3;
/// No write of ours has a longer time-out at the API server (`?timeout=`): what has not landed by then never will.
const LANDS_WITHIN: Duration = Duration::from_secs(10);

/// How a write without a clear answer is treated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub writes_max: u32,
    /// Reads without an answer before the write counts as refused. `None`: what it would take is reserved until the
    /// outcome is clear, however long that takes.
    pub reads_max: Option<u32>,
    /// Whether it must be known that no call will land later, because what it would take is given to others.
    pub waits_for_late: bool,
}

#[derive(Debug)]
pub(crate) struct Settling {
    patience: Patience,
    pause: Duration,
    /// Calls that were sent and got no clear answer.
    failed_writes: u32,
    failed_reads: u32,
    /// A call without an answer may still be carried out.
    may_land: bool,
    /// What a read decides about, if it does: else the same write is sent again.
    refusal: Option<PendingRefusal>,
}

#[derive(Debug)]
enum PendingRefusal {
    Refused(Refused),
    StaleLeader { message: String },
}

impl Settling {
    pub fn new(patience: Patience) -> Self {
        Self {
            patience,
            pause: PAUSE_FIRST,
            failed_writes: 0,
            failed_reads: 0,
            may_land: false,
            refusal: None,
        }
    }

    pub fn after_write(&mut self, reply: WriteReply) -> Next {
        match reply {
            WriteReply::Done => Next::Settled(Outcome::Done),
            WriteReply::Refused(refused) => self.decide(PendingRefusal::Refused(refused)),
            WriteReply::StaleLeader { message } => {
                self.decide(PendingRefusal::StaleLeader { message })
            }
            WriteReply::TermEnded => Next::Settled(Outcome::TermEnded),
            WriteReply::Unsent => Next::Read { after: self.next_pause() },
            WriteReply::Failed { message, retry_after } => self.again(message, retry_after),
            WriteReply::Unclear { message, retry_after } => {
                self.may_land = self.patience.waits_for_late;
                self.again(message, retry_after)
            }
        }
    }

    /// Sends the same write again, or has a read decide.
    fn again(&mut self, message: String, retry_after: Option<Duration>) -> Next {
        self.failed_writes += 1;
        if self.failed_writes >= self.patience.writes_max {
            return self.decide(PendingRefusal::Refused(Refused { message, is_conflict: false }));
        }
        let asked = retry_after.unwrap_or_default().min(RETRY_AFTER_MAX);
        Next::Write { after: self.next_pause().max(asked) }
    }

    fn decide(&mut self, refusal: PendingRefusal) -> Next {
        self.refusal = Some(refusal);
        Next::Read { after: Duration::ZERO }
    }

    pub fn after_read(&mut self, reply: &ReadReply) -> Next {
        match reply {
            ReadReply::AsWritten => Next::Settled(Outcome::Done),
            ReadReply::Gone => Next::Settled(Outcome::Gone),
            ReadReply::Unclear => {
                self.failed_reads += 1;
                if self.patience.reads_max.is_some_and(|most| self.failed_reads >= most) {
                    let message = "the object cannot be read".to_owned();
                    return Next::Settled(Outcome::Refused(Refused {
                        message,
                        is_conflict: false,
                    }));
                }
                Next::Read { after: self.next_pause() }
            }
            ReadReply::Otherwise if self.may_land => {
                self.may_land = false;
                Next::Read { after: LANDS_WITHIN }
            }
            ReadReply::Otherwise => match self.refusal.take() {
                Some(PendingRefusal::Refused(refused)) => Next::Settled(Outcome::Refused(refused)),
                Some(PendingRefusal::StaleLeader { message }) => {
                    Next::Settled(Outcome::StaleLeader { message })
                }
                // The API server is back, and has not heard of it.
                None => Next::Write { after: Duration::ZERO },
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

    fn of_a_binding() -> Settling {
        Settling::new(Patience { writes_max: WRITES_MAX, reads_max: None, waits_for_late: true })
    }

    fn refused() -> WriteReply {
        WriteReply::Refused(Refused { message: "conflict".into(), is_conflict: true })
    }

    fn failed() -> WriteReply {
        WriteReply::Failed { message: "webhook is down".into(), retry_after: None }
    }

    fn unclear() -> WriteReply {
        WriteReply::Unclear { message: "no answer in time".into(), retry_after: None }
    }

    const fn read_after(after: Duration) -> Next {
        Next::Read { after }
    }

    const fn write_after_millis(millis: u64) -> Next {
        Next::Write { after: Duration::from_millis(millis) }
    }

    #[test]
    fn a_created_binding_is_bound() {
        let next = of_a_binding().after_write(WriteReply::Done);
        assert_eq!(next, Next::Settled(Outcome::Done));
    }

    #[test]
    fn a_refusal_is_decided_by_reading_the_pod() {
        let conflict = Refused { message: "conflict".into(), is_conflict: true };
        let outcomes = [
            (ReadReply::AsWritten, Outcome::Done),
            (ReadReply::Otherwise, Outcome::Refused(conflict)),
            (ReadReply::Gone, Outcome::Gone),
        ];
        for (read, outcome) in outcomes {
            let mut binding = of_a_binding();
            assert_eq!(binding.after_write(refused()), read_after(Duration::ZERO));
            assert_eq!(binding.after_read(&read), Next::Settled(outcome));
        }
    }

    #[test]
    fn a_late_leader_is_told_apart_from_a_refused_pod() {
        let mut binding = of_a_binding();
        let message = "stale leader a/1, lease is b/2".to_owned();
        let next = binding.after_write(WriteReply::StaleLeader { message: message.clone() });
        assert_eq!(next, read_after(Duration::ZERO), "an earlier call may have bound it");
        let settled = Next::Settled(Outcome::StaleLeader { message });
        assert_eq!(binding.after_read(&ReadReply::Otherwise), settled);
        let ended = of_a_binding().after_write(WriteReply::TermEnded);
        assert_eq!(ended, Next::Settled(Outcome::TermEnded));
    }

    #[test]
    fn an_api_server_that_keeps_failing_is_asked_three_times_and_then_read() {
        let mut binding = of_a_binding();
        assert_eq!(binding.after_write(failed()), write_after_millis(100));
        assert_eq!(binding.after_write(failed()), write_after_millis(200));
        assert_eq!(binding.after_write(failed()), read_after(Duration::ZERO));
        let refused = Refused { message: "webhook is down".into(), is_conflict: false };
        let settled = Next::Settled(Outcome::Refused(refused));
        assert_eq!(binding.after_read(&ReadReply::Otherwise), settled);
    }

    #[test]
    fn a_pod_is_given_back_only_when_none_of_its_bindings_can_land_any_more() {
        for replies in [[unclear(), failed(), failed()], [failed(), failed(), unclear()]] {
            let mut binding = of_a_binding();
            let nexts = replies.map(|reply| binding.after_write(reply));
            let read = read_after(Duration::ZERO);
            assert_eq!(nexts, [write_after_millis(100), write_after_millis(200), read]);
            assert_eq!(binding.after_read(&ReadReply::Otherwise), read_after(LANDS_WITHIN));
            let settled = binding.after_read(&ReadReply::Otherwise);
            assert!(matches!(settled, Next::Settled(Outcome::Refused(_))), "{settled:?}");
        }
    }

    #[test]
    fn a_lost_reply_of_an_applied_binding_is_found_by_the_repeat() {
        let mut binding = of_a_binding();
        binding.after_write(unclear());
        assert_eq!(binding.after_write(refused()), read_after(Duration::ZERO));
        assert_eq!(binding.after_read(&ReadReply::AsWritten), Next::Settled(Outcome::Done));
    }

    #[test]
    fn while_the_api_server_is_away_the_pod_is_read_until_it_is_back_and_then_bound() {
        let mut binding = of_a_binding();
        assert_eq!(binding.after_write(WriteReply::Unsent), read_after(Duration::from_millis(100)));
        let mut pauses = Vec::new();
        for _ in 0..7 {
            match binding.after_read(&ReadReply::Unclear) {
                Next::Read { after } => pauses.push(after.as_millis()),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(pauses, [200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(binding.after_read(&ReadReply::Otherwise), write_after_millis(0));
    }

    #[test]
    fn a_server_that_asks_for_time_gets_it_within_reason() {
        let wait = |seconds| {
            let retry_after = Some(Duration::from_secs(seconds));
            of_a_binding().after_write(WriteReply::Failed { message: String::new(), retry_after })
        };
        assert_eq!(wait(2), Next::Write { after: Duration::from_secs(2) });
        assert_eq!(wait(86_400), Next::Write { after: RETRY_AFTER_MAX });
    }

    #[test]
    fn where_a_late_write_does_no_harm_one_read_decides() {
        let patience = Patience { writes_max: 1, reads_max: Some(2), waits_for_late: false };
        let mut deletion = Settling::new(patience);
        assert_eq!(deletion.after_write(unclear()), read_after(Duration::ZERO), "not repeated");
        let settled = deletion.after_read(&ReadReply::Otherwise);
        assert!(matches!(settled, Next::Settled(Outcome::Refused(_))), "{settled:?}");
        // An API server that stays away holds up the victim's eviction, and not for ever.
        let mut deletion = Settling::new(patience);
        deletion.after_write(WriteReply::Unsent);
        assert!(matches!(deletion.after_read(&ReadReply::Unclear), Next::Read { .. }));
        let settled = deletion.after_read(&ReadReply::Unclear);
        assert!(matches!(settled, Next::Settled(Outcome::Refused(_))), "{settled:?}");
    }
}

//! Where we are in following one resource, without I/O.
//!
//! ```text
//!           list or initial events end, or last page
//!  Listing ─────────────────────────────────▶ Watching ──┐ ended, or broke: from where it was
//!     ▲ ▲                                        │  ▲    │
//!     │ └── broke in the middle ─┐               │  └────┘
//!     └──────────────────────────┴──── 410 ──────┘
//! ```

use std::time::Duration;

/// What to ask the API server next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Everything there is, in one answer.
    List,
    /// A watch that begins with everything there is.
    Stream,
    /// A page of a list; the first if there is no token.
    Page {
        token: Option<String>,
    },
    Watch {
        from: String,
    },
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Break {
    /// In order, at its time.
    Ended,
    /// 410: what we ask for is too old.
    TooOld,
    /// 404: the resource is not served.
    NotServed,
    /// The server does not know how to begin a watch with everything there is.
    NoStreams,
    /// The server answers in JSON, of which one answer should not be everything there is.
    NoProtobuf,
    /// Anything else.
    Failed,
}

#[derive(Debug)]
pub(super) struct Cursor {
    position: Position,
    has_protobuf: bool,
    has_streams: bool,
    pause: Duration,
    /// Whether the present answer has brought anything.
    brought: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Position {
    Listing,
    Streaming,
    Paging { token: Option<String> },
    Watching { from: String },
}

/// A CRD that is installed, or an API server that is back, is noticed within this time.
const PAUSE_MAX: Duration = Duration::from_secs(3);
const PAUSE_FIRST: Duration = Duration::from_millis(100);

impl Cursor {
    /// A list in protobuf is read while it comes. JSON is read object by object only in a stream.
    pub fn new(has_protobuf: bool) -> Self {
        Self {
            position: if has_protobuf { Position::Listing } else { Position::Streaming },
            has_protobuf,
            has_streams: true,
            pause: PAUSE_FIRST,
            brought: false,
        }
    }

    /// The next question, and whether a list begins with it.
    pub fn ask(&mut self) -> (Ask, bool) {
        self.brought = false;
        match &self.position {
            Position::Listing => (Ask::List, true),
            Position::Streaming => (Ask::Stream, true),
            Position::Paging { token } => (Ask::Page { token: token.clone() }, token.is_none()),
            Position::Watching { from } => (Ask::Watch { from: from.clone() }, false),
        }
    }

    /// An object or a bookmark of a watch, with its version.
    pub fn brought(&mut self, version: Option<&str>) {
        self.brought = true;
        if let (Position::Watching { from }, Some(version)) = (&mut self.position, version) {
            self.pause = PAUSE_FIRST;
            version.clone_into(from);
        }
    }

    /// A page was read. Whether it was the last.
    pub fn page_ended(&mut self, version: String, token: Option<String>) -> bool {
        let is_last = token.is_none();
        if is_last {
            self.listed(version);
        } else {
            self.position = Position::Paging { token };
        }
        is_last
    }

    /// Everything there is has been brought.
    pub fn listed(&mut self, version: String) {
        self.pause = PAUSE_FIRST;
        self.position = Position::Watching { from: version };
    }

    /// The answer ended before we did. How long to wait before the next question.
    pub fn broke(&mut self, why: Break) -> Duration {
        match why {
            Break::Ended if self.brought && self.is_watching() => return Duration::ZERO,
            // A quiet one lasts for seconds; one that ends at once must not be asked for at once.
            Break::Ended if self.is_watching() => return PAUSE_FIRST,
            Break::NoStreams | Break::NoProtobuf => {
                self.has_streams &= why != Break::NoStreams;
                self.has_protobuf &= why != Break::NoProtobuf;
                self.position = self.piece_by_piece();
                return Duration::ZERO;
            }
            Break::Failed if self.is_watching() => {}
            Break::Ended | Break::TooOld | Break::NotServed | Break::Failed => self.start_over(),
        }
        let pause = self.pause;
        self.pause = (pause * 2).min(PAUSE_MAX);
        pause
    }

    fn is_watching(&self) -> bool {
        matches!(self.position, Position::Watching { .. })
    }

    fn start_over(&mut self) {
        // There may be too much for the time that the server gives one answer: a list that broke is not asked for
        // twice in a row.
        let lists = self.has_protobuf && self.position != Position::Listing;
        self.position = if lists { Position::Listing } else { self.piece_by_piece() };
    }

    fn piece_by_piece(&self) -> Position {
        if self.has_streams { Position::Streaming } else { Position::Paging { token: None } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(from: &str) -> (Ask, bool) {
        (Ask::Watch { from: from.to_owned() }, false)
    }

    fn page(token: Option<&str>) -> (Ask, bool) {
        (Ask::Page { token: token.map(str::to_owned) }, token.is_none())
    }

    /// One that watches from version 5.
    fn watching() -> Cursor {
        let mut cursor = Cursor::new(false);
        cursor.ask();
        cursor.listed("5".to_owned());
        cursor
    }

    #[test]
    fn a_watch_goes_on_from_where_it_was() {
        let mut cursor = watching();
        assert_eq!(cursor.ask(), watch("5"));
        cursor.brought(Some("7"));
        assert_eq!(cursor.broke(Break::Ended), Duration::ZERO);
        assert_eq!(cursor.ask(), watch("7"));
        assert_eq!(cursor.broke(Break::Ended), PAUSE_FIRST, "it brought nothing");
        assert_eq!(cursor.broke(Break::Failed), PAUSE_FIRST);
        assert_eq!(cursor.broke(Break::Failed), PAUSE_FIRST * 2);
        assert_eq!(cursor.ask(), watch("7"), "nothing is skipped");
        cursor.brought(Some("8"));
        assert_eq!(cursor.broke(Break::Failed), PAUSE_FIRST, "it had worked meanwhile");
    }

    #[test]
    fn what_is_too_old_is_listed_anew_and_an_old_server_in_pages() {
        let mut cursor = watching();
        cursor.broke(Break::TooOld);
        assert_eq!(cursor.ask(), (Ask::Stream, true));
        assert_eq!(cursor.broke(Break::NoStreams), Duration::ZERO);
        assert_eq!(cursor.ask(), page(None));
        assert!(!cursor.page_ended("9".to_owned(), Some("t".to_owned())));
        assert_eq!(cursor.ask(), page(Some("t")));
        cursor.broke(Break::TooOld);
        assert_eq!(cursor.ask(), page(None), "the rest of that list is lost");
        assert!(cursor.page_ended("11".to_owned(), None));
        assert_eq!(cursor.ask(), watch("11"));
        cursor.broke(Break::TooOld);
        assert_eq!(cursor.ask(), page(None), "it need not be told twice");
    }

    #[test]
    fn what_is_not_served_any_more_is_listed_when_it_is_again() {
        let mut cursor = watching();
        cursor.ask();
        cursor.broke(Break::NotServed);
        assert_eq!(cursor.ask(), (Ask::Stream, true));
    }

    #[test]
    fn in_protobuf_everything_is_listed_at_once_unless_that_broke() {
        let mut cursor = Cursor::new(true);
        assert_eq!(cursor.ask(), (Ask::List, true));
        assert_eq!(cursor.broke(Break::Failed), PAUSE_FIRST);
        assert_eq!(cursor.ask(), (Ask::Stream, true), "perhaps it is too much at once");
        assert_eq!(cursor.broke(Break::NoStreams), Duration::ZERO);
        assert_eq!(cursor.ask(), page(None), "and not the list again");
        cursor.broke(Break::Failed);
        assert_eq!(cursor.ask(), (Ask::List, true));
        assert!(cursor.page_ended("4".to_owned(), None));
        assert_eq!(cursor.ask(), watch("4"));
        cursor.broke(Break::TooOld);
        assert_eq!(cursor.ask(), (Ask::List, true));
    }

    #[test]
    fn a_server_without_protobuf_is_asked_for_a_stream() {
        let mut cursor = Cursor::new(true);
        cursor.ask();
        assert_eq!(cursor.broke(Break::NoProtobuf), Duration::ZERO);
        assert_eq!(cursor.ask(), (Ask::Stream, true));
        cursor.broke(Break::Failed);
        assert_eq!(cursor.ask(), (Ask::Stream, true), "it need not be told twice");
    }

    #[test]
    fn a_list_that_breaks_begins_again_and_pauses_grow() {
        let mut cursor = Cursor::new(false);
        let mut pauses = Vec::new();
        for why in [
            Break::Failed,
            Break::Ended,
            Break::NotServed,
            Break::TooOld,
            Break::Failed,
            Break::Failed,
            Break::Failed,
        ] {
            assert_eq!(cursor.ask(), (Ask::Stream, true));
            cursor.brought(Some("3"));
            pauses.push(cursor.broke(why).as_millis());
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3000, 3000]);
    }
}

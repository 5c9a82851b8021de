//! The plugin Corridor: bandwidth of Corridors and MemoryBundles. Its Filter is a rule like any other
//! (`rules/src/plugins/corridor`); PreFilter and Reserve look at reservations and queues, so they are here.

mod pre_filter;
mod reserve;

pub(crate) use reserve::grant;

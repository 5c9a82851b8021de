//! Taking over from another replica, and stepping back.

use std::sync::Arc;

use engine::{Event, Kind};
use kube::Client;
use tokio::sync::mpsc::Sender;
use tracing::{info, warn};

use crate::duty::Change;
use crate::run::{Driver, Input};
use crate::served::Served;
use crate::watch::{Listing, Unanswered};
use crate::wire::{NOT_COMPLETED, WirePod};

/// Pods in one answer: a few megabytes.
const PAGE_PODS: u32 = 500;

impl Driver {
    /// Follows the election. Whoever leads no more decides no more; the calls under way end by themselves,
    /// because the client gives them up.
    pub(crate) fn attend(&mut self) {
        self.notice_term();
        let lists = self.trackers.of(Kind::Pods).lists();
        if self.duty.wants_stock(self.clock.now(), lists) {
            self.take_stock();
        }
    }

    /// Whether this replica leads, by the clock. To be called before inputs are taken in: to a process that was stopped
    /// and continued, what the next leader has done meanwhile is no forgery.
    pub(crate) fn notice_term(&mut self) {
        let change = self.duty.set_term(self.tenure.term(), self.clock.now());
        if let Some(change) = change {
            self.change_sides(change);
        }
        self.noted.follows = self.duty.term().is_none();
    }

    fn change_sides(&mut self, change: Change) {
        self.metrics.set_leads(change == Change::Began);
        self.noted.guard.leads_as(self.term_name());
        if change == Change::Ended {
            // What another says from now on is no forgery of what we said.
            self.noted.own_writes.forget_driver();
        }
        if self.duty.decides() {
            self.handle(Event::TermBegan);
        }
    }

    /// Whether this replica may decide and write right now, by the clock.
    pub(crate) fn may_act(&self) -> bool {
        let holds = self.duty.term().is_some_and(|term| self.tenure.holds(term));
        !self.stopping && self.duty.decides() && holds
    }

    fn take_stock(&mut self) {
        self.trackers.of(Kind::Pods).begin_stock();
        let stocktaking = Stocktaking {
            client: self.client.clone(),
            served: self.noted.served.clone(),
            term: self.term_name(),
            sender: self.sender.clone(),
        };
        tokio::spawn(stocktaking.run());
    }

    pub(crate) fn term_name(&self) -> Option<Arc<str>> {
        self.duty.term().and_then(|term| term.name.clone())
    }

    pub(crate) fn take_stock_in(&mut self, term: Option<&Arc<str>>, pods: &[WirePod]) {
        let lists = self.trackers.of(Kind::Pods).lists();
        if !self.is_of_this_term(term) || !self.duty.takes_stock(lists) {
            return;
        }
        for wire in pods {
            if self.trackers.of(Kind::Pods).stocked(&wire.metadata)
                && let Some(pod) = self.noted.pod(wire)
            {
                self.handle(Event::PodSeen(pod));
            }
        }
    }

    pub(crate) fn end_stock(&mut self, term: Option<&Arc<str>>, pods: Option<usize>) {
        if !self.is_of_this_term(term) {
            return;
        }
        let (now, lists) = (self.clock.now(), self.trackers.of(Kind::Pods).lists());
        let usable = self.duty.stock_came(pods.is_some(), lists, now);
        let news = self.trackers.of(Kind::Pods).end_stock();
        if usable {
            info!(pods, news, "every Pod is known as of now; deciding");
            self.handle(Event::TermBegan);
        }
    }

    /// A list that was long on its way may be of an earlier term, and knows nothing of the leaders since.
    fn is_of_this_term(&self, term: Option<&Arc<str>>) -> bool {
        term == self.term_name().as_ref()
    }
}

/// Lists every Pod of this scheduler, and tells what it finds while it comes.
struct Stocktaking {
    client: Client,
    served: Served,
    term: Option<Arc<str>>,
    sender: Sender<Input>,
}

impl Stocktaking {
    async fn run(self) {
        let pods = self.list_all().await;
        if let Err(error) = &pods {
            warn!(%error, "the Pods cannot be listed; trying again before anything is decided");
        }
        let _ = self.sender.send(Input::StockEnds { term: self.term, pods: pods.ok() }).await;
    }

    async fn list_all(&self) -> Result<usize, Unanswered> {
        let mut pods = 0;
        // A selector of fields names one value.
        for scheduler_name in self.served.names() {
            pods += self.list(scheduler_name).await?;
        }
        Ok(pods)
    }

    /// By a consistent read: no resourceVersion is given. In one answer, which is read while it comes: with a limit, an
    /// API server that has no snapshots in its cache reads the Pods of all schedulers from etcd to find ours. If that
    /// breaks, page by page; later pages show the same moment as the first. A Pod that cannot be read is the watch's
    /// business.
    async fn list(&self, scheduler_name: &str) -> Result<usize, Unanswered> {
        let whole = list_path(scheduler_name, None);
        let (broke, mut pods) = match self.ask(&whole).await {
            Ok((pods, None)) => return Ok(pods),
            Ok((pods, Some(_))) => ("it was not the whole".to_owned(), pods),
            Err(error) => (error.to_string(), 0),
        };
        info!(why = broke, "the list of the Pods broke; asking for it page by page");
        let mut page = Some(String::new());
        while let Some(token) = page {
            let (found, next) = self.ask(&list_path(scheduler_name, Some(&token))).await?;
            (pods, page) = (pods + found, next);
        }
        Ok(pods)
    }

    /// How many Pods the answer had, and where it goes on.
    async fn ask(&self, path: &str) -> Result<(usize, Option<String>), Unanswered> {
        let (mut pods, mut listing) = (0, Listing::<WirePod>::ask(&self.client, path).await?);
        while let Some(found) = listing.next().await? {
            pods += found.len();
            let term = self.term.clone();
            // Nobody listens once the driver has ended, and then this ends with it.
            let _ = self.sender.send(Input::Stock { term, pods: found }).await;
        }
        Ok((pods, listing.token()))
    }
}

/// No `page`: everything. An empty one: the first page.
fn list_path(scheduler_name: &str, page: Option<&str>) -> String {
    let ours = format!("spec.schedulerName%3D{scheduler_name},{NOT_COMPLETED}");
    let page = match page {
        None => String::new(),
        Some("") => format!("&limit={PAGE_PODS}"),
        Some(token) => format!("&limit={PAGE_PODS}&continue={token}"),
    };
    format!("/api/v1/pods?fieldSelector={ours}{page}")
}

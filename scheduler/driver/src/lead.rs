//! Taking over from another replica, and stepping back.

use std::sync::Arc;

use engine::{Event, Kind};
use kube::Client;
use tokio::sync::mpsc::Sender;
use tracing::{info, warn};

use crate::duty::Change;
use crate::run::{Driver, Input};
use crate::served::Served;
use crate::watch::{Page, Unanswered};
use crate::wire::WirePod;

/// Pods in one answer: a few megabytes.
const PAGE_PODS: u32 = 500;

impl Driver {
    /// Follows the election. Whoever leads no more decides no more; the calls under way end by themselves,
    /// because the client gives them up.
    pub(crate) fn attend(&mut self) {
        let now = self.clock.now();
        let change = self.duty.set_term(self.tenure.term(), now);
        if let Some(change) = change {
            self.change_sides(change);
        }
        self.noted.follows = self.duty.term().is_none();
        let lists = self.trackers.of(Kind::Pods).lists();
        if self.duty.wants_stock(now, lists) {
            self.take_stock();
        }
    }

    fn change_sides(&mut self, change: Change) {
        self.metrics.set_leads(change == Change::Began);
        self.noted.guard.leads_as(self.term_name());
        if change == Change::Ended {
            // What another says from now on is no forgery of what we said.
            self.noted.witness.forget_uses();
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

/// Lists every Pod of this scheduler, page by page, and tells what it finds.
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

    /// By a consistent read: no resourceVersion is given. Later pages show the same moment as the first. A Pod that
    /// cannot be read is the watch's business.
    async fn list(&self, scheduler_name: &str) -> Result<usize, Unanswered> {
        let (mut pods, mut token) = (0, None);
        loop {
            let path = page_path(scheduler_name, token.as_deref());
            let page = Page::<WirePod>::ask(&self.client, &path).await?;
            pods += page.objects.len();
            let (term, found) = (self.term.clone(), page.objects);
            // Nobody listens once the driver has ended, and then this ends with it.
            let _ = self.sender.send(Input::Stock { term, pods: found }).await;
            token = page.token;
            if token.is_none() {
                return Ok(pods);
            }
        }
    }
}

fn page_path(scheduler_name: &str, token: Option<&str>) -> String {
    let ours = format!("fieldSelector=spec.schedulerName%3D{scheduler_name}");
    let token = token.map(|token| format!("&continue={token}")).unwrap_or_default();
    format!("/api/v1/pods?limit={PAGE_PODS}&{ours}{token}")
}

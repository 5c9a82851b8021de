//! Taking over from another replica, and stepping back.

use std::sync::Arc;

use engine::{Event, Kind};
use http::Request;
use kube::Client;
use tracing::{info, warn};

use crate::duty::Change;
use crate::run::{Driver, Input};
use crate::served::Served;
use crate::watch::{Page, read};
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
        let (client, sender) = (self.client.clone(), self.sender.clone());
        let (term, served) = (self.term_name(), self.noted.served.clone());
        tokio::spawn(async move {
            let pods = our_pods(client, &served).await;
            if let Err(error) = &pods {
                warn!(%error, "the Pods cannot be listed; trying again before anything is decided");
            }
            let _ = sender.send(Input::StockTaken { term, pods: pods.ok() }).await;
        });
    }

    pub(crate) fn term_name(&self) -> Option<Arc<str>> {
        self.duty.term().and_then(|term| term.name.clone())
    }

    pub(crate) fn take_stock_in(&mut self, term: Option<&Arc<str>>, pods: Option<Vec<WirePod>>) {
        // A list that was long on its way may be of an earlier term, and knows nothing of the leaders since.
        if term != self.term_name().as_ref() {
            return;
        }
        let (now, lists) = (self.clock.now(), self.trackers.of(Kind::Pods).lists());
        let usable = self.duty.stock_came(pods.is_some(), lists, now);
        let pods = pods.filter(|_| usable).unwrap_or_default();
        let mut news: usize = 0;
        for wire in &pods {
            if self.trackers.of(Kind::Pods).stocked(&wire.metadata)
                && let Some(pod) = self.noted.pod(wire)
            {
                news += 1;
                self.handle(Event::PodSeen(pod));
            }
        }
        self.trackers.of(Kind::Pods).end_stock();
        if usable {
            info!(pods = pods.len(), news, "every Pod is known as of now; deciding");
            self.handle(Event::TermBegan);
        }
    }
}

/// Every Pod of this scheduler, by a consistent read: no resourceVersion is given. Later pages show the
/// same moment as the first. One that cannot be read is the watch's business.
async fn our_pods(client: Client, served: &Served) -> kube::Result<Vec<WirePod>> {
    let mut pods = Vec::new();
    // A selector of fields names one value.
    for scheduler_name in served.names() {
        let mut token = None;
        loop {
            let text = client.request_text(page(scheduler_name, token.as_deref())?).await?;
            let page = Page::read(text.as_bytes()).map_err(kube::Error::SerdeError)?;
            pods.extend(page.items().iter().filter_map(|raw| read::<WirePod>(raw).ok()));
            match page.token() {
                Some(next) => token = Some(next.to_owned()),
                None => break,
            }
        }
    }
    Ok(pods)
}

fn page(scheduler_name: &str, token: Option<&str>) -> kube::Result<Request<Vec<u8>>> {
    let ours = format!("fieldSelector=spec.schedulerName%3D{scheduler_name}");
    let token = token.map(|token| format!("&continue={token}")).unwrap_or_default();
    Request::get(format!("/api/v1/pods?limit={PAGE_PODS}&{ours}{token}"))
        .body(Vec::new())
        .map_err(kube::Error::HttpError)
}

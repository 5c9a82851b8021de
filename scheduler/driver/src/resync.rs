//! Taking over from another replica (a resync of all Pods comes first), and stepping back.

use std::sync::Arc;

use engine::{Event, WatchedKind};
use kube::Client;
use tokio::sync::mpsc::Sender;
use tracing::{info, warn};

use crate::duty::TermChange;
use crate::profile_names::ProfileNames;
use crate::run::{Driver, Input};
use crate::watch::{Listing, Unanswered};
use crate::wire::{NOT_COMPLETED, WirePod};

/// Pods in one answer: a few megabytes.
const PAGE_PODS: u32 = 500;

impl Driver {
    /// Follows the election. A replica that has lost its term decides nothing; its calls in flight end by themselves,
    /// because the client cancels them.
    pub(crate) fn attend(&mut self) {
        self.notice_term();
        let lists = self.trackers.of(WatchedKind::Pods).lists();
        if self.duty.wants_resync(self.clock.now(), lists) {
            self.resync();
        }
    }

    /// Whether this replica leads, by the clock. To be called before inputs are taken in: to a process that was stopped
    /// and continued, what the next leader has done meanwhile is no forgery.
    pub(crate) fn notice_term(&mut self) {
        let change = self.duty.set_term(self.tenure.term(), self.clock.now());
        if let Some(change) = change {
            self.term_changed(change);
        }
        self.watched.follows = self.duty.term().is_none();
    }

    fn term_changed(&mut self, change: TermChange) {
        self.metrics.set_leads(change == TermChange::Began);
        self.watched.guard.leads_as(self.term_name());
        if change == TermChange::Ended {
            // Statuses that another replica writes from now on are not forged.
            self.watched.own_writes.forget_driver();
        }
        if self.duty.decides() {
            self.handle(Event::TermBegan);
        }
    }

    fn resync(&mut self) {
        self.trackers.of(WatchedKind::Pods).begin_resync();
        let list = ResyncList {
            client: self.client.clone(),
            profiles: self.watched.profiles.clone(),
            term: self.term_name(),
            sender: self.sender.clone(),
        };
        tokio::spawn(list.run());
    }

    pub(crate) fn term_name(&self) -> Option<Arc<str>> {
        self.duty.term().and_then(|term| term.name.clone())
    }

    pub(crate) fn take_resynced(&mut self, term: Option<&Arc<str>>, pods: &[WirePod]) {
        let lists = self.trackers.of(WatchedKind::Pods).lists();
        if !self.is_of_this_term(term) || !self.duty.accepts_resync(lists) {
            return;
        }
        for wire in pods {
            if self.trackers.of(WatchedKind::Pods).resynced(&wire.metadata)
                && let Some(pod) = self.watched.pod(wire)
            {
                self.handle(Event::seen(pod));
            }
        }
    }

    pub(crate) fn end_resync(&mut self, term: Option<&Arc<str>>, pods: Option<usize>) {
        if !self.is_of_this_term(term) {
            return;
        }
        let (now, lists) = (self.clock.now(), self.trackers.of(WatchedKind::Pods).lists());
        let usable = self.duty.resync_ended(pods.is_some(), lists, now);
        let new_objects = self.trackers.of(WatchedKind::Pods).end_resync();
        if usable {
            info!(pods, new_objects, "every Pod is known as of now; deciding");
            self.handle(Event::TermBegan);
        }
    }

    /// A list that was long on its way may be of an earlier term, and knows nothing of the leaders since.
    fn is_of_this_term(&self, term: Option<&Arc<str>>) -> bool {
        term == self.term_name().as_ref()
    }
}

/// Lists every Pod of this scheduler, and sends the Pods to the loop while they arrive.
struct ResyncList {
    client: Client,
    profiles: ProfileNames,
    term: Option<Arc<str>>,
    sender: Sender<Input>,
}

impl ResyncList {
    async fn run(self) {
        let pods = self.list_all().await;
        if let Err(error) = &pods {
            warn!(%error, "the Pods cannot be listed; trying again before anything is decided");
        }
        let _ = self.sender.send(Input::ResyncEnded { term: self.term, pods: pods.ok() }).await;
    }

    async fn list_all(&self) -> Result<usize, Unanswered> {
        let mut pods = 0;
        // A selector of fields names one value.
        for scheduler_name in self.profiles.names() {
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
            // The receiver is closed once the driver has ended, and then this task ends with it.
            let _ = self.sender.send(Input::Resynced { term, pods: found }).await;
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

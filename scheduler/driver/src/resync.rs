//! Taking over from another replica (a resync of all Pods and ResourceClaims comes first), and stepping back.

use std::sync::Arc;

use engine::{Event, WatchedKind};
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::{Client, Resource as _};
use tokio::sync::mpsc::Sender;
use tracing::{info, warn};

use crate::duty::TermChange;
use crate::kinds::WatchedResource as _;
use crate::profile_names::ProfileNames;
use crate::run::{Driver, Input};
use crate::watch::{Listing, Unanswered};
use crate::wire::{NOT_COMPLETED, Wire, WirePod};

/// Objects in one answer: a few megabytes.
const PAGE_OBJECTS: u32 = 500;

/// The kinds that say what a leader has given out. What it has written of others is protected by its version.
const RESYNCED: [WatchedKind; 2] = [WatchedKind::Pods, ResourceClaim::KIND];

const CLAIMS: &str = "/apis/resource.k8s.io/v1/resourceclaims";

impl Driver {
    /// Follows the election. A replica that has lost its term decides nothing; its calls in flight end by themselves,
    /// because the client cancels them.
    pub(crate) fn attend(&mut self) {
        self.notice_term();
        let lists = self.lists();
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

    /// Tells apart how often the watches of these kinds have listed; none while that of Pods is at it.
    fn lists(&mut self) -> Option<u64> {
        let pods = self.trackers.of(WatchedKind::Pods).lists()?;
        let claims = self.trackers.of(ResourceClaim::KIND).lists();
        Some(pods << 32 | claims.unwrap_or(0))
    }

    fn resync(&mut self) {
        for kind in RESYNCED {
            self.trackers.of(kind).begin_resync();
        }
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
        if !self.takes_resynced(term) {
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

    pub(crate) fn take_resynced_claims(
        &mut self,
        term: Option<&Arc<str>>,
        claims: Vec<ResourceClaim>,
    ) {
        if !self.takes_resynced(term) {
            return;
        }
        for claim in claims {
            if self.trackers.of(ResourceClaim::KIND).resynced(claim.meta()) {
                let seen = claim.seen(&mut self.watched);
                self.handle_evaluations();
                self.handle_some(seen);
            }
        }
    }

    fn takes_resynced(&mut self, term: Option<&Arc<str>>) -> bool {
        let lists = self.lists();
        self.is_of_this_term(term) && self.duty.accepts_resync(lists)
    }

    pub(crate) fn end_resync(&mut self, term: Option<&Arc<str>>, pods: Option<usize>) {
        if !self.is_of_this_term(term) {
            return;
        }
        let (now, lists) = (self.clock.now(), self.lists());
        let usable = self.duty.resync_ended(pods.is_some(), lists, now);
        let new_objects = RESYNCED.map(|kind| self.trackers.of(kind).end_resync());
        let new_objects: usize = new_objects.iter().sum();
        if usable {
            info!(pods, new_objects, "every Pod and ResourceClaim is known as of now; deciding");
            self.handle(Event::TermBegan);
        }
    }

    /// A list that was long on its way may be of an earlier term, and knows nothing of the leaders since.
    fn is_of_this_term(&self, term: Option<&Arc<str>>) -> bool {
        term == self.term_name().as_ref()
    }
}

/// Lists every Pod of this scheduler and every ResourceClaim, and sends them to the loop while they arrive.
struct ResyncList {
    client: Client,
    profiles: ProfileNames,
    term: Option<Arc<str>>,
    sender: Sender<Input>,
}

/// What the loop gets of a part of a list.
type Resynced<K> = fn(Option<Arc<str>>, Vec<K>) -> Input;

impl ResyncList {
    async fn run(self) {
        let pods = self.list_all().await;
        if let Err(error) = &pods {
            let text = "the Pods and ResourceClaims cannot be listed; trying again before anything is decided";
            warn!(%error, text);
        }
        let _ = self.sender.send(Input::ResyncEnded { term: self.term, pods: pods.ok() }).await;
    }

    /// Returns how many Pods there are.
    async fn list_all(&self) -> Result<usize, Unanswered> {
        let of_claims = |term, claims| Input::ResyncedClaims { term, claims };
        match self.list(CLAIMS, of_claims).await {
            Err(error) if error.is_absent() => {}
            listed => listed.map(drop)?,
        }
        let mut pods = 0;
        // A selector of fields names one value.
        for scheduler_name in self.profiles.names() {
            let path = pods_path(scheduler_name);
            pods += self.list(&path, |term, pods| Input::Resynced { term, pods }).await?;
        }
        Ok(pods)
    }

    /// By a consistent read: no resourceVersion is given. In one answer, which is read while it comes: with a limit, an
    /// API server that has no snapshots in its cache reads the Pods of all schedulers from etcd to find ours. If that
    /// breaks, page by page; later pages show the same moment as the first. An object that cannot be read is the watch's
    /// business.
    async fn list<K: Wire>(&self, path: &str, input: Resynced<K>) -> Result<usize, Unanswered> {
        let (broke, mut count) = match self.ask(path, input).await {
            Ok((count, None)) => return Ok(count),
            Ok((count, Some(_))) => ("it was not the whole".to_owned(), count),
            Err(error) if error.is_absent() => return Err(error),
            Err(error) => (error.to_string(), 0),
        };
        info!(why = broke, resource = K::NAME, "a list broke; asking for it page by page");
        let mut page = Some(String::new());
        while let Some(token) = page {
            let (found, next) = self.ask(&page_path(path, &token), input).await?;
            (count, page) = (count + found, next);
        }
        Ok(count)
    }

    /// How many objects the answer had, and where it goes on.
    async fn ask<K: Wire>(
        &self,
        path: &str,
        input: Resynced<K>,
    ) -> Result<(usize, Option<String>), Unanswered> {
        let (mut count, mut listing) = (0, Listing::<K>::ask(&self.client, path).await?);
        while let Some(found) = listing.next().await? {
            count += found.len();
            // The receiver is closed once the driver has ended, and then this task ends with it.
            let _ = self.sender.send(input(self.term.clone(), found)).await;
        }
        Ok((count, listing.token()))
    }
}

fn pods_path(scheduler_name: &str) -> String {
    let ours = format!("spec.schedulerName%3D{scheduler_name},{NOT_COMPLETED}");
    format!("/api/v1/pods?fieldSelector={ours}")
}

/// Without a token: the first page.
fn page_path(path: &str, token: &str) -> String {
    let begin = if path.contains('?') { '&' } else { '?' };
    let token = if token.is_empty() { String::new() } else { format!("&continue={token}") };
    format!("{path}{begin}limit={PAGE_OBJECTS}{token}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_either_list_are_asked_for() {
        assert_eq!(page_path(CLAIMS, ""), format!("{CLAIMS}?limit=500"));
        let pods = page_path(&pods_path("ours"), "t");
        assert!(
            pods.starts_with("/api/v1/pods?fieldSelector=spec.schedulerName%3Dours,"),
            "{pods}"
        );
        assert!(pods.ends_with("&limit=500&continue=t"), "{pods}");
    }
}

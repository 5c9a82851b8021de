//! Taking over from another replica, and stepping back.

use engine::{Event, Kind};
use kube::api::ListParams;
use kube::{Api, Client};
use tracing::{info, warn};

use crate::duty::Change;
use crate::run::{Driver, Input};
use crate::translate;
use crate::wire::WirePod;

/// Pods in one answer: a few megabytes.
const PAGE_PODS: u32 = 500;

impl Driver {
    /// Follows the election. Whoever leads no more decides no more; the calls under way end by themselves,
    /// because the client gives them up.
    pub(crate) fn attend(&mut self) {
        let now = self.clock.now();
        let change = self.duty.set_term(self.tenure.term(), now);
        self.metrics.set_leads(self.duty.term().is_some());
        if change == Some(Change::Began) && self.duty.decides() {
            self.handle(Event::TermBegan);
        }
        let lists = self.trackers.of(Kind::Pods).lists();
        if self.duty.wants_stock(now, lists) {
            self.take_stock();
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
        tokio::spawn(async move {
            let pods = our_pods(client).await;
            if let Err(error) = &pods {
                warn!(%error, "the Pods cannot be listed; trying again before anything is decided");
            }
            let _ = sender.send(Input::StockTaken(pods.ok())).await;
        });
    }

    pub(crate) fn take_stock_in(&mut self, pods: Option<Vec<WirePod>>) {
        let (now, lists) = (self.clock.now(), self.trackers.of(Kind::Pods).lists());
        let usable = self.duty.stock_came(pods.is_some(), lists, now);
        let pods = pods.filter(|_| usable).unwrap_or_default();
        let mut news: usize = 0;
        for wire in &pods {
            if self.trackers.of(Kind::Pods).stocked(&wire.metadata)
                && let Some(pod) = translate::pod(wire)
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
/// same moment as the first.
async fn our_pods(client: Client) -> kube::Result<Vec<WirePod>> {
    let api: Api<WirePod> = Api::all(client);
    let ours = format!("spec.schedulerName={}", crds::SCHEDULER_NAME);
    let mut params = ListParams::default().fields(&ours).limit(PAGE_PODS);
    let mut pods = Vec::new();
    loop {
        let page = api.list(&params).await?;
        pods.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(pods),
        }
    }
}

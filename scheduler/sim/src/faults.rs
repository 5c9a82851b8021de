//! Faults on purpose, for tests: what a network and a busy server do to a client, one at a time, exactly
//! when it is asked for.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::request::Target;

/// More waiting at once is a test that forgot what it asked for.
const FAULTS_MAX: usize = 1_000;

/// What a request does, in the words of RBAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is not carried out, and answered with this code, of 400 to 599.
    Refuse(u16),
    /// It is carried out, but not answered: the connection breaks off instead.
    LoseReply,
    /// It is carried out after this time.
    Delay(Duration),
}

/// Which requests are meant; what is not said is any.
#[derive(Debug, Clone, Default)]
pub struct Matching {
    verb: Option<Verb>,
    resource: Option<String>,
    subresource: Option<String>,
    name: Option<String>,
}

impl Matching {
    pub fn any() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    /// With its group, as in `pods` or `leases.coordination.k8s.io`.
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// `status` or `binding`; empty for the object itself.
    #[must_use]
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// The name in the path. Lists, and what is created, have none there.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    fn matches(&self, request: &Described) -> bool {
        self.verb.is_none_or(|verb| verb == request.verb)
            && self.resource.as_ref().is_none_or(|resource| *resource == request.resource)
            && self.subresource.as_ref().is_none_or(|it| *it == request.subresource)
            && self.name.as_ref().is_none_or(|name| request.name.as_ref() == Some(name))
    }
}

/// A request, as far as faults can choose it.
#[derive(Debug, Clone)]
pub(crate) struct Described {
    verb: Verb,
    resource: String,
    subresource: String,
    name: Option<String>,
}

impl Described {
    pub fn new(verb: Verb, target: &Target) -> Self {
        Self {
            verb,
            resource: target.ty.qualified(),
            subresource: target.subresource.clone(),
            name: target.name.clone(),
        }
    }
}

/// What a running watch has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Speak,
    BeSilent,
    BreakOff,
}

#[derive(Debug, Default)]
pub(crate) struct Faults {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Waiting>,
    watches: BTreeMap<u64, (Described, watch::Sender<Order>)>,
    watches_ever: u64,
    silenced: Vec<Matching>,
}

#[derive(Debug)]
struct Waiting {
    matching: Matching,
    fault: Fault,
    times: usize,
}

impl Faults {
    pub fn inject(&self, matching: Matching, fault: Fault, times: usize) {
        if let Fault::Refuse(code) = fault {
            assert!((400..600).contains(&code), "{code} is not the code of a refusal");
        }
        if times == 0 {
            return;
        }
        let mut state = self.state.lock();
        assert!(state.waiting.len() < FAULTS_MAX, "{FAULTS_MAX} faults wait for requests already");
        state.waiting.push(Waiting { matching, fault, times });
    }

    /// The fault that was asked for first among those that fit, used up by this.
    pub fn take(&self, request: &Described) -> Option<Fault> {
        let mut state = self.state.lock();
        let index = state.waiting.iter().position(|it| it.matching.matches(request))?;
        let waiting = &mut state.waiting[index];
        let fault = waiting.fault;
        waiting.times -= 1;
        if waiting.times == 0 {
            state.waiting.remove(index);
        }
        Some(fault)
    }

    /// How many times a fault is still to come.
    pub fn waiting(&self) -> usize {
        self.state.lock().waiting.iter().map(|waiting| waiting.times).sum()
    }

    pub fn cut_watches(&self, matching: &Matching) -> usize {
        let state = self.state.lock();
        let mut count = 0;
        for (_, orders) in state.watches.values().filter(|(watch, _)| matching.matches(watch)) {
            orders.send_replace(Order::BreakOff);
            count += 1;
        }
        count
    }

    pub fn silence_watches(&self, matching: Matching) {
        let mut state = self.state.lock();
        assert!(state.silenced.len() < FAULTS_MAX, "{FAULTS_MAX} silences are kept already");
        for (described, orders) in state.watches.values() {
            if matching.matches(described) {
                order(orders, Order::BeSilent);
            }
        }
        state.silenced.push(matching);
    }

    pub fn end_silence(&self) {
        let mut state = self.state.lock();
        state.silenced.clear();
        for (_, orders) in state.watches.values() {
            order(orders, Order::Speak);
        }
    }

    /// Enters a watch that begins.
    pub fn attend(self: &Arc<Self>, watch: Described) -> Attended {
        let mut state = self.state.lock();
        let silent = state.silenced.iter().any(|matching| matching.matches(&watch));
        let (sender, orders) = watch::channel(if silent { Order::BeSilent } else { Order::Speak });
        state.watches_ever += 1;
        let number = state.watches_ever;
        state.watches.insert(number, (watch, sender));
        Attended { faults: self.clone(), number, orders }
    }
}

/// A watch that has to break off does nothing else any more.
fn order(orders: &watch::Sender<Order>, order: Order) {
    orders.send_if_modified(|current| {
        let heeded = *current != Order::BreakOff && *current != order;
        if heeded {
            *current = order;
        }
        heeded
    });
}

/// A running watch, for as long as it runs.
#[derive(Debug)]
pub(crate) struct Attended {
    faults: Arc<Faults>,
    number: u64,
    orders: watch::Receiver<Order>,
}

impl Attended {
    pub fn order(&mut self) -> Order {
        *self.orders.borrow_and_update()
    }

    pub async fn changed(&mut self) {
        // Its sender stands in the list until this is dropped.
        let _ = self.orders.changed().await;
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        self.faults.state.lock().watches.remove(&self.number);
    }
}

/// As the body of an answer, this makes the server close the connection without one.
pub(crate) fn broken_off() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "broken off on purpose")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(verb: Verb, resource: &str, name: Option<&str>) -> Described {
        let name = name.map(ToOwned::to_owned);
        Described { verb, resource: resource.to_owned(), subresource: String::new(), name }
    }

    #[test]
    fn a_fault_meets_only_what_it_names_and_only_so_often() {
        let faults = Faults::default();
        let puts_of_pods = Matching::any().verb(Verb::Update).resource("pods").name("a");
        faults.inject(puts_of_pods, Fault::Refuse(500), 2);
        assert_eq!(faults.take(&described(Verb::Get, "pods", Some("a"))), None);
        assert_eq!(faults.take(&described(Verb::Update, "nodes", Some("a"))), None);
        assert_eq!(faults.take(&described(Verb::Update, "pods", Some("b"))), None);
        let meant = described(Verb::Update, "pods", Some("a"));
        let taken: Vec<_> = (0..3).map(|_| faults.take(&meant)).collect();
        assert_eq!(taken, [Some(Fault::Refuse(500)), Some(Fault::Refuse(500)), None]);
        assert_eq!(faults.waiting(), 0);
    }

    #[test]
    fn faults_come_in_the_order_they_were_asked_for() {
        let faults = Faults::default();
        faults.inject(Matching::any().verb(Verb::Create), Fault::Refuse(429), 1);
        faults.inject(Matching::any(), Fault::LoseReply, 1);
        let create = described(Verb::Create, "pods", None);
        assert_eq!(faults.take(&create), Some(Fault::Refuse(429)));
        assert_eq!(faults.take(&create), Some(Fault::LoseReply));
    }

    #[test]
    fn silence_holds_for_watches_that_begin_later_and_for_no_other() {
        let faults = Arc::new(Faults::default());
        let mut early = faults.attend(described(Verb::Watch, "pods", None));
        faults.silence_watches(Matching::any().resource("pods"));
        let mut late = faults.attend(described(Verb::Watch, "pods", None));
        let mut other = faults.attend(described(Verb::Watch, "nodes", None));
        let orders = [early.order(), late.order(), other.order()];
        assert_eq!(orders, [Order::BeSilent, Order::BeSilent, Order::Speak]);
        assert_eq!(faults.cut_watches(&Matching::any().resource("nodes")), 1);
        faults.end_silence();
        let orders = [early.order(), late.order(), other.order()];
        assert_eq!(orders, [Order::Speak, Order::Speak, Order::BreakOff]);
        drop((early, late, other));
        assert_eq!(faults.cut_watches(&Matching::any()), 0, "nobody is left");
    }
}

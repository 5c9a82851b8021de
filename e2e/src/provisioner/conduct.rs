//! How the provisioner behaves towards the claims of a class, as the parameters of the class say.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::objects::volumes::ClassTemplate;

const FAULT: &str = "fault";
const NODES: &str = "faultNodes";
const ZONE: &str = "zone";
const DELAY: &str = "delayMilliseconds";

/// What is wrong with the storage behind a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It never answers.
    Never,
    /// It is exhausted (`ResourceExhausted`): each claim is refused once, and served then.
    ExhaustedOnce,
    /// … every time.
    ExhaustedAlways,
    /// … on these nodes.
    ExhaustedOn(&'static [&'static str]),
    /// The volume is made in this zone, whatever node was selected.
    InZone(&'static str),
}

impl ClassTemplate {
    /// Has the provisioner fail the claims of this class.
    #[must_use]
    pub fn fault(self, fault: Fault) -> Self {
        match fault {
            Fault::Never => self.parameter(FAULT, "never"),
            Fault::ExhaustedOnce => self.parameter(FAULT, "exhausted-once"),
            Fault::ExhaustedAlways => self.parameter(FAULT, "exhausted-always"),
            Fault::ExhaustedOn(nodes) => {
                self.parameter(FAULT, "exhausted-on-nodes").parameter(NODES, &nodes.join(","))
            }
            Fault::InZone(zone) => self.parameter(ZONE, zone),
        }
    }

    /// Has the provisioner take its time.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        self.parameter(DELAY, &delay.as_millis().to_string())
    }
}

/// The parameters of a class, read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Conduct {
    refusal: Option<Refusal>,
    /// Where volumes are made, if not where they were asked for.
    pub zone: Option<String>,
    pub delay: Duration,
}

#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    Never,
    Once,
    Always,
    On(Vec<String>),
}

/// What becomes of a claim.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Volume,
    Exhausted,
    Never,
}

impl Conduct {
    pub fn of(parameters: Option<&BTreeMap<String, String>>) -> Result<Self> {
        let empty = BTreeMap::new();
        let parameters = parameters.unwrap_or(&empty);
        let doing = "reading the parameters of a class";
        let refusal = match parameters.get(FAULT).map(String::as_str) {
            None => None,
            Some("never") => Some(Refusal::Never),
            Some("exhausted-once") => Some(Refusal::Once),
            Some("exhausted-always") => Some(Refusal::Always),
            Some("exhausted-on-nodes") => {
                let nodes = parameters.get(NODES).map(String::as_str).unwrap_or_default();
                Some(Refusal::On(nodes.split(',').map(str::to_owned).collect()))
            }
            Some(other) => return Err(Error::malformed(doing, format!("no fault {other:?}"))),
        };
        let delay = parameters.get(DELAY).map_or(Ok(0), |text| text.parse());
        let delay = delay.map_err(|problem| Error::malformed(doing, problem))?;
        let delay = Duration::from_millis(delay);
        Ok(Self { refusal, zone: parameters.get(ZONE).cloned(), delay })
    }

    pub fn answer(&self, selected_node: Option<&str>, was_refused: bool) -> Answer {
        match &self.refusal {
            None => Answer::Volume,
            Some(Refusal::Never) => Answer::Never,
            Some(Refusal::Once) if was_refused => Answer::Volume,
            Some(Refusal::Once | Refusal::Always) => Answer::Exhausted,
            Some(Refusal::On(nodes)) => {
                let is_one = |node: &str| nodes.iter().any(|it| it == node);
                if selected_node.is_some_and(is_one) { Answer::Exhausted } else { Answer::Volume }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conduct(parameters: &[(&str, &str)]) -> Result<Conduct> {
        let owned = parameters.iter().map(|(key, value)| ((*key).into(), (*value).into()));
        Conduct::of(Some(&owned.collect()))
    }

    #[test]
    fn a_class_without_parameters_is_served_at_once() {
        assert_eq!(Conduct::of(None).unwrap(), Conduct::default());
        assert_eq!(Conduct::default().answer(Some("n"), false), Answer::Volume);
    }

    #[test]
    fn a_claim_that_was_refused_once_is_served_then() {
        let conduct = conduct(&[(FAULT, "exhausted-once")]).unwrap();
        assert_eq!(conduct.answer(Some("n"), false), Answer::Exhausted);
        assert_eq!(conduct.answer(Some("n"), true), Answer::Volume);
    }

    #[test]
    fn only_the_nodes_that_are_named_are_exhausted() {
        let conduct = conduct(&[(FAULT, "exhausted-on-nodes"), (NODES, "a,b")]).unwrap();
        assert_eq!(conduct.answer(Some("b"), false), Answer::Exhausted);
        assert_eq!(conduct.answer(Some("c"), false), Answer::Volume);
    }

    #[test]
    fn what_is_no_fault_is_refused() {
        assert!(conduct(&[(FAULT, "sometimes")]).is_err());
        assert!(conduct(&[(DELAY, "soon")]).is_err());
    }
}

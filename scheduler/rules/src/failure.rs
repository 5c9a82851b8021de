//! What ends an attempt with an error, as in kube-scheduler.

use std::fmt;
use std::sync::Arc;

use model::SelectorError;

use crate::plugins::Plugin;
use crate::reason::Reason;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub plugin: Plugin,
    pub why: FailureCause,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// Terms or preferences of the Pod that cannot be parsed.
    Selector(SelectorError),
    /// A volume of the Pod, or what stands behind it, in kube-scheduler's words.
    Volume(Arc<str>),
}

impl Failure {
    /// The first among the reasons of Nodes: one Node is enough to end the attempt.
    pub(crate) fn among<'a>(reasons: impl IntoIterator<Item = &'a Reason>) -> Option<Self> {
        reasons.into_iter().find_map(|reason| match reason {
            Reason::Failed { plugin, why } => {
                Some(Self { plugin: *plugin, why: FailureCause::Volume(why.clone()) })
            }
            _ => None,
        })
    }
}

/// For those that ask about a single Node.
impl From<Failure> for Reason {
    fn from(Failure { plugin, why }: Failure) -> Self {
        match why {
            FailureCause::Selector(why) => Self::Unparsable { plugin, why },
            FailureCause::Volume(why) => Self::Failed { plugin, why },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be applied: {}", self.plugin, self.why)
    }
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Selector(why) => why.fmt(f),
            Self::Volume(why) => f.write_str(why),
        }
    }
}

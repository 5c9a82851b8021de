use std::fmt;

use serde::{Deserialize, Serialize};

/// Something in the Pod itself that keeps it from being placed: only a change of the Pod helps.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Hold {
    /// The Pod asks for something that this scheduler does not implement. It is
    /// never placed as if it had not asked.
    UnsupportedFeature { field: String },
    /// One of our annotations cannot be understood.
    InvalidAnnotation { key: String, why: String },
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnsupportedFeature { field } => write!(f, "UnsupportedFeature: {field}"),
            Self::InvalidAnnotation { key, why } => write!(f, "invalid annotation {key}: {why}"),
        }
    }
}

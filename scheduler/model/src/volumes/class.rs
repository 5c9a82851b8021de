use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{NodeSelectorTerm, RawRequirement};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageClass {
    pub name: Arc<str>,
    pub provisioner: Arc<str>,
    /// `None` is an error: the API server sets it.
    pub binding_mode: Option<BindingMode>,
    /// Where its volumes can be made: one of the terms must match the labels of the Node. Without any: everywhere.
    pub allowed_topologies: Vec<NodeSelectorTerm>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindingMode {
    Immediate,
    WaitForFirstConsumer,
}

impl BindingMode {
    /// Anything but `WaitForFirstConsumer` does not wait, as in kube-scheduler.
    pub fn parse(name: &str) -> Self {
        if name == "WaitForFirstConsumer" { Self::WaitForFirstConsumer } else { Self::Immediate }
    }
}

impl StorageClass {
    /// A term of `allowedTopologies`, from the keys and values of its `matchLabelExpressions`. Empty, or invalid, it
    /// matches nothing.
    pub fn topology_term<'a>(
        expressions: impl IntoIterator<Item = (&'a str, Vec<String>)>,
    ) -> NodeSelectorTerm {
        let requirement = |(key, values): (&str, _)| RawRequirement {
            key: key.to_owned(),
            operator: "In".to_owned(),
            values,
        };
        let expressions: Vec<_> = expressions.into_iter().map(requirement).collect();
        NodeSelectorTerm::parse(&expressions, &[])
    }
}

//! What the rules want to know of the whole cluster, found once for each Pod that is decided
//! (kube-scheduler's PreFilter).

use model::{ClusterNode, ClusterPod, SelectorError};

use crate::cluster::Cluster;
use crate::filters::inter_pod_affinity::Counts;
use crate::filters::pod_topology_spread::Spread;
use crate::reason::Plugin;
use crate::rules::Rules;
use crate::trial::Trial;

#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub affinity: Counts,
    pub spread: Spread,
}

impl Prepared {
    /// Fails when spread constraints cannot be parsed.
    pub fn new(rules: &Rules, cluster: &Cluster, pod: &ClusterPod) -> Result<Self, SelectorError> {
        let (mut spread, mut affinity) = (Spread::default(), Counts::default());
        if rules.filters_by(Plugin::PodTopologySpread) {
            spread = Spread::new(rules, cluster, pod)?;
        }
        if rules.filters_by(Plugin::InterPodAffinity) {
            affinity = Counts::of_placed(cluster, pod);
        }
        Ok(Self { affinity, spread })
    }
}

/// One Pod, to be tried on any Node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    pub rules: &'a Rules,
    pub cluster: &'a Cluster,
    pub pod: &'a ClusterPod,
    pub prepared: &'a Prepared,
}

impl<'a> Question<'a> {
    pub fn on(&self, node: &'a ClusterNode) -> Trial<'a> {
        let Self { rules, cluster, pod, prepared } = *self;
        Trial { rules, cluster, pod, prepared, node, changes: Vec::new() }
    }
}

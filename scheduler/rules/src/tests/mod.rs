//! Every rule against expectations computed by hand, with each trap that kube-scheduler sets.

mod decisions;
mod nodes;
mod pod_affinity;
mod preemption;
mod properties;
mod resources;
mod scores;
mod spread;
mod spread_scores;
mod switched_off;
mod volumes;
mod wake;

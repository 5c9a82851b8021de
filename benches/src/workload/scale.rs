//! Other sizes of the same workload.

use super::{Group, Workload};

/// How large a workload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub nodes: usize,
    /// Measured ones.
    pub pods: usize,
}

impl Workload {
    /// The same in another size: what is on the Nodes grows with them, what waits beside the measured Pods
    /// grows with those, and objects with whatever they are counted by.
    #[must_use]
    pub fn scaled(mut self, to: Size) -> Self {
        let from = self.size();
        resize(&mut self.nodes, to.nodes, from.nodes);
        resize(&mut self.existing, to.nodes, from.nodes);
        resize(&mut self.waiting, to.pods, from.pods);
        resize(&mut self.measured, to.pods, from.pods);
        // Shares are rounded; the sums are what was asked for.
        settle(&mut self.nodes, to.nodes);
        settle(&mut self.measured, to.pods);
        self
    }
}

/// At least one of each group stays.
fn resize(groups: &mut [Group], to: usize, from: usize) {
    for group in groups.iter_mut().filter(|group| group.count > 0) {
        group.count = (group.count * to / from.max(1)).max(1);
    }
}

fn settle(groups: &mut [Group], wanted: usize) {
    let sum: usize = groups.iter().map(|group| group.count).sum();
    if let Some(largest) = groups.iter_mut().max_by_key(|group| group.count) {
        largest.count = (largest.count + wanted).saturating_sub(sum).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scaled_workload_has_the_size_that_was_asked_for() {
        for name in super::super::names().unwrap() {
            for size in [Size { nodes: 50, pods: 100 }, Size { nodes: 7_001, pods: 13 }] {
                let scaled = Workload::load(&name).unwrap().scaled(size);
                assert_eq!(scaled.size(), size, "{name}");
            }
        }
    }
}

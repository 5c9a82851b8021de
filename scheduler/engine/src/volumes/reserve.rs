//! Reserve: which volumes a Pod takes on its Node, and that no other Pod takes them.

use model::{NodeName, Pod, PodUid, PodVolumeBindings};

use rules::DeviceChange;

use crate::engine::Engine;
use crate::ledger::Reservation;
use crate::queue::ParkKey;

impl Engine {
    /// What has to be written for the Pod's claims once it is on the Node. An error says why the decision was wrong.
    pub(crate) fn volumes_on(
        &self,
        pod: &Pod,
        node: &NodeName,
    ) -> Result<Option<Box<PodVolumeBindings>>, String> {
        if pod.spec.volumes.is_empty() {
            return Ok(None);
        }
        let Some(node) = self.observed.cluster.nodes.get(node) else {
            return Err(format!("there is no node {node}"));
        };
        let rules = self.rules_of(&pod.spec.profile);
        let to_place = self.pod_to_place(&ParkKey::of_pod(pod));
        match rules::find_pod_volumes(rules, &self.observed.cluster, &to_place, node) {
            Ok(bindings) if bindings.is_empty() => Ok(None),
            Ok(bindings) => Ok(Some(Box::new(bindings))),
            Err(reasons) => {
                let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
                Err(format!("its volumes are not to be had there: {}", reasons.join(", ")))
            }
        }
    }

    /// No other Pod may take these volumes and devices, or have these claims elsewhere.
    pub(crate) fn assume_objects(&mut self, pod: &PodUid, reservation: &Reservation) {
        let cluster = &mut self.observed.cluster;
        if let Some(volumes) = &reservation.volumes {
            cluster.assumed_volumes.assume(volumes, &reservation.node);
            self.placing.volumes_moved(volumes, cluster);
        }
        if !reservation.claims.is_empty() {
            let has_changed = cluster.devices.assume(pod, &reservation.claims);
            if has_changed {
                self.placing.devices_changed(DeviceChange::Taken(&reservation.claims), cluster);
            }
        }
    }

    /// The opposite.
    pub(crate) fn forget_objects(&mut self, pod: &PodUid, reservation: &Reservation) {
        let cluster = &mut self.observed.cluster;
        if let Some(volumes) = &reservation.volumes {
            cluster.assumed_volumes.forget(volumes, &reservation.node);
            self.placing.volumes_moved(volumes, cluster);
        }
        let is_in_flight = self.observed.claims_in_flight.contains_key(pod);
        if !reservation.claims.is_empty() && !is_in_flight {
            let has_changed = cluster.devices.forget(pod, &reservation.claims);
            if has_changed {
                self.placing.devices_changed(DeviceChange::Released(&reservation.claims), cluster);
            }
        }
    }
}

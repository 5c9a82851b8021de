use crds::Phase;
use model::{Corridor, CorridorPhase, Gbps};

use super::{key, labels};
use crate::wire::WireCorridor;

pub(crate) fn corridor(wire: WireCorridor) -> Corridor {
    let WireCorridor { metadata, spec, status } = wire;
    Corridor {
        key: key(&metadata),
        uid: metadata.uid.as_deref().unwrap_or_default().into(),
        generation: metadata.generation.unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        floor_asked: Gbps::from_measured(spec.min_gbps),
        floor_confirmed: status.floor_gbps.map(Gbps::from_measured),
        achievable: status.achievable_gbps.map(Gbps::from_measured).unwrap_or_default(),
        phase: status.phase.map_or(CorridorPhase::Pending, phase),
        corridor_id: status.corridor_id.map(Into::into),
        node_selector: labels(spec.node_selector),
    }
}

fn phase(phase: Phase) -> CorridorPhase {
    match phase {
        Phase::Pending => CorridorPhase::Pending,
        Phase::Allocating => CorridorPhase::Allocating,
        Phase::Ready => CorridorPhase::Ready,
        Phase::Degraded => CorridorPhase::Degraded,
        Phase::Failed => CorridorPhase::Failed,
        Phase::Releasing => CorridorPhase::Releasing,
        Phase::Unknown => CorridorPhase::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_floor_phase_and_handle() {
        let wire = json!({
            "metadata": {"namespace": "a", "name": "c1", "uid": "u", "generation": 3},
            "spec": {"minGbps": 100, "lanes": 4},
            "status": {"phase": "Ready", "achievableGbps": 120.5, "corridorId": "cor-7"},
        });
        let corridor = corridor(serde_json::from_value(wire).unwrap());
        assert_eq!(corridor.key.to_string(), "a/c1");
        assert_eq!(corridor.floor(), Gbps::from_whole(100));
        assert_eq!(corridor.achievable, Gbps::from_milli(120_500));
        assert_eq!(corridor.phase, CorridorPhase::Ready);
        assert_eq!(corridor.corridor_id.as_deref(), Some("cor-7"));
    }

    #[test]
    fn a_corridor_without_status_or_with_a_strange_phase_is_not_ready() {
        let mut wire = json!({"metadata": {"namespace": "a", "name": "c"}, "spec": {"minGbps": 1}});
        assert_eq!(
            corridor(serde_json::from_value(wire.clone()).unwrap()).phase,
            CorridorPhase::Pending
        );
        wire["status"] = json!({"phase": "Sublime"});
        assert_eq!(corridor(serde_json::from_value(wire).unwrap()).phase, CorridorPhase::Unknown);
    }
}

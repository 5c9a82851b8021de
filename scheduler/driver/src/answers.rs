//! What the engine answers, as the HTTP API words it.

use engine::{
    Basis, ClaimDiagnosis, ClaimState, Confidence, Dominant, Estimate, Explanation, LinePosition,
    NodesExplained, PreemptionExplained, ReasonExplained, VolumesLacking, VolumesLookedAt,
};
use jiff::Timestamp;
use model::{NodeName, ObjectKey};

pub(crate) fn explanation(explanation: &Explanation) -> api::Explanation {
    let Explanation {
        pod,
        state,
        message,
        dominant: most,
        nodes: said,
        volumes,
        preemption: victims,
        nominated_node,
        waiting_for,
        line,
        wakes_on,
    } = explanation;
    api::Explanation {
        pod: pod.to_string(),
        state: (*state).to_owned(),
        message: message.clone(),
        dominant: most.as_ref().map(dominant),
        nominated_node: nominated_node.as_ref().map(ToString::to_string),
        preemption: victims.as_ref().map(preemption),
        nodes: nodes(said),
        claims: volumes.claims.iter().map(claim).collect(),
        claims_left_out: volumes.more,
        waiting_seconds: waiting_for.as_secs(),
        line: line.as_ref().map(position),
        wakes_on: wakes_on.clone(),
    }
}

fn nodes(nodes: &NodesExplained) -> api::Nodes {
    let NodesExplained { total, looked_at, feasible, best, reasons } = nodes;
    let rejected = |reason: &ReasonExplained| {
        let ReasonExplained { plugin, reason, count, examples } = reason.clone();
        api::RejectedNodes { plugin, reason, count, examples }
    };
    api::Nodes {
        total: *total,
        looked_at: *looked_at,
        feasible: *feasible,
        best: names(best),
        reasons: reasons.iter().map(rejected).collect(),
    }
}

fn claim(diagnosis: &ClaimDiagnosis) -> api::Claim {
    let ClaimDiagnosis { claim, class, request, state, problem } = diagnosis;
    api::Claim {
        claim: claim.to_string(),
        class: (!class.is_empty()).then(|| class.to_string()),
        request: (*state != ClaimState::Missing).then(|| request.to_string()),
        state: match state {
            ClaimState::Missing => api::ClaimState::Missing,
            ClaimState::Deleting => api::ClaimState::Deleting,
            ClaimState::Lost => api::ClaimState::Lost,
            ClaimState::Bound => api::ClaimState::Bound,
            ClaimState::Pending => api::ClaimState::Pending,
        },
        reason: problem.label().to_owned(),
        problem: diagnosis.to_string(),
        volumes: problem.volumes().map(volumes),
    }
}

fn volumes(volumes: &VolumesLookedAt) -> api::ClaimVolumes {
    let VolumesLookedAt { looked_at, reasons } = volumes;
    let lacking = |lacking: &VolumesLacking| {
        let VolumesLacking { lack, count, largest, example } = lacking;
        api::RejectedVolumes {
            reason: lack.label().to_owned(),
            count: *count,
            largest: largest.to_string(),
            example: example.to_string(),
        }
    };
    api::ClaimVolumes { looked_at: *looked_at, reasons: reasons.iter().map(lacking).collect() }
}

fn position(line: &LinePosition) -> api::BandwidthQueuePosition {
    let LinePosition { object, position, length } = line;
    api::BandwidthQueuePosition { object: object.to_string(), position: *position, length: *length }
}

fn preemption(preemption: &PreemptionExplained) -> api::Preemption {
    let PreemptionExplained { message, nodes, victims } = preemption;
    let pods = |pods: &[ObjectKey]| pods.iter().map(ToString::to_string).collect();
    api::Preemption {
        message: message.clone(),
        nodes: names(nodes),
        victims: victims.iter().map(|(node, them)| (node.to_string(), pods(them))).collect(),
    }
}

fn names(nodes: &[NodeName]) -> Vec<String> {
    nodes.iter().map(ToString::to_string).collect()
}

fn dominant(dominant: &Dominant) -> api::Dominant {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let whole = |milli: u64| milli as f64 / 1000.0;
    api::Dominant {
        plugin: dominant.plugin.clone(),
        reason: dominant.reason.clone(),
        object: dominant.object.as_ref().map(ToString::to_string),
        needed: whole(dominant.needed_milli),
        free: whole(dominant.free_milli),
        deficit: whole(dominant.deficit_milli),
        unit: dominant.unit.clone(),
    }
}

pub(crate) fn estimate(estimate: &Estimate) -> api::Estimate {
    let time = |unix_s: i64| {
        Timestamp::from_second(unix_s).map_or_else(|_| unix_s.to_string(), |at| at.to_string())
    };
    let basis = |basis: &Basis| match basis {
        Basis::Fact(text) => text.clone(),
        Basis::End { pod, end, node } => {
            let place = node.as_ref().map(|node| format!(" on node {node}")).unwrap_or_default();
            format!("Pod {pod}{place} ends at {} ({})", time(end.at_unix_s), end.by.name())
        }
    };
    let (confidence, is_known) = match estimate.confidence {
        Confidence::Declared => (api::Confidence::Declared, true),
        Confidence::Partial => (api::Confidence::Partial, true),
        Confidence::Unknown => (api::Confidence::Unknown, false),
    };
    api::Estimate {
        earliest: estimate.earliest_unix_s.filter(|_| is_known).map(time),
        basis: estimate.basis.iter().map(basis).collect(),
        confidence,
    }
}

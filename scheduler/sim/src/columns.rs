//! What `kubectl get` shows of the built-in types: the columns and cells of the real server.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::json::{list, text};

/// One column of a table.
#[derive(Debug)]
pub(crate) struct Column {
    pub name: &'static str,
    pub kind: &'static str,
    /// 1 for columns that only `-o wide` shows.
    pub priority: i32,
    pub cell: fn(&Value, Timestamp) -> Value,
}

const fn column(name: &'static str, cell: fn(&Value, Timestamp) -> Value) -> Column {
    Column { name, kind: "string", priority: 0, cell }
}

const fn wide(name: &'static str, cell: fn(&Value, Timestamp) -> Value) -> Column {
    Column { name, kind: "string", priority: 1, cell }
}

const NAME: Column = column("Name", |object, _| json!(text(object, "/metadata/name")));
const AGE: Column =
    column("Age", |object, now| age(text(object, "/metadata/creationTimestamp"), now));

pub(crate) const NAME_AND_AGE: &[Column] = &[NAME, AGE];

pub(crate) const NAMESPACE: &[Column] =
    &[NAME, column("Status", |object, _| json!(text(object, "/status/phase"))), AGE];

pub(crate) const POD: &[Column] = &[
    NAME,
    column("Ready", |pod, _| {
        let ready = list(pod, "/status/containerStatuses").iter();
        let ready = ready.filter(|status| status.get("ready") == Some(&json!(true))).count();
        json!(format!("{ready}/{}", list(pod, "/spec/containers").len()))
    }),
    column("Status", |pod, _| json!(pod_status(pod))),
    column("Restarts", |pod, _| {
        let statuses = list(pod, "/status/containerStatuses").iter();
        let restarts = statuses.filter_map(|status| status.get("restartCount")?.as_u64());
        json!(restarts.sum::<u64>().to_string())
    }),
    AGE,
    wide("IP", |pod, _| or_none(text(pod, "/status/podIP"))),
    wide("Node", |pod, _| or_none(text(pod, "/spec/nodeName"))),
    wide("Nominated Node", |pod, _| or_none(text(pod, "/status/nominatedNodeName"))),
    wide("Readiness Gates", |_, _| or_none("")),
];

pub(crate) const NODE: &[Column] = &[
    NAME,
    column("Status", |node, _| json!(node_status(node))),
    column("Roles", |node, _| or_none(&node_roles(node))),
    AGE,
    column("Version", |node, _| json!(text(node, "/status/nodeInfo/kubeletVersion"))),
    wide("Internal-IP", |node, _| node_address(node, "InternalIP")),
    wide("External-IP", |node, _| node_address(node, "ExternalIP")),
    wide("OS-Image", |node, _| or_unknown(text(node, "/status/nodeInfo/osImage"))),
    wide("Kernel-Version", |node, _| or_unknown(text(node, "/status/nodeInfo/kernelVersion"))),
    wide("Container-Runtime", |node, _| {
        or_unknown(text(node, "/status/nodeInfo/containerRuntimeVersion"))
    }),
];

pub(crate) const EVENT: &[Column] = &[
    column("Last Seen", |event, now| age(last_seen(event), now)),
    column("Type", |event, _| json!(text(event, "/type"))),
    column("Reason", |event, _| json!(text(event, "/reason"))),
    column("Object", |event, _| {
        let kind = text(event, "/involvedObject/kind").to_lowercase();
        json!(format!("{kind}/{}", text(event, "/involvedObject/name")))
    }),
    wide("Subobject", |event, _| json!(text(event, "/involvedObject/fieldPath"))),
    wide("Source", |event, _| {
        let source = text(event, "/source/component");
        json!(if source.is_empty() { text(event, "/reportingComponent") } else { source })
    }),
    column("Message", |event, _| json!(text(event, "/message").trim())),
    wide("First Seen", |event, now| age(first_seen(event), now)),
    wide("Count", |event, _| {
        let count = event.pointer("/series/count").or_else(|| event.get("count"));
        count.cloned().unwrap_or_else(|| json!(1))
    }),
    wide("Name", |event, _| json!(text(event, "/metadata/name"))),
];

pub(crate) const CONFIG_MAP: &[Column] =
    &[NAME, column("Data", |object, _| count(object, &["/data", "/binaryData"])), AGE];

pub(crate) const SECRET: &[Column] = &[
    NAME,
    column("Type", |object, _| json!(text(object, "/type"))),
    column("Data", |object, _| count(object, &["/data"])),
    AGE,
];

pub(crate) const LEASE: &[Column] =
    &[NAME, column("Holder", |object, _| json!(text(object, "/spec/holderIdentity"))), AGE];

pub(crate) const PRIORITY_CLASS: &[Column] = &[
    NAME,
    Column { kind: "integer", ..column("Value", |object, _| object["value"].clone()) },
    Column {
        kind: "boolean",
        ..column("Global-Default", |object, _| json!(object["globalDefault"] == json!(true)))
    },
    AGE,
    column("PreemptionPolicy", |object, _| json!(text(object, "/preemptionPolicy"))),
];

pub(crate) const DEFINITION: &[Column] =
    &[NAME, column("Created At", |object, _| json!(text(object, "/metadata/creationTimestamp")))];

/// How long ago `time` was, as kubectl writes it.
pub(crate) fn age(time: &str, now: Timestamp) -> Value {
    let Ok(then) = time.parse::<Timestamp>() else { return json!("<unknown>") };
    json!(human_duration(now.as_second() - then.as_second()))
}

/// Two figures where they matter, one where they do not: `45s`, `5m20s`, `3h`, `4d`.
fn human_duration(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let pair = |large: i64, unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{small_unit}"),
    };
    match () {
        () if seconds < -1 => "<invalid>".to_owned(),
        () if seconds < 0 => "0s".to_owned(),
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => pair(days, "d", hours % 24, "h"),
        () if years < 2 => format!("{days}d"),
        () if years < 8 => pair(years, "y", days % 365, "d"),
        () => format!("{years}y"),
    }
}

fn pod_status(pod: &Value) -> &str {
    let phase = text(pod, "/status/phase");
    let over = phase == "Succeeded" || phase == "Failed";
    if pod.pointer("/metadata/deletionTimestamp").is_some() && !over {
        return "Terminating";
    }
    let gated = |condition: &&Value| text(condition, "/reason") == "SchedulingGated";
    if let Some(condition) = list(pod, "/status/conditions").iter().find(gated) {
        return text(condition, "/reason");
    }
    let container = list(pod, "/status/containerStatuses").iter().find_map(|status| {
        let state = |pointer| Some(text(status, pointer)).filter(|reason| !reason.is_empty());
        state("/state/waiting/reason").or_else(|| state("/state/terminated/reason"))
    });
    let reason = Some(text(pod, "/status/reason")).filter(|reason| !reason.is_empty());
    container.or(reason).unwrap_or(phase)
}

fn node_status(node: &Value) -> String {
    let ready = list(node, "/status/conditions").iter().find(|it| text(it, "/type") == "Ready");
    let mut status = match ready.map(|condition| text(condition, "/status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if node.pointer("/spec/unschedulable") == Some(&json!(true)) {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn node_roles(node: &Value) -> String {
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object);
    let roles = labels.into_iter().flatten();
    let roles = roles.filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/"));
    roles.collect::<Vec<_>>().join(",")
}

fn node_address(node: &Value, kind: &str) -> Value {
    let addresses = list(node, "/status/addresses").iter();
    let mut found = addresses.filter(|address| text(address, "/type") == kind);
    or_none(found.next().map_or("", |address| text(address, "/address")))
}

fn last_seen(event: &Value) -> &str {
    let newest = [text(event, "/series/lastObservedTime"), text(event, "/lastTimestamp")];
    newest.into_iter().find(|time| !time.is_empty()).unwrap_or_else(|| first_seen(event))
}

fn first_seen(event: &Value) -> &str {
    let first = text(event, "/firstTimestamp");
    if first.is_empty() { text(event, "/eventTime") } else { first }
}

fn count(object: &Value, pointers: &[&str]) -> Value {
    let maps = pointers.iter().filter_map(|pointer| object.pointer(pointer)?.as_object());
    json!(maps.map(serde_json::Map::len).sum::<usize>().to_string())
}

fn or_none(value: &str) -> Value {
    json!(if value.is_empty() { "<none>" } else { value })
}

fn or_unknown(value: &str) -> Value {
    json!(if value.is_empty() { "<unknown>" } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_kubectl_writes_them() {
        for (seconds, expected) in [
            (-5, "<invalid>"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (320, "5m20s"),
            (7_200, "120m"),
            (3 * 3_600, "3h"),
            (3 * 3_600 + 60, "3h1m"),
            (9 * 3_600, "9h"),
            (50 * 3_600, "2d2h"),
            (30 * 86_400, "30d"),
            (800 * 86_400, "2y70d"),
        ] {
            assert_eq!(human_duration(seconds), expected, "{seconds}");
        }
    }
}

//! Reports: conditions, Events, statuses. Each call runs by itself, and its outcome comes back as an input.

use std::sync::Arc;
use std::time::Duration;

use engine::{ObjectUsed, Report, Unschedulable};
use own_writes::Usage;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::act::{self, EventBody};
use crate::clock::wall_clock;
use crate::metrics::Metrics;
use crate::run::{Driver, Input};

/// With the pause, more than it takes a busy API server to recover; the log and the metric have it anyway.
const ALARM_TRIES_MAX: u32 = 4;
const ALARM_PAUSE: Duration = Duration::from_secs(2);

impl Driver {
    /// Whether writes to the namespace of what is reported are overdue, so that one more would only wait, too.
    pub(crate) fn is_put_off(&self, report: &Report) -> bool {
        let slots = &self.slots;
        let of_writes = |namespace: &str| slots.are_writes_overdue(namespace);
        let (kind, is_put_off) = match report {
            Report::Unschedulable(it) => ("condition", of_writes(&it.pod.namespace)),
            Report::Used(used) => ("status", of_writes(&used.object.key.namespace)),
            Report::Scheduled { pod, .. } => ("event", of_writes(&pod.namespace)),
        };
        if is_put_off {
            self.metrics.writes.with_label_values(&[kind, "put_off"]).inc();
        }
        is_put_off
    }

    /// An Event about an object in this namespace.
    pub(crate) fn write_event(&mut self, namespace: &Arc<str>, event: EventBody) {
        let id = self.slots.begin_write(namespace, self.clock.now());
        let (client, sender) = (self.client.clone(), self.sender.clone());
        let metrics = self.metrics.clone();
        tokio::spawn(async move {
            let written = act::write_event(&client, &event).await;
            count_write(&metrics, "event", written.is_ok());
            let _ = sender.send(Input::WriteEnded(id)).await;
        });
    }

    /// An Event that is written once and never again by itself: a call that fails is repeated.
    pub(crate) fn write_alarm(&mut self, namespace: &Arc<str>, event: EventBody) {
        let id = self.slots.begin_write(namespace, self.clock.now());
        let (client, sender) = (self.client.clone(), self.sender.clone());
        let metrics = self.metrics.clone();
        tokio::spawn(async move {
            for tried in 1..=ALARM_TRIES_MAX {
                let written = act::write_event(&client, &event).await;
                // It has a fixed name: a conflict means that an earlier try wrote it, and its reply was lost.
                let is_there = matches!(&written, Err(kube::Error::Api(it)) if it.code == 409);
                count_write(&metrics, "event", written.is_ok() || is_there);
                let Err(error) = written else { break };
                if is_there {
                    break;
                }
                warn!(%error, tried, "an Event about tampering was not written");
                if tried < ALARM_TRIES_MAX {
                    sleep(ALARM_PAUSE).await;
                }
            }
            let _ = sender.send(Input::WriteEnded(id)).await;
        });
    }

    pub(crate) fn write_object_use(&mut self, used: ObjectUsed) {
        let id = self.slots.begin_write(&used.object.key.namespace, self.clock.now());
        let has_stray = self.watched.guard.uses.has_stray(&used.uid);
        let before = self.watched.use_conditions.get(&used.uid).map_or(&[][..], Vec::as_slice);
        let conditions = act::conditions(&used, before, has_stray, wall_clock());
        let is_newly_oversubscribed = act::is_newly_oversubscribed(before, &conditions);
        self.watched.use_conditions.insert(used.uid.clone(), conditions.clone());
        self.watched.guard.uses.writes(&used.uid, used.facts.in_use, &conditions);
        let drained = used.facts.drained == Some(true);
        let usage = Usage {
            is_in_use: used.facts.in_use > 0,
            drained_generation: drained.then_some(used.facts.generation),
        };
        self.watched.own_writes.record_usage(used.uid.as_str(), usage);
        let (client, sender) = (self.client.clone(), self.sender.clone());
        let metrics = self.metrics.clone();
        tokio::spawn(async move {
            let written = act::write_use(&client, &used, &conditions).await;
            count_write(&metrics, "status", written.is_ok());
            if let Err(error) = &written {
                warn!(object = %used.object, %error, "who uses it was not written; trying again");
            }
            if written.is_ok() && is_newly_oversubscribed {
                let told = act::oversubscribed(&used).write(&client).await;
                count_write(&metrics, "event", told.is_ok());
            }
            let ObjectUsed { object, uid, .. } = used;
            let version = written.ok();
            let _ = sender.send(Input::UseEnded { object, uid, version }).await;
            let _ = sender.send(Input::WriteEnded(id)).await;
        });
    }

    pub(crate) fn write_unschedulable(&mut self, report: Unschedulable) {
        let id = self.slots.begin_write(&report.pod.namespace, self.clock.now());
        info!(pod = %report.pod, why = %report.message, "held");
        let (client, sender) = (self.client.clone(), self.sender.clone());
        let metrics = self.metrics.clone();
        tokio::spawn(async move {
            let written = act::write_condition(&client, &report).await;
            count_write(&metrics, "condition", written.is_ok());
            let pod = written.ok().map(Box::new);
            let told = pod.is_some();
            let _ = sender.send(Input::ConditionWritten { uid: report.uid.clone(), pod }).await;
            if told {
                let event = act::failed_scheduling(&report.pod, &report.uid, &report.message);
                let written = act::write_event(&client, &event).await;
                count_write(&metrics, "event", written.is_ok());
            }
            let _ = sender.send(Input::WriteEnded(id)).await;
        });
    }
}

pub(crate) fn count_write(metrics: &Metrics, kind: &str, ok: bool) {
    let result = if ok { "ok" } else { "failed" };
    metrics.writes.with_label_values(&[kind, result]).inc();
}

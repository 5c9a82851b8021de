//! What kube-scheduler writes while it thinks about a Pod.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::error::{Doing as _, Result};

/// Final scores by Node.
pub(super) type Totals = BTreeMap<String, i64>;
/// Weighted scores by Node and plugin.
pub(super) type PluginScores = BTreeMap<String, BTreeMap<String, i64>>;

/// What the log tells about the Pod that is being tried.
#[derive(Debug, Clone, Default)]
pub(super) struct Thoughts {
    pub attempts: usize,
    /// Empty when a single Node was feasible.
    pub totals: Totals,
    pub plugins: PluginScores,
    /// Known once it is bound.
    pub feasible: Option<usize>,
    /// Where it reserved the Pod's volumes: the Node that it chose.
    pub chosen: Option<String>,
    /// A victim was being deleted already, and may be the only one.
    pub met_leaving_victim: bool,
    /// All victims have been deleted.
    pub has_preempted: bool,
}

impl Thoughts {
    fn note(&mut self, entry: &Entry) {
        let number = |key: &str| entry.fields.get(key).and_then(|value| value.parse().ok());
        let node = || entry.fields.get("node").cloned().unwrap_or_default();
        match entry.message.as_str() {
            "Attempting to schedule pod" => {
                self.attempts += 1;
                self.totals.clear();
                self.plugins.clear();
                self.chosen = None;
            }
            "AssumePodVolumes" => self.chosen = Some(node()),
            "Plugin scored node for pod" => {
                let plugin = entry.fields.get("plugin").cloned().unwrap_or_default();
                let scores = self.plugins.entry(node()).or_default();
                scores.insert(plugin, number("score").unwrap_or_default());
            }
            "Calculated node's final score for pod" => {
                self.totals.insert(node(), number("score").unwrap_or_default());
            }
            "Successfully bound pod to node" => {
                self.feasible = number("feasibleNodes").and_then(|count| count.try_into().ok());
            }
            "Victim Pod is already being deleted, skipping the API call for it" => {
                self.met_leaving_victim = true;
            }
            "Async Preemption finished completely" => self.has_preempted = true,
            _ => {}
        }
    }
}

/// Follows the log while it grows.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    /// The beginning of a line whose end is not written yet.
    begun: Vec<u8>,
    /// `namespace/name`.
    pod: String,
    thoughts: Thoughts,
}

impl Log {
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).doing(format!("opening {}", path.display()))?;
        Ok(Self { file, begun: vec![], pod: String::new(), thoughts: Thoughts::default() })
    }

    /// From here on, this Pod matters.
    pub fn turn_to(&mut self, pod: &str) -> Result<()> {
        self.thoughts()?;
        pod.clone_into(&mut self.pod);
        self.thoughts = Thoughts::default();
        Ok(())
    }

    /// What is known by now.
    pub fn thoughts(&mut self) -> Result<&Thoughts> {
        self.file.read_to_end(&mut self.begun).doing("reading the log of kube-scheduler")?;
        let whole = self.begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines: Vec<u8> = self.begun.drain(..whole).collect();
        for line in String::from_utf8_lossy(&lines).lines() {
            let entry = Entry::parse(line);
            let is_about = |entry: &Entry| {
                let names = [entry.fields.get("pod"), entry.fields.get("preemptor")];
                names.into_iter().flatten().any(|name| *name == self.pod)
            };
            if let Some(entry) = entry.filter(is_about) {
                self.thoughts.note(&entry);
            }
        }
        Ok(&self.thoughts)
    }
}

/// `I1116 12:37:18.731959 30971 schedule_one.go:1050] "A message" key="value" number=3`
struct Entry {
    message: String,
    fields: BTreeMap<String, String>,
}

impl Entry {
    fn parse(line: &str) -> Option<Self> {
        let (_, after_place) = line.split_once("] \"")?;
        let (message, mut rest) = quoted(after_place)?;
        let mut fields = BTreeMap::new();
        while let Some((key, value)) = rest.trim_start().split_once('=') {
            let (value, after) = if let Some(value) = value.strip_prefix('"') {
                quoted(value)?
            } else {
                let (value, after) = value.split_once(' ').unwrap_or((value, ""));
                (value.to_owned(), after)
            };
            fields.insert(key.to_owned(), value);
            rest = after;
        }
        Some(Self { message, fields })
    }
}

/// What stands before the closing quote, and what comes after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[place + 1..])),
            '\\' => value.push(characters.next()?.1),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// As kube-scheduler v1.36.4 writes them.
    const LINES: &str = r#"I1116 12:37:18.731472   30971 schedule_one.go:123] "Attempting to schedule pod" pod="team-a/p1"
I1116 12:37:18.731877   30971 schedule_one.go:982] "Plugin scored node for pod" pod="team-a/p1" plugin="TaintToleration" node="n0" score=300
I1116 12:37:18.731884   30971 schedule_one.go:982] "Plugin scored node for pod" pod="team-a/p1" plugin="NodeResourcesFit" node="n0" score=86
I1116 12:37:18.731959   30971 schedule_one.go:1050] "Calculated node's final score for pod" pod="team-a/p1" node="n0" score=519
I1116 12:37:18.731961   30971 binder.go:405] "AssumePodVolumes" pod="team-a/p1" node="n0"
I1116 12:37:18.731963   30971 schedule_one.go:1050] "Calculated node's final score for pod" pod="team-a/other" node="n1" score=7
I1116 12:37:18.731990   30971 schedule_one.go:1239] "Unable to schedule pod; no fit; waiting" pod="team-a/p1" err="a \"word\" = more"
I1116 12:37:18.738765   30971 schedule_one.go:481] "Successfully bound pod to node" pod="team-a/p1" node="n0" evaluatedNodes=3 feasibleNodes=2
"#;

    #[test]
    fn scores_are_read_as_they_are_written() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut log = Log::open(file.path()).unwrap();
        log.turn_to("team-a/p1").unwrap();
        let (first, second) = LINES.split_at(LINES.len() / 2);
        file.write_all(first.as_bytes()).unwrap();
        assert_eq!(log.thoughts().unwrap().feasible, None);
        file.write_all(second.as_bytes()).unwrap();
        let thoughts = log.thoughts().unwrap();
        assert_eq!(thoughts.attempts, 1);
        assert_eq!(thoughts.totals, Totals::from([("n0".to_owned(), 519)]));
        assert_eq!(thoughts.plugins["n0"]["TaintToleration"], 300);
        assert_eq!(thoughts.feasible, Some(2));
    }

    #[test]
    fn quotes_inside_a_value_do_not_end_it() {
        let line = LINES.lines().find(|line| line.contains("no fit")).unwrap();
        let entry = Entry::parse(line).unwrap();
        assert_eq!(entry.fields["err"], "a \"word\" = more");
    }
}

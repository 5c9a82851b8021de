//! Caches make answers quick and change none of them: placing with empty caches gives the same. So does an engine
//! that is brought back from a snapshot.

use std::sync::Arc;

use model::{NodeImage, NodeSelectorTerm, PreferredNodeTerm, RawRequirement};
use proptest::prelude::*;
use rules::{Cluster, Rules};

use super::story::Story;
use crate::placing::{CacheLimit, Choice, Placing, PodClassKey, View};
use crate::rng::Rng;
use crate::testkit::{NodeBuilder, scheduling};
use crate::tests::json;
use crate::wake::ClusterChange;

impl Story {
    fn ask_a_new_class(&mut self) {
        let class = self.classes[self.random.below(self.classes.len())].clone();
        let class = self.one_like(&class);
        let seats = self.placing.seats().to_vec();
        let mut new = Placing::of(&self.cluster, seats, CacheLimit::default());
        let mut random = self.random.clone();
        let view = View { rules: &self.rules, cluster: &self.cluster };
        let choice = self.placing.choose(view, &class, &mut self.random);
        assert_eq!(choice, new.choose(view, &class, &mut random), "{class:?}");
        if choice == Choice::Nowhere {
            let why = self.placing.diagnose(view, &class, None, &mut self.random);
            let same = new.diagnose(view, &class, None, &mut random);
            assert_eq!(format!("{why:?}"), format!("{same:?}"), "{class:?}");
        }
        assert_eq!(json(&self.random), json(&random), "as many draws");
    }

    fn ask_of_nominated(&mut self) {
        let pods = self.cluster.pods().values().filter(|pod| pod.node.is_none());
        let Some(pod) = pods.min_by(|one, other| one.uid.cmp(&other.uid)).cloned() else { return };
        let (namespace, scheduling) = (pod.namespace().clone(), pod.scheduling.clone());
        let class = PodClassKey {
            profile: "p".into(),
            namespace,
            scheduling,
            reach: Vec::new(),
            volumes: None,
            devices: None,
        };
        let seats = self.placing.seats().to_vec();
        let mut new = Placing::of(&self.cluster, seats, CacheLimit::default());
        let mut random = self.random.clone();
        let view = View { rules: &self.rules, cluster: &self.cluster };
        let why = self.placing.diagnose(view, &class, Some(&pod), &mut self.random);
        let same = new.diagnose(view, &class, Some(&pod), &mut random);
        assert_eq!(format!("{why:?}"), format!("{same:?}"), "{class:?}");
    }
}

proptest! {
    #[test]
    fn what_was_before_changes_no_answer(seed in any::<u64>(), steps in 1..120_usize) {
        let mut story = Story::new(seed);
        for _ in 0..steps {
            for _ in 0..=story.below(3) {
                story.step();
            }
            story.ask_a_new_class();
            if story.one_in(4) {
                story.ask_of_nominated();
            }
        }
    }
}

#[test]
fn what_nodes_were_once_uses_up_no_numbers() {
    const BITS: usize = 13;
    let mut scheduling = scheduling(100, 0);
    for bit in 0..BITS {
        let raw = RawRequirement::new(&format!("bit{bit}"), "Exists", &[]);
        let term = NodeSelectorTerm::parse(&[raw], &[]);
        scheduling.node_affinity.preferred.push(PreferredNodeTerm { weight: 1 << bit, term });
    }
    scheduling.images.push("app:1".into());
    let (profile, namespace) = ("p".into(), "team-a".into());
    let class = PodClassKey {
        profile,
        namespace,
        scheduling: Arc::new(scheduling),
        reach: Vec::new(),
        volumes: None,
        devices: None,
    };
    let (mut cluster, mut placing) = (Cluster::default(), Placing::default());
    let (rules, mut random) = (Rules::default(), Rng::new(7));
    let image = Arc::new(NodeImage { names: vec!["app:1".into()], size_bytes: 1 << 30 });
    // Each time the Node is worth something else.
    for number in 0..1 << BITS {
        let has = (0..BITS).filter(|bit| number & (1 << bit) != 0);
        let node =
            has.fold(NodeBuilder::new("n"), |node, bit| node.label(&format!("bit{bit}"), ""));
        let mut node = node.build();
        node.images = [image.clone()].into();
        cluster.nodes.insert("n".into(), node);
        placing.note(ClusterChange::Node(&"n".into()), &cluster);
        let view = View { rules: &rules, cluster: &cluster };
        assert_eq!(placing.choose(view, &class, &mut random), Choice::On("n".into()), "{number}");
    }
}

//! Serde for a priority queue by due time: a sorted list. Its heap need not be the same again: only the order of the due
//! times matters, and no two entries are due alike.

use std::cmp::Reverse;
use std::hash::Hash;

use priority_queue::PriorityQueue;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub fn serialize<I, P, S>(queue: &PriorityQueue<I, Reverse<P>>, to: S) -> Result<S::Ok, S::Error>
where
    I: Serialize + Hash + Eq + Ord,
    P: Serialize + Ord,
    S: Serializer,
{
    let mut pairs: Vec<(&I, &P)> = queue.iter().map(|(item, due)| (item, &due.0)).collect();
    pairs.sort_by(|(item, due), (other, due_other)| (due, item).cmp(&(due_other, other)));
    to.collect_seq(pairs)
}

pub fn deserialize<'de, I, P, D>(from: D) -> Result<PriorityQueue<I, Reverse<P>>, D::Error>
where
    I: Deserialize<'de> + Hash + Eq,
    P: Deserialize<'de> + Ord,
    D: Deserializer<'de>,
{
    let pairs = Vec::<(I, P)>::deserialize(from)?;
    Ok(pairs.into_iter().map(|(item, due)| (item, Reverse(due))).collect())
}

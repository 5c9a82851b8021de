//! Every workload through the engine, in memory: `cargo bench -p benches`.
//!
//! `BENCH_NODES` and `BENCH_PODS` change the size, a word after `--` chooses workloads by name.

use std::env;
use std::time::{Duration, Instant};

use benches::memory::{Arena, FLOOR_RETURN};
use benches::workload::{Size, Workload, names};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Small enough that all workloads take a few minutes.
const NODES: usize = 500;
const PODS: usize = 200;
/// The least that criterion takes: each sample builds a cluster.
const SAMPLES: usize = 10;

fn decisions(criterion: &mut Criterion) {
    let size = Size { nodes: from("BENCH_NODES", NODES), pods: from("BENCH_PODS", PODS) };
    let mut group = criterion.benchmark_group(format!("decisions/{}-nodes", size.nodes));
    group.sample_size(SAMPLES).throughput(Throughput::Elements(size.pods as u64));
    for name in names().expect("the workloads are there") {
        let workload = Workload::load(&name).expect("a workload can be read").scaled(size);
        let run = if name == FLOOR_RETURN { returns } else { place };
        group.bench_function(&name, |bencher| {
            bencher.iter_custom(|rounds| (0..rounds).map(|_| run(&workload)).sum());
        });
    }
    group.finish();
}

/// From the first decision to the last; building the cluster does not count.
fn place(workload: &Workload) -> Duration {
    let mut arena = Arena::new(workload).expect("a workload can be translated");
    arena.fill_line();
    let began = Instant::now();
    arena.place(arena.measured()).expect("every workload can be met");
    began.elapsed()
}

/// Each time from the return of the floor to the decision.
fn returns(workload: &Workload) -> Duration {
    let mut arena = Arena::new(workload).expect("a workload can be translated");
    arena.fill_line();
    arena.place(1).expect("the floor carries one");
    (1..arena.measured()).map(|_| arena.return_floor().expect("the next one is placed")).sum()
}

fn from(variable: &str, otherwise: usize) -> usize {
    let value = env::var(variable).ok();
    value.map_or(otherwise, |text| text.parse().expect("sizes are numbers"))
}

criterion_group!(all, decisions);
criterion_main!(all);

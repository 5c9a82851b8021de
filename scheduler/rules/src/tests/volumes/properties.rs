//! Random claims and volumes: what is found is right, and what is rejected has no solution. Both are judged by trying
//! every assignment.

use model::VolumePhase;
use proptest::prelude::*;

use super::*;
use crate::testkit::{cluster, node, pod, selector};

#[derive(Clone, Debug)]
struct Wanted {
    request: i64,
    is_choosy: bool,
    is_dynamic: bool,
}

#[derive(Clone, Debug)]
struct Offered {
    capacity: i64,
    is_fast: bool,
    is_dynamic: bool,
    /// Near the Node, and available.
    is_usable: [bool; 2],
}

fn wanted() -> impl Strategy<Value = Wanted> {
    (1..4_i64, any::<bool>(), any::<bool>()).prop_map(|(request, is_choosy, is_dynamic)| Wanted {
        request,
        is_choosy,
        is_dynamic,
    })
}

fn offered() -> impl Strategy<Value = Offered> {
    let often = || prop::bool::weighted(0.8);
    (1..4_i64, any::<bool>(), any::<bool>(), often(), often()).prop_map(
        |(capacity, is_fast, is_dynamic, is_near, is_available)| Offered {
            capacity,
            is_fast,
            is_dynamic,
            is_usable: [is_near, is_available],
        },
    )
}

fn suits(wanted: &Wanted, offered: &Offered) -> bool {
    offered.capacity >= wanted.request
        && offered.is_dynamic == wanted.is_dynamic
        && (offered.is_fast || !wanted.is_choosy)
        && offered.is_usable == [true, true]
}

/// Whether every claim can have a volume of its own, or one is made for it within the capacity.
fn has_solution(
    wanted: &[Wanted],
    offered: &[Offered],
    capacity: i64,
    used: &mut Vec<usize>,
) -> bool {
    let Some((first, rest)) = wanted.split_first() else { return true };
    if first.is_dynamic
        && first.request <= capacity
        && has_solution(rest, offered, capacity - first.request, used)
    {
        return true;
    }
    for (index, volume) in offered.iter().enumerate() {
        if used.contains(&index) || !suits(first, volume) {
            continue;
        }
        used.push(index);
        if has_solution(rest, offered, capacity, used) {
            return true;
        }
        used.pop();
    }
    false
}

fn cluster_of(wanted: &[Wanted], offered: &[Offered], total: i64) -> Cluster {
    let mut cluster = cluster([node("n1")], []);
    cluster.put(by_hand());
    cluster.put(class("dyn", "x.csi"));
    cluster.put(CsiDriver { name: "x.csi".into(), has_storage_capacity: true });
    cluster.put(capacity("cap", "dyn", None, Some(total * GIB)));
    let class_of = |is_dynamic| if is_dynamic { "dyn" } else { "local" };
    for (index, wanted) in wanted.iter().enumerate() {
        let selector = wanted.is_choosy.then(|| selector("tier=fast"));
        let claim = claim(&format!("c{index}"), class_of(wanted.is_dynamic));
        cluster.put(PersistentVolumeClaim { request: gib(wanted.request), selector, ..claim });
    }
    for (index, offered) in offered.iter().enumerate() {
        let mut volume = volume(&format!("pv{index}"), class_of(offered.is_dynamic));
        volume.capacity = gib(offered.capacity);
        if offered.is_fast {
            volume.labels = labels("tier=fast");
        }
        if !offered.is_usable[0] {
            volume = near(volume, "kubernetes.io/hostname", "elsewhere");
        }
        if !offered.is_usable[1] {
            volume.phase = VolumePhase::Released;
        }
        cluster.put(volume);
    }
    cluster
}

proptest! {
    #[test]
    fn bindings_are_right_and_found_whenever_there_are_any(
        wanted in prop::collection::vec(wanted(), 1..5),
        offered in prop::collection::vec(offered(), 0..6),
        total in 0..6_i64,
    ) {
        let cluster = cluster_of(&wanted, &offered, total);
        let names: Vec<_> = (0..wanted.len()).map(|index| format!("c{index}")).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let incoming = pod("incoming").claims(&names).build();
        let found = find_pod_volumes(
            &Rules::default(), &cluster, &incoming, &cluster.nodes[&"n1".into()],
        );
        let is_solvable = has_solution(&wanted, &offered, total, &mut Vec::new());
        prop_assert_eq!(found.is_ok(), is_solvable, "{:?}", found);
        let Ok(bindings) = found else { return Ok(()) };
        let number = |name: &str| name.trim_start_matches(char::is_alphabetic).parse::<usize>().unwrap();
        let mut claims = BTreeSet::new();
        let mut volumes = BTreeSet::new();
        for (claim, volume) in &bindings.static_bindings {
            prop_assert!(suits(&wanted[number(&claim.name)], &offered[number(volume)]));
            prop_assert!(claims.insert(claim.clone()), "a claim has one volume");
            prop_assert!(volumes.insert(volume.clone()), "a volume has one claim");
        }
        let mut made = 0;
        for claim in &bindings.dynamic_provisions {
            let wanted = &wanted[number(&claim.name)];
            prop_assert!(wanted.is_dynamic && claims.insert(claim.clone()));
            made += wanted.request;
        }
        prop_assert!(made <= total);
        prop_assert_eq!(claims.len(), wanted.len());
    }
}

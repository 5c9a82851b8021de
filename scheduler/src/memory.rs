//! How much memory the process may use: what its cgroups allow, else what the machine has.

use std::path::{Path, PathBuf};

use engine::CacheLimit;

/// What the engine remembers of nodes takes so much of the memory: most of it is for what the API server shows, and for
/// what is on its way.
const SHARE_OF_MEMORY: u64 = 8;
/// Less than this makes everything slow and saves nothing.
const CACHE_BYTES_MIN: u64 = 16 << 20;
/// Of a machine that says nothing: what the manifests ask for.
const MEMORY_BYTES_UNKNOWN: u64 = 1 << 30;

/// What was asked for, or else a share of the memory.
pub fn cache_limit(asked_mib: Option<u64>) -> CacheLimit {
    let share = || {
        let memory = usable_bytes(Path::new("/")).unwrap_or(MEMORY_BYTES_UNKNOWN);
        (memory / SHARE_OF_MEMORY).max(CACHE_BYTES_MIN)
    };
    let bytes = asked_mib.map_or_else(share, |mib| mib.saturating_mul(1 << 20));
    CacheLimit { bytes }
}

/// The least that the machine and each cgroup above the process allow, with the system's files below `root`.
fn usable_bytes(root: &Path) -> Option<u64> {
    let cgroups = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = cgroups.lines().flat_map(|line| limits_of(root, line));
    limits.chain(machine_bytes(root)).min()
}

/// Of one line of `/proc/self/cgroup`: the second version names no controllers, the first may name memory.
fn limits_of(root: &Path, line: &str) -> Vec<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (mount, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|it| it == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let mount = root.join(mount);
    let mut limits = Vec::new();
    // In a container the path may be the host's, and only the mount itself is there.
    let mut group: PathBuf = mount.join(path.trim_start_matches('/'));
    while group.starts_with(&mount) {
        // Without a limit, the second version says "max", and the first a number that no machine has.
        let limit = std::fs::read_to_string(group.join(file)).ok();
        limits.extend(limit.and_then(|text| text.trim().parse::<u64>().ok()));
        if !group.pop() {
            break;
        }
    }
    limits
}

fn machine_bytes(root: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:       24000000 kB\nMemFree: 1 kB\n");

    #[test]
    fn the_smallest_limit_above_the_process_counts() {
        let root = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/kubepods/pod1/main\n"),
            ("sys/fs/cgroup/kubepods/pod1/main/memory.max", "max\n"),
            ("sys/fs/cgroup/kubepods/pod1/memory.max", "1073741824\n"),
            ("sys/fs/cgroup/kubepods/memory.max", "20000000000\n"),
        ]);
        assert_eq!(usable_bytes(root.path()), Some(1 << 30));
    }

    #[test]
    fn in_a_container_only_its_own_group_is_there() {
        let root = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/../../kubepods/pod1\n"),
            ("sys/fs/cgroup/memory.max", "536870912\n"),
        ]);
        assert_eq!(usable_bytes(root.path()), Some(512 << 20));
    }

    #[test]
    fn the_first_version_has_a_hierarchy_for_memory() {
        let root = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/docker/1\n0::/\n"),
            ("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "268435456\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        assert_eq!(usable_bytes(root.path()), Some(256 << 20));
    }

    #[test]
    fn without_a_limit_it_is_the_machine() {
        let root = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/init\n"),
            ("sys/fs/cgroup/memory.max", "max\n"),
        ]);
        assert_eq!(usable_bytes(root.path()), Some(24_000_000 << 10));
        assert_eq!(usable_bytes(machine(&[]).path()), None);
    }

    #[test]
    fn what_is_asked_for_holds() {
        assert_eq!(cache_limit(Some(5)).bytes, 5 << 20);
        assert!(cache_limit(None).bytes >= CACHE_BYTES_MIN);
    }
}

//! How much memory this process may still take: one that takes more is ended without a word.

use std::fs;
use std::path::Path;

/// The limits and the use of a group of processes, such as a container, are in files of the folder
/// of this name.
const GROUPS: &str = "/sys/fs/cgroup";

/// Bytes that are free on the machine, within the limits of this process and of its group; absent
/// where the system does not tell.
pub(crate) fn free_memory() -> Option<u64> {
    let read = |path: &str| fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| available(&text));
    let group = read("/proc/self/cgroup").and_then(|text| {
        let folder = Path::new(GROUPS).join(group_of(&text)?);
        let file = |name: &str| fs::read_to_string(folder.join(name)).ok();
        left_of_group(&file("memory.max")?, &file("memory.current")?, &file("memory.stat")?)
    });
    [machine, free_addresses(), group].into_iter().flatten().min()
}

/// Bytes of addresses that the limit of this process leaves; absent without a limit, and where the
/// system does not tell.
pub(crate) fn free_addresses() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    left_of_addresses(&limits, &fs::read_to_string("/proc/self/status").ok()?)
}

/// Bytes that `/proc/meminfo` calls available.
fn available(text: &str) -> Option<u64> {
    kibibytes(text, "MemAvailable:")
}

/// The number of a line in KiB, in bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// What `ulimit -v` leaves, by `/proc/self/limits` and `status`; absent without a limit.
fn left_of_addresses(limits: &str, status: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let most: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(most.saturating_sub(kibibytes(status, "VmSize:")?))
}

/// The path of the group below the folder of all, by `/proc/self/cgroup`.
fn group_of(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::/"))
}

/// What a group has left, if it has a limit: pages of files are given up first.
fn left_of_group(most: &str, current: &str, stat: &str) -> Option<u64> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let files = stat.lines().find_map(|line| number(line.strip_prefix("inactive_file ")?));
    let used = number(current)?.saturating_sub(files.unwrap_or(0));
    Some(number(most)?.saturating_sub(used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_is_found_among_the_rest() {
        let text = "MemTotal:       24689764 kB\nMemFree: 1 kB\nMemAvailable:   18874368 kB\n";
        assert_eq!(available(text), Some(18 << 30));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
    }

    #[test]
    fn limits_leave_what_is_not_used() {
        let status = "VmPeak:\t 9000 kB\nVmSize:\t    4096 kB\n";
        let limits =
            |most| format!("Max stack size  1 1 bytes\nMax address space  {most} x bytes\n");
        assert_eq!(left_of_addresses(&limits("6291456"), status), Some(2 << 20));
        assert_eq!(left_of_addresses(&limits("1"), status), Some(0));
        assert_eq!(left_of_addresses(&limits("unlimited"), status), None);

        assert_eq!(group_of("4:memory:/a\n0::/user.slice/b\n"), Some("user.slice/b"));
        assert_eq!(group_of("0::/\n"), Some(""));
        let stat = "anon 9\ninactive_file 300\n";
        assert_eq!(left_of_group("1000\n", "900\n", stat), Some(400));
        assert_eq!(left_of_group("max\n", "900\n", stat), None);
        assert!(free_memory().is_none_or(|bytes| bytes > 0));
    }
}

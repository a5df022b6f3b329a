//! What a kernel needs of a multiprocessor, read from the assembler's report.

use serde::{Deserialize, Serialize};

/// What one kernel uses, as the assembler reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of a thread that are written to local memory for want of registers.
    pub spill_stores: u32,
    /// Bytes of a thread that are read back.
    pub spill_loads: u32,
    /// Bytes of a thread's stack frame in local memory, spills included.
    pub stack: u32,
    /// Bytes of a block's static shared memory.
    pub shared: u32,
    /// Bytes of constant memory: the arguments, launch geometry and constants. NVRTC 13 does not
    /// tell for `sm_90` and later.
    pub constant: Option<u32>,
}

impl Resources {
    /// Finds `kernel` in a log written with `--ptxas-options=-v`. `None` when the log does not
    /// speak of it.
    #[must_use]
    pub(super) fn parse(log: &str, kernel: &str) -> Option<Self> {
        let entry = format!("Compiling entry function '{kernel}' for ");
        let properties = format!("Function properties for {kernel}");
        let lines = log.lines().skip_while(|line| !line.contains(&entry)).skip(1);
        let mut resources = Self::default();
        let mut in_properties = false;
        for line in lines {
            if line.contains("Compiling entry function") {
                break;
            } else if line.contains("Function properties for") {
                // Functions that were not inlined have a section of their own.
                in_properties = line.ends_with(&properties);
            } else if in_properties && line.contains("bytes stack frame") {
                for item in items(line) {
                    match item {
                        (bytes, "bytes stack frame") => resources.stack = bytes,
                        (bytes, "bytes spill stores") => resources.spill_stores = bytes,
                        (bytes, "bytes spill loads") => resources.spill_loads = bytes,
                        _ => {}
                    }
                }
            } else if let Some((_, used)) = line.split_once(": Used ") {
                for item in items(used) {
                    match item {
                        (count, "registers") => resources.registers = count,
                        (bytes, "bytes smem") => resources.shared = bytes,
                        (bytes, what) if what.starts_with("bytes cmem[") => {
                            let others = resources.constant.unwrap_or(0);
                            resources.constant = Some(others.saturating_add(bytes));
                        }
                        _ => {}
                    }
                }
                return Some(resources);
            }
        }
        None
    }
}

/// `ptxas . 8 bytes stack frame, 0 bytes spill stores` as (8, "bytes stack frame"), (0, "bytes
/// spill stores").
fn items(line: &str) -> impl Iterator<Item = (u32, &str)> {
    line.split(',').filter_map(|item| {
        let item = item.get(item.find(|c: char| c.is_ascii_digit())?..)?;
        let (number, what) = item.split_once(' ')?;
        Some((number.parse().ok()?, what.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From NVRTC 12.9.
    const LOG: &str = "\
nvrtc: warning: Architectures prior to '<compute/sm>_75' are deprecated and may be removed in a future release
ptxas info    : 272 bytes gmem, 16 bytes cmem[4]
ptxas info    : Compiling entry function 'k2' for 'sm_70'
ptxas info    : Function properties for k2
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 360 bytes cmem[0]
ptxas info    : Compile time = 2.368 ms
ptxas info    : Compiling entry function 'k' for 'sm_70'
ptxas info    : Function properties for __internal_trig_reduction_slowpathd
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Function properties for k
ptxas         .     560 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 560 bytes cumulative stack size, 1024 bytes smem, 372 bytes cmem[0], 32 bytes cmem[2]
ptxas info    : Compile time = 55.186 ms
";

    #[test]
    fn every_kernel_gets_its_own_figures() {
        let expected = Resources {
            registers: 32,
            spill_stores: 12,
            spill_loads: 16,
            stack: 560,
            shared: 1024,
            constant: Some(404),
        };
        assert_eq!(Resources::parse(LOG, "k"), Some(expected));
        let expected = Resources { registers: 8, constant: Some(360), ..Resources::default() };
        assert_eq!(Resources::parse(LOG, "k2"), Some(expected));
    }

    #[test]
    fn nvcc_prints_the_stack_line_without_a_prefix() {
        let log = LOG.replace("ptxas         .", "    ");
        assert_eq!(Resources::parse(&log, "k"), Resources::parse(LOG, "k"));
    }

    #[test]
    fn an_absent_kernel_is_none() {
        assert_eq!(Resources::parse(LOG, "k3"), None);
        assert_eq!(Resources::parse("", "k"), None);
        let cut = LOG.rsplit_once("ptxas info    : Used").unwrap().0;
        assert_eq!(Resources::parse(cut, "k"), None);
    }
}

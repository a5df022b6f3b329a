//! PTX text: read or refused, and what can be run ends within its budget, whatever it does.

use sparserl_emulator::launch::{Argument, Launch, Options};
use sparserl_emulator::machine::run as launch;
use sparserl_emulator::memory::Memory;
use sparserl_emulator::ptx::Module;

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(module) = Module::parse(text) else { return };
    for name in module.kernels() {
        let Ok(kernel) = module.kernel(name) else { continue };
        let mut memory = Memory::new();
        let arguments = kernel.parameters.iter().enumerate().map(|(at, parameter)| {
            match (parameter.bytes.len(), at % 3) {
                (8, 0) => Argument::Buffer(memory.read_only("input", &[1; 256])),
                (8, 1) => Argument::Buffer(memory.writable("output", &[0; 256])),
                (8, _) => Argument::Buffer(memory.uninitialised("scratch", 64)),
                (bytes, _) => Argument::Value(vec![0; bytes]),
            }
        });
        let arguments = arguments.collect();
        // A whole warp and a part of one.
        let geometry = Launch { grid: [2, 1, 1], block: [40, 1, 1], dynamic_shared: 64, arguments };
        for seed in [0, 1] {
            let options = Options { seed, budget: 2000, ..Options::default() };
            if let Ok(report) = launch(&kernel, &geometry, &mut memory, &options) {
                for finding in report.findings {
                    let text = finding.to_string();
                    assert_eq!(text.lines().count(), 1, "{text}");
                }
            }
        }
    }
}

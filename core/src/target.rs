//! The GPU that a kernel is generated for: what masks, cost models, policies and emission ask of
//! it.

mod architecture;

pub use architecture::{Architecture, ParseArchitectureError};

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// A GPU, by the figures that decide which kernel is fast on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Target {
    /// What machine code is made for.
    pub architecture: Architecture,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of level-2 cache.
    pub l2_bytes: u64,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_memory_bytes: u32,
    /// 32-bit registers of a multiprocessor.
    pub registers: u32,
    /// Bytes a second between device memory and the chip, as its data sheet has it.
    pub bandwidth: u64,
}

/// A [`Target`] with the figures of a data sheet: L2 in MiB, shared memory in KiB, bandwidth in
/// GB/s.
const fn sheet(
    architecture: Architecture,
    multiprocessors: u32,
    l2_mib: u64,
    shared_kib: u32,
    bandwidth_gb: u64,
) -> Target {
    Target {
        architecture,
        multiprocessors,
        l2_bytes: l2_mib << 20,
        shared_memory_bytes: shared_kib << 10,
        registers: 65_536,
        bandwidth: bandwidth_gb * 1_000_000_000,
    }
}

impl Target {
    /// NVIDIA V100 (SXM2).
    pub const V100: Self = sheet(Architecture::Sm70, 80, 6, 96, 900);
    /// NVIDIA Jetson AGX Xavier.
    pub const XAVIER: Self =
        Self { l2_bytes: 512 << 10, ..sheet(Architecture::Sm72, 8, 0, 96, 137) };
    /// NVIDIA T4.
    pub const T4: Self = sheet(Architecture::Sm75, 40, 4, 64, 320);
    /// NVIDIA A100 (SXM4, 80 GB).
    pub const A100: Self = sheet(Architecture::Sm80, 108, 40, 164, 2_039);
    /// GeForce RTX 3090.
    pub const RTX3090: Self = sheet(Architecture::Sm86, 82, 6, 100, 936);
    /// NVIDIA Jetson AGX Orin (64 GB).
    pub const ORIN: Self = sheet(Architecture::Sm87, 16, 4, 164, 205);
    /// GeForce RTX 4090.
    pub const RTX4090: Self = sheet(Architecture::Sm89, 128, 72, 100, 1_008);
    /// NVIDIA H100 (SXM5).
    pub const H100: Self = sheet(Architecture::Sm90, 132, 50, 228, 3_350);
    /// NVIDIA H200 (SXM5).
    pub const H200: Self = sheet(Architecture::Sm90, 132, 60, 228, 4_800);
    /// NVIDIA B200.
    pub const B200: Self = sheet(Architecture::Sm100, 148, 126, 228, 8_000);
    /// NVIDIA B300, by the figures of the B200, which it shares all but arithmetic with.
    pub const B300: Self = sheet(Architecture::Sm103, 148, 126, 228, 8_000);
    /// NVIDIA Jetson AGX Thor (T5000).
    pub const THOR: Self = sheet(Architecture::Sm110, 20, 32, 228, 273);
    /// GeForce RTX 5090.
    pub const RTX5090: Self = sheet(Architecture::Sm120, 170, 96, 100, 1_792);
    /// NVIDIA GB10 (DGX Spark).
    pub const GB10: Self = sheet(Architecture::Sm121, 48, 24, 100, 273);

    /// The GPUs that are known by name, the default of each architecture before others of it.
    pub const PRESETS: [(&str, Self); 14] = [
        ("v100", Self::V100),
        ("xavier", Self::XAVIER),
        ("t4", Self::T4),
        ("a100", Self::A100),
        ("rtx3090", Self::RTX3090),
        ("orin", Self::ORIN),
        ("rtx4090", Self::RTX4090),
        ("h200", Self::H200),
        ("h100", Self::H100),
        ("b200", Self::B200),
        ("b300", Self::B300),
        ("thor", Self::THOR),
        ("rtx5090", Self::RTX5090),
        ("gb10", Self::GB10),
    ];
}

impl From<Architecture> for Target {
    /// The GPU that stands for an architecture where nothing else is known.
    fn from(architecture: Architecture) -> Self {
        match architecture {
            Architecture::Sm70 => Self::V100,
            Architecture::Sm72 => Self::XAVIER,
            Architecture::Sm75 => Self::T4,
            Architecture::Sm80 => Self::A100,
            Architecture::Sm86 => Self::RTX3090,
            Architecture::Sm87 => Self::ORIN,
            Architecture::Sm88 => Self { architecture, ..Self::ORIN },
            Architecture::Sm89 => Self::RTX4090,
            Architecture::Sm90 => Self::H200,
            Architecture::Sm100 => Self::B200,
            Architecture::Sm101 => Self { architecture, ..Self::THOR },
            Architecture::Sm103 => Self::B300,
            Architecture::Sm110 => Self::THOR,
            Architecture::Sm120 => Self::RTX5090,
            Architecture::Sm121 => Self::GB10,
        }
    }
}

impl FromStr for Target {
    type Err = ParseTargetError;

    /// Reads the name of a preset, or of an architecture: `h100`, `sm_90`.
    fn from_str(text: &str) -> Result<Self, ParseTargetError> {
        let preset = Self::PRESETS.into_iter().find(|(name, _)| *name == text);
        match (preset, text.parse::<Architecture>()) {
            (Some((_, target)), _) => Ok(target),
            (None, Ok(architecture)) => Ok(architecture.into()),
            (None, Err(_)) => Err(ParseTargetError { text: text.to_owned() }),
        }
    }
}

/// The text names no GPU that kernels are generated for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown GPU `{text}`: expected one of {}, or one of {}",
    architecture::names(),
    Target::PRESETS.map(|(name, _)| name).join(", ")
)]
pub struct ParseTargetError {
    text: String,
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn presets_and_architectures_are_targets() {
        assert_eq!("h100".parse(), Ok(Target::H100));
        assert_eq!("sm_90".parse(), Ok(Target::H200));
        for architecture in Architecture::ALL {
            assert_eq!(Target::from(architecture).architecture, architecture);
        }
        let error = "h300".parse::<Target>().unwrap_err().to_string();
        assert!(error.contains("`h300`") && error.contains("sm_70, ") && error.contains("v100"));
    }
}

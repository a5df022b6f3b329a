//! GPU architectures that kernels are compiled for.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// A compilation target, written `sm_90`.
///
/// Whether a given compiler knows it is another question: ask the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Architecture {
    /// Volta (V100).
    Sm70,
    /// Volta (Jetson Xavier).
    Sm72,
    /// Turing (T4, RTX 20).
    Sm75,
    /// Ampere (A100).
    Sm80,
    /// Ampere (A40, RTX 30).
    Sm86,
    /// Ampere (Jetson Orin).
    Sm87,
    /// Ampere, which NVRTC 13 knows and no GPU on sale has.
    Sm88,
    /// Ada (L40, RTX 40).
    Sm89,
    /// Hopper (H100, H200).
    Sm90,
    /// Blackwell (B200).
    Sm100,
    /// Blackwell (Jetson Thor), as CUDA 12 calls it.
    Sm101,
    /// Blackwell (B300).
    Sm103,
    /// Blackwell (Jetson Thor), as CUDA 13 calls it.
    Sm110,
    /// Blackwell (RTX 50).
    Sm120,
    /// Blackwell (DGX Spark).
    Sm121,
}

impl Architecture {
    /// Every architecture, oldest first.
    pub const ALL: [Self; 15] = [
        Self::Sm70,
        Self::Sm72,
        Self::Sm75,
        Self::Sm80,
        Self::Sm86,
        Self::Sm87,
        Self::Sm88,
        Self::Sm89,
        Self::Sm90,
        Self::Sm100,
        Self::Sm101,
        Self::Sm103,
        Self::Sm110,
        Self::Sm120,
        Self::Sm121,
    ];

    /// The number in its name: 90 for `sm_90`, ten times the major compute capability plus the
    /// minor.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Self::Sm70 => 70,
            Self::Sm72 => 72,
            Self::Sm75 => 75,
            Self::Sm80 => 80,
            Self::Sm86 => 86,
            Self::Sm87 => 87,
            Self::Sm88 => 88,
            Self::Sm89 => 89,
            Self::Sm90 => 90,
            Self::Sm100 => 100,
            Self::Sm101 => 101,
            Self::Sm103 => 103,
            Self::Sm110 => 110,
            Self::Sm120 => 120,
            Self::Sm121 => 121,
        }
    }

    /// Whether a kernel may begin before the one before it in its stream has ended, and wait for it
    /// itself (CUDA C++ Programming Guide, programmatic dependent launch).
    #[must_use]
    pub fn has_programmatic_launch(self) -> bool {
        self >= Self::Sm90
    }

    /// The newest architecture whose cubins run on a device of this compute capability, if there is
    /// one.
    ///
    /// Cubins run on devices of the same major compute capability and the same or a later minor
    /// one. `sm_88` and `sm_101` are passed over: what runs them runs an older one, which more
    /// releases of the compiler know.
    #[must_use]
    pub fn for_compute_capability(major: u32, minor: u32) -> Option<Self> {
        let usual = |a: &Self| !matches!(a, Self::Sm88 | Self::Sm101);
        let runs = |a: &Self| a.number() / 10 == major && a.number() % 10 <= minor;
        Self::ALL.into_iter().rev().filter(usual).find(runs)
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.number())
    }
}

impl FromStr for Architecture {
    type Err = ParseArchitectureError;

    /// Reads the form that `Display` writes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|a| a.to_string() == text)
            .ok_or_else(|| ParseArchitectureError { text: text.to_owned() })
    }
}

impl From<Architecture> for String {
    fn from(architecture: Architecture) -> Self {
        architecture.to_string()
    }
}

impl TryFrom<String> for Architecture {
    type Error = ParseArchitectureError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// The text names no architecture that kernels are compiled for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown architecture `{text}`: expected one of {}", names())]
pub struct ParseArchitectureError {
    text: String,
}

pub(super) fn names() -> String {
    Architecture::ALL.map(|a| a.to_string()).join(", ")
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn text_form_round_trips() {
        for architecture in Architecture::ALL {
            assert_eq!(architecture.to_string().parse(), Ok(architecture));
        }
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        for text in ["", "sm_", "90", "sm_91", "sm_090", "SM_90", "compute_90", "sm_90a", " sm_90"]
        {
            let error = text.parse::<Architecture>().unwrap_err().to_string();
            assert!(
                error.contains(&format!("`{text}`")) && error.contains("sm_70, sm_72, sm_75"),
                "{error}"
            );
        }
    }

    #[test]
    fn devices_get_the_newest_cubin_that_they_run() {
        let choose = Architecture::for_compute_capability;
        assert_eq!(choose(9, 0), Some(Architecture::Sm90));
        assert_eq!(choose(8, 8), Some(Architecture::Sm87), "no GPU has its own");
        assert_eq!(choose(10, 1), Some(Architecture::Sm100), "Thor runs sm_100");
        assert_eq!(choose(10, 3), Some(Architecture::Sm103));
        assert_eq!(choose(12, 1), Some(Architecture::Sm121));
        assert_eq!(choose(6, 1), None);
        assert_eq!(choose(11, 0), Some(Architecture::Sm110), "Thor since CUDA 13");
        assert_eq!(choose(7, 2), Some(Architecture::Sm72));
        assert_eq!(choose(13, 0), None);
    }
}

use std::fmt;
use std::str::FromStr;

/// An execution provider of ONNX Runtime: where it runs models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExecutionProvider {
    /// On the CPU.
    #[default]
    Cpu,
    /// On the first CUDA device.
    Cuda,
}

impl ExecutionProvider {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Cpu, Self::Cuda];

    /// What it is called, in options as in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        }
    }
}

impl fmt::Display for ExecutionProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An error: no execution provider is called so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` is no execution provider; expected {}",
    ExecutionProvider::ALL.map(ExecutionProvider::name).join(" or ")
)]
pub struct UnknownProvider {
    /// What was given.
    name: String,
}

impl FromStr for ExecutionProvider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        let found = Self::ALL.into_iter().find(|provider| provider.name() == name);
        found.ok_or_else(|| UnknownProvider { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_read_as_they_are_called() {
        for provider in ExecutionProvider::ALL {
            assert_eq!(provider.to_string().parse(), Ok(provider));
        }
        let error = "tpu".parse::<ExecutionProvider>().unwrap_err().to_string();
        assert_eq!(error, "`tpu` is no execution provider; expected cpu or cuda");
    }
}

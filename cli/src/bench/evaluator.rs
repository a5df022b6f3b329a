//! Who judges the candidates: the one place that opens the devices.

use std::convert::Infallible;

use anyhow::{Context, bail};
use sparserl_core::language::Program;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{Evaluation, Evaluator};
use sparserl_gpu::device::{Device, DeviceFacts};

/// Opens the devices with these numbers and gives what judges programs on them, and what they are.
///
/// # Errors
/// When there is no such device, or it cannot be used.
pub(crate) fn open(devices: &[u32]) -> anyhow::Result<(Unmeasured, Vec<DeviceFacts>)> {
    for &ordinal in devices {
        Device::open(ordinal).and_then(|device| device.facts()).context("no GPU to measure on")?;
    }
    bail!("no GPU to measure on: this build cannot measure yet")
}

/// No evaluator: there is no value of this type.
#[derive(Debug)]
pub(crate) enum Unmeasured {}

impl Evaluator for Unmeasured {
    type Error = Infallible;

    fn evaluate<T: Scalar>(
        &mut self,
        _: CsrView<'_, T>,
        _: &[Program],
    ) -> Result<Evaluation, Infallible> {
        match *self {}
    }
}

//! [`sparserl_fuzz::ptx`]
#![cfg_attr(fuzzing, no_main)]

sparserl_fuzz::target!(sparserl_fuzz::ptx::run);

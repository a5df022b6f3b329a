//! [`sparserl_fuzz::smtx`]
#![cfg_attr(fuzzing, no_main)]

sparserl_fuzz::target!(sparserl_fuzz::smtx::run);

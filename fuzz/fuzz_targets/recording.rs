//! [`sparserl_fuzz::recording`]
#![cfg_attr(fuzzing, no_main)]

sparserl_fuzz::target!(sparserl_fuzz::recording::run);

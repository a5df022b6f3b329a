//! [`sparserl_fuzz::market`]
#![cfg_attr(fuzzing, no_main)]

sparserl_fuzz::target!(sparserl_fuzz::market::run);

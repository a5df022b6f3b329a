//! [`sparserl_fuzz::packing`]
#![cfg_attr(fuzzing, no_main)]

sparserl_fuzz::target!(sparserl_fuzz::packing::run);

//! [`sparserl_fuzz::raw_kernel`]
#![cfg_attr(fuzzing, no_main)]

sparserl_fuzz::target!(sparserl_fuzz::raw_kernel::run);

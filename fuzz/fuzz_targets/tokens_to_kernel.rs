//! [`sparserl_fuzz::tokens_to_kernel`]
#![cfg_attr(fuzzing, no_main)]

sparserl_fuzz::target!(sparserl_fuzz::tokens_to_kernel::run);

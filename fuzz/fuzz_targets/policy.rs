//! [`sparserl_fuzz::policy`]
#![cfg_attr(fuzzing, no_main)]

sparserl_fuzz::target!(sparserl_fuzz::policy::run);

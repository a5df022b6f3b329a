//! [`sparserl_fuzz::compressed`]
#![cfg_attr(fuzzing, no_main)]

sparserl_fuzz::target!(sparserl_fuzz::compressed::run);

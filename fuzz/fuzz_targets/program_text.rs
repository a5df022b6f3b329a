//! [`sparserl_fuzz::program_text`]
#![cfg_attr(fuzzing, no_main)]

sparserl_fuzz::target!(sparserl_fuzz::program_text::run);

//! A PTX emulator.
//!
//! Nothing is implemented yet.

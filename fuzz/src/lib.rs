//! Fuzz targets.
//!
//! None yet; the generators that they will share are in `sparserl_core::arbitrary`.

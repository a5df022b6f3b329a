//! What was found out, kept: recordings, and the fingerprints that tell matrices apart.

pub mod fingerprint;
pub mod recording;
pub mod whole_file;

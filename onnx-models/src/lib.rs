//! Empty: nothing is implemented here yet.

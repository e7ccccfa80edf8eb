//! Cross-crate tests: see the files beside this one.

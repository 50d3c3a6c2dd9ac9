//! Documents made readable: figures, which variant is chosen and why, two sides compared, logs, a page for a browser.
//!
//! The code map. A module uses only modules declared above it; `tests/core/layers.rs` holds it to that. It does not know where documents come from, nor that there is a cache.

pub mod figures;
pub mod calibrations;
pub mod rank;
pub mod compare;
pub mod render;
pub mod page;
pub mod stages;

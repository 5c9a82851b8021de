//! Tests that need more than one module.

mod reference;

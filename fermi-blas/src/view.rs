//! Views: which part of a buffer an operation reads or writes.
//!
//! Every bound is checked where a view is built, so kernels can trust it. A [`ViewMut`] is exclusive over its elements: it
//! comes out of an exclusive borrow, and cutting it by rows or columns gives parts that share no element.

mod batch;
mod matrix;

pub use batch::{BatchView, BatchViewMut};
pub use matrix::{View, ViewMut};

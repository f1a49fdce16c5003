//! Looking at every stage of a model while it runs.

use std::fmt;

use crate::{Backend, Result, View};

/// Sees the output of each stage of a model, under the reference's own names.
///
/// Names come as format arguments, so that a model that nobody observes (`&mut ()`) formats and allocates nothing.
pub trait Observer<B: Backend>: Send {
    /// One stage's output, as it lies on the device.
    ///
    /// # Errors
    /// Whatever reading it fails with; the model's pass ends with that error.
    fn stage(&mut self, name: fmt::Arguments<'_>, value: View<'_, B>) -> Result<()>;

    /// Whether anybody looks. If not, a model may leave out rows that nothing depends on.
    fn observes(&self) -> bool {
        true
    }
}

impl<B: Backend> Observer<B> for () {
    fn stage(&mut self, _: fmt::Arguments<'_>, _: View<'_, B>) -> Result<()> {
        Ok(())
    }

    fn observes(&self) -> bool {
        false
    }
}

/// A stage's output on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// The reference's name of the stage.
    pub name: String,
    /// Rows of the output.
    pub rows: usize,
    /// Columns of the output.
    pub columns: usize,
    /// Its values, row after row.
    pub values: Vec<f32>,
}

/// An [`Observer`] that keeps every stage.
#[derive(Debug)]
pub struct Recorder<B> {
    device: B,
    /// The stages, in the order in which they ran.
    pub stages: Vec<Stage>,
}

impl<B: Backend> Recorder<B> {
    /// A recorder of a model that runs on `device`.
    pub fn new(device: &B) -> Self {
        Self { device: device.clone(), stages: Vec::new() }
    }
}

impl<B: Backend> Observer<B> for Recorder<B> {
    fn stage(&mut self, name: fmt::Arguments<'_>, value: View<'_, B>) -> Result<()> {
        let values = value.to_vec(&self.device)?;
        self.stages.push(Stage {
            name: name.to_string(),
            rows: value.rows(),
            columns: value.columns(),
            values,
        });
        Ok(())
    }
}

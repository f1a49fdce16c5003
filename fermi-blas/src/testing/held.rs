//! Matrices with guarded gaps between their rows.

use crate::{Backend, Matrix, View, ViewMut};

/// What the gaps hold: a value that would show in any result that read it.
const GUARD: f32 = 3.0e30;

/// A matrix inside a wider one, so that its rows have gaps.
#[derive(Debug)]
pub struct Held<B: Backend> {
    device: B,
    whole: Matrix<B>,
    left: usize,
    columns: usize,
}

impl<B: Backend> Held<B> {
    /// `values` as `[rows, columns]` with `gap` guarded elements in each row around them.
    ///
    /// # Panics
    /// When the device fails.
    pub fn new(device: &B, rows: usize, columns: usize, values: &[f32], gap: usize) -> Self {
        assert_eq!(values.len(), rows * columns);
        let (width, left) = (columns + gap, gap / 2);
        let mut guarded = vec![GUARD; rows * width];
        for row in 0..rows {
            guarded[row * width + left..][..columns].copy_from_slice(&values[row * columns..][..columns]);
        }
        let whole = Matrix::from_slice(device, rows, width, &guarded).expect("allocation");
        Self { device: device.clone(), whole, left, columns }
    }

    /// The matrix, to read.
    ///
    /// # Panics
    /// Never: the range lies inside.
    pub fn view(&self) -> View<'_, B> {
        self.whole.view().column_range(self.left..self.left + self.columns).expect("inside")
    }

    /// The matrix, to write.
    ///
    /// # Panics
    /// Never: the range lies inside.
    pub fn view_mut(&mut self) -> ViewMut<'_, B> {
        self.whole.view_mut().column_range(self.left..self.left + self.columns).expect("inside")
    }

    /// The values on the host.
    ///
    /// # Panics
    /// When the device fails, or when something was written into a gap.
    pub fn values(&self) -> Vec<f32> {
        let width = self.whole.columns();
        let values = self.whole.to_vec(&self.device).expect("read");
        let inside = |index: &usize| (self.left..self.left + self.columns).contains(&(index % width));
        let outside = (0..values.len()).filter(|index| !inside(index));
        assert!(outside.into_iter().all(|index| values[index] == GUARD), "a gap was written");
        (0..values.len()).filter(inside).map(|index| values[index]).collect()
    }
}

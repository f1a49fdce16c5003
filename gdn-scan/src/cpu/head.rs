//! One value head's part of the inputs.

use fermi_blas::Cpu;

use crate::{Scan, ScanInputs, ScanShape};

/// The inputs of all heads.
#[derive(Clone, Copy)]
pub(super) struct Heads<'a> {
    inputs: ScanInputs<'a, Cpu>,
    pub(super) shape: ScanShape,
    pub(super) scale: f32,
    pub(super) l2_normalize: Option<f32>,
}

impl<'a> Heads<'a> {
    pub(super) fn new(scan: &Scan<'a, Cpu>) -> Self {
        let &Scan { inputs, shape, scale, l2_normalize, .. } = scan;
        Self { inputs, shape, scale, l2_normalize }
    }

    /// Number of tokens.
    pub(super) fn tokens(&self) -> usize {
        self.inputs.q.rows()
    }

    /// One value head's part.
    pub(super) fn head(self, head: usize) -> Head<'a> {
        let Self { inputs, shape, scale, l2_normalize } = self;
        Head { inputs, shape, head, key_head: shape.key_head(head), scale, l2_normalize }
    }
}

/// The inputs as one value head sees them, token by token.
#[derive(Clone, Copy)]
pub(super) struct Head<'a> {
    inputs: ScanInputs<'a, Cpu>,
    shape: ScanShape,
    head: usize,
    key_head: usize,
    pub(super) scale: f32,
    pub(super) l2_normalize: Option<f32>,
}

impl<'a> Head<'a> {
    /// Number of tokens.
    pub(super) fn tokens(&self) -> usize {
        self.inputs.q.rows()
    }

    /// Width of a query or key.
    pub(super) fn key_width(&self) -> usize {
        self.shape.key_width()
    }

    /// Width of a value.
    pub(super) fn value_width(&self) -> usize {
        self.shape.value_width()
    }

    pub(super) fn q(&self, token: usize) -> &'a [f32] {
        let width = self.key_width();
        &self.inputs.q.row(token)[self.key_head * width..][..width]
    }

    pub(super) fn k(&self, token: usize) -> &'a [f32] {
        let width = self.key_width();
        &self.inputs.k.row(token)[self.key_head * width..][..width]
    }

    pub(super) fn v(&self, token: usize) -> &'a [f32] {
        let width = self.value_width();
        &self.inputs.v.row(token)[self.head * width..][..width]
    }

    pub(super) fn g(&self, token: usize) -> f32 {
        self.inputs.g.row(token)[self.head]
    }

    pub(super) fn beta(&self, token: usize) -> f32 {
        self.inputs.beta.row(token)[self.head]
    }
}

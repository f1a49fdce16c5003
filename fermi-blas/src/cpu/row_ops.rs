//! The row operations, each in a file of its own.

use super::{activation, add, argmax, norm, rotary, softmax};
use crate::{Activation, BatchViewMut, Cpu, Result, RotaryTable, RowOps, View, ViewMut};

impl RowOps for Cpu {
    fn add_in_place(&self, x: ViewMut<'_, Self>, y: View<'_, Self>) -> Result<()> {
        add::add_in_place(self, x, y)
    }

    fn layer_norm(
        &self,
        x: View<'_, Self>,
        weight: View<'_, Self>,
        bias: View<'_, Self>,
        eps: f32,
        y: ViewMut<'_, Self>,
    ) -> Result<()> {
        norm::layer_norm(self, x, weight, bias, eps, y)
    }

    fn rms_norm(
        &self,
        x: View<'_, Self>,
        weight: View<'_, Self>,
        eps: f32,
        y: ViewMut<'_, Self>,
    ) -> Result<()> {
        norm::rms_norm(self, x, weight, eps, y)
    }

    fn rms_norm_in_place(&self, x: BatchViewMut<'_, Self>, weight: View<'_, Self>, eps: f32) -> Result<()> {
        norm::rms_norm_in_place(self, x, weight, eps)
    }

    fn gated_rms_norm_in_place(
        &self,
        x: ViewMut<'_, Self>,
        z: View<'_, Self>,
        weight: View<'_, Self>,
        eps: f32,
    ) -> Result<()> {
        norm::gated_rms_norm_in_place(self, x, z, weight, eps)
    }

    fn softmax_in_place(&self, x: ViewMut<'_, Self>, scale: f32) -> Result<()> {
        softmax::softmax_in_place(self, x, scale)
    }

    fn causal_softmax_in_place(
        &self,
        x: ViewMut<'_, Self>,
        heads: usize,
        positions: View<'_, Self, u32>,
        scale: f32,
    ) -> Result<()> {
        softmax::causal_softmax_in_place(self, x, heads, positions, scale)
    }

    fn rotary_in_place(
        &self,
        x: BatchViewMut<'_, Self>,
        positions: View<'_, Self, u32>,
        table: &RotaryTable<Self>,
    ) -> Result<()> {
        rotary::rotary_in_place(self, x, positions, table)
    }

    fn activate_in_place(&self, activation: Activation, x: ViewMut<'_, Self>) -> Result<()> {
        activation::activate_in_place(self, activation, x)
    }

    fn gate_in_place(
        &self,
        activation: Activation,
        x: ViewMut<'_, Self>,
        gate: View<'_, Self>,
    ) -> Result<()> {
        activation::gate_in_place(self, activation, x, gate)
    }

    fn argmax(&self, x: View<'_, Self>, index: ViewMut<'_, Self, u32>) -> Result<()> {
        argmax::argmax(self, x, index)
    }
}

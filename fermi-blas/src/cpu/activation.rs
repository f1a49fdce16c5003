//! Activations, alone and as gates.

use super::instructions::{Isa, Kernel, LANES};
use super::math;
use crate::blas::check;
use crate::{Activation, Cpu, Result, View, ViewMut};

/// x = f(x) over one row.
struct Activate<'a> {
    activation: Activation,
    x: &'a mut [f32],
}

impl Kernel for Activate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        math::apply::<I>(self.activation, self.x);
    }
}

pub(super) fn activate_in_place(device: &Cpu, activation: Activation, x: ViewMut<'_, Cpu>) -> Result<()> {
    device.for_each_row(x, |_, x| device.run(Activate { activation, x }));
    Ok(())
}

/// x = x · f(gate) over one row.
struct Gate<'a> {
    activation: Activation,
    x: &'a mut [f32],
    gate: &'a [f32],
}

impl Kernel for Gate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Self { activation, x, gate } = self;
        const STEP: usize = 4 * LANES;
        for (x, gate) in x.chunks_mut(STEP).zip(gate.chunks(STEP)) {
            let mut values = [0.0; STEP];
            let values = &mut values[..gate.len()];
            values.copy_from_slice(gate);
            math::apply::<I>(activation, values);
            for (x, value) in x.iter_mut().zip(values) {
                *x *= *value;
            }
        }
    }
}

pub(super) fn gate_in_place(
    device: &Cpu,
    activation: Activation,
    x: ViewMut<'_, Cpu>,
    gate: View<'_, Cpu>,
) -> Result<()> {
    check("gate_in_place", "rows", x.rows(), gate.rows())?;
    check("gate_in_place", "columns", x.columns(), gate.columns())?;
    device.for_each_row(x, |index, x| device.run(Gate { activation, x, gate: gate.row(index) }));
    Ok(())
}

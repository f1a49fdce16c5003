//! Decays and writing strengths: g = −exp(A_log) · softplus(a + dt_bias), β = sigmoid(b).

use fermi_blas::{Backend, Cpu};

use crate::{Gates, Result};

/// Above this softplus(x) is x, as the reference has it.
const SOFTPLUS_LINEAR: f32 = 20.0;

pub(super) fn gates(device: &Cpu, gates: Gates<'_, Cpu>) -> Result<()> {
    let _span = device.span("scan: gates");
    gates.check()?;
    let Gates { a, b, a_log, dt_bias, g, beta } = gates;
    let (a_log, dt_bias) = (a_log.row(0), dt_bias.row(0));
    device.for_each_row(g, |token, g| {
        for (((g, a), a_log), bias) in g.iter_mut().zip(a.row(token)).zip(a_log).zip(dt_bias) {
            *g = -a_log.exp() * softplus(a + bias);
        }
    });
    device.for_each_row(beta, |token, beta| {
        for (beta, b) in beta.iter_mut().zip(b.row(token)) {
            *beta = 1.0 / (1.0 + (-b).exp());
        }
    });
    Ok(())
}

/// ln(1 + eˣ)
fn softplus(x: f32) -> f32 {
    if x > SOFTPLUS_LINEAR { x } else { x.exp().ln_1p() }
}

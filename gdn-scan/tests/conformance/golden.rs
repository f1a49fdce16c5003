//! The reference's own results on any device.

use gdn_scan::{Mode, ScanBackend};
use ndarray::Array2;

use super::{front, scan};
use crate::common::golden::{check_convolutions, check_gates, check_scan};

pub(crate) fn cases<B: ScanBackend>(device: &B) {
    let modes = [Mode::Sequential, Mode::Chunked { chunk_len: 64 }];
    check_scan(&modes, |inputs, mode| scan::forward(device, inputs, mode));
}

pub(crate) fn convolutions<B: ScanBackend>(device: &B) {
    check_convolutions(|x, weight, past, activation| {
        front::convolve(device, x, weight, past, (activation, 0))
    });
}

pub(crate) fn gates<B: ScanBackend>(device: &B) {
    check_gates(|a, b, a_log, dt_bias| {
        let values = |x: &Array2<f32>| x.iter().copied().collect::<Vec<f32>>();
        let (a_log, dt_bias) = (a_log.to_vec(), dt_bias.to_vec());
        let (g, beta) = front::run_gates(device, [&values(a), &values(b), &a_log, &dt_bias], 0);
        let wide = |x: Vec<f32>| Array2::from_shape_vec(a.dim(), x).unwrap();
        (wide(g), wide(beta))
    });
}

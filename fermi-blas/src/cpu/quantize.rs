//! Rounding weights to 8 bits, on the host: checkpoints are quantized as they are read or written.

use super::instructions::{Instructions, Isa, Kernel};
use super::math::ROUND;
use crate::Q8_GROUP;

/// One row: scale = max|x| / 127 per group, code = round(x / scale), ties to even; a zero group has scale 0.
struct QuantizeRow<'a> {
    values: &'a [f32],
    codes: &'a mut [i8],
    scales: &'a mut [f32],
}

impl Kernel for QuantizeRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Self { values, codes, scales } = self;
        let (groups, rest) = values.as_chunks::<Q8_GROUP>();
        let (code_groups, code_rest) = codes.as_chunks_mut::<Q8_GROUP>();
        for ((values, codes), scale) in groups.iter().zip(code_groups).zip(scales.iter_mut()) {
            *scale = quantize_group(values, codes);
        }
        if let (Some(scale), false) = (scales.last_mut(), rest.is_empty()) {
            *scale = quantize_group(rest, code_rest);
        }
    }
}

#[inline(always)]
fn quantize_group(values: &[f32], codes: &mut [i8]) -> f32 {
    // Bit patterns of magnitudes are ordered like the values, and integer maxima become vectors.
    let largest = values.iter().fold(0, |largest, x| x.abs().to_bits().max(largest));
    let scale = f32::from_bits(largest) / 127.0;
    let inverse = 1.0 / scale;
    // A group so small that its scale is not a normal number would divide badly: it is rounded to zero. One with a value that
    // is not finite becomes NaN, so that it shows in the logits as it would in float32.
    if !(scale >= f32::MIN_POSITIVE && scale.is_finite()) {
        codes.fill(0);
        return if scale.is_finite() { 0.0 } else { f32::NAN };
    }
    for (code, x) in codes.iter_mut().zip(values) {
        // The sum leaves the rounded integer in the lowest bits; |x · inverse| is at most 127 and a rounding.
        *code = (x * inverse + ROUND).to_bits() as i8;
    }
    scale
}

/// Rounds one row to 8 bits.
///
/// # Shapes
/// values and codes `[in]`, scales `[ceil(in / 64)]`
pub(crate) fn quantize_row(values: &[f32], codes: &mut [i8], scales: &mut [f32]) {
    // SAFETY: these are the instructions that the processor has.
    unsafe { Instructions::detect().run(QuantizeRow { values, codes, scales }) };
}

/// Rounds a weight to 8 bits, row by row: codes and scales as [`crate::Q8`] holds them.
///
/// # Shapes
/// values `[rows * columns]`; codes likewise, scales `[rows * ceil(columns / 64)]`
pub fn quantize(values: &[f32], columns: usize) -> (Vec<i8>, Vec<f32>) {
    let rows = values.len().checked_div(columns).unwrap_or(0);
    let groups = columns.div_ceil(Q8_GROUP);
    let (mut codes, mut scales) = (vec![0; rows * columns], vec![0.0; rows * groups]);
    for row in 0..rows {
        let (values, codes) = (&values[row * columns..][..columns], &mut codes[row * columns..][..columns]);
        quantize_row(values, codes, &mut scales[row * groups..][..groups]);
    }
    (codes, scales)
}

//! Weights times one activation row: every weight is read once, so this runs at the speed of memory.

use half::bf16;

use super::dequantize::widen;
use super::few_rows::FewRows;
use super::instructions::{Isa, Kernel, LANES, prefetch};
use super::lanes;
use crate::blas::check;
use crate::{Cpu, Q8_GROUP, Result, View, ViewMut, WeightView};

/// Weights that one piece of work holds: small enough to balance the threads, large enough to pay for handing it over.
const PIECE: usize = 1 << 15;

/// Bytes by which weights are asked for before they are used: the processor's own look-ahead is held up by the arithmetic.
const AHEAD: usize = 4096;

/// The same for scales: they mostly lie in small pages, at whose ends the processor's look-ahead stops.
const SCALES_AHEAD: usize = 1024;

/// Values in [`LANES`] · `WIDE`: independent sums hide the latency of a multiply-add.
const WIDE: usize = 4;

/// Some rows of a product: y[i] = row (first + i) · x.
struct Rows<'a> {
    weight: WeightView<'a, Cpu>,
    first: usize,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Kernel for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Self { weight, first, x, y } = self;
        // Loops, not closures: those might not be inlined, and would then miss the vector instructions.
        match weight {
            WeightView::F32(weight) => {
                for (index, y) in y.iter_mut().enumerate() {
                    *y = dot::<I, f32>(weight.row(first + index), x, |w| w);
                }
            }
            WeightView::Bf16(weight) => {
                for (index, y) in y.iter_mut().enumerate() {
                    *y = dot::<I, bf16>(weight.row(first + index), x, widen);
                }
            }
            WeightView::Q8 { codes, scales } => {
                for (index, y) in y.iter_mut().enumerate() {
                    *y = dot_q8::<I>(codes.row(first + index), scales.row(first + index), x);
                }
            }
        }
    }
}

/// sums += value(w) · x, lane by lane.
#[inline(always)]
pub(super) fn accumulate<I: Isa, T: Copy>(
    sums: &mut [f32; LANES],
    weights: &[T; LANES],
    x: &[f32; LANES],
    value: impl Fn(T) -> f32,
) {
    for ((sum, w), x) in sums.iter_mut().zip(weights).zip(x) {
        *sum = I::mul_add(value(*w), *x, *sum);
    }
}

/// The same for what is left at the end of a row, at most `sums.len()` values.
#[inline(always)]
fn accumulate_rest<I: Isa, T: Copy>(sums: &mut [f32], weights: &[T], x: &[f32], value: impl Fn(T) -> f32) {
    for ((sum, w), x) in sums.iter_mut().zip(weights).zip(x) {
        *sum = I::mul_add(value(*w), *x, *sum);
    }
}

#[inline(always)]
fn dot<I: Isa, T: Copy>(row: &[T], x: &[f32], value: impl Fn(T) -> f32 + Copy) -> f32 {
    let mut sums = [[0.0; LANES]; WIDE];
    let (row, row_rest) = row.as_chunks::<{ WIDE * LANES }>();
    let (x, x_rest) = x.as_chunks::<{ WIDE * LANES }>();
    for (row, x) in row.iter().zip(x) {
        let parts = row.as_chunks::<LANES>().0.iter().zip(x.as_chunks::<LANES>().0);
        for (sums, (weights, x)) in sums.iter_mut().zip(parts) {
            prefetch(weights.as_ptr().wrapping_byte_add(AHEAD));
            accumulate::<I, T>(sums, weights, x, value);
        }
    }
    accumulate_rest::<I, T>(sums.as_flattened_mut(), row_rest, x_rest, value);
    let [a, b, c, d] = sums;
    lanes::total(std::array::from_fn(|lane| (a[lane] + b[lane]) + (c[lane] + d[lane])))
}

/// The sum of each group in lanes, times its scale.
#[inline(always)]
fn dot_q8<I: Isa>(codes: &[i8], scales: &[f32], x: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    let (groups, rest) = codes.as_chunks::<Q8_GROUP>();
    let (x_groups, x_rest) = x.as_chunks::<Q8_GROUP>();
    for ((codes, x), scale) in groups.iter().zip(x_groups).zip(scales) {
        prefetch(codes.as_ptr().wrapping_add(AHEAD));
        prefetch(std::ptr::from_ref(scale).wrapping_byte_add(SCALES_AHEAD));
        let mut group = [0.0; LANES];
        for (codes, x) in codes.as_chunks::<LANES>().0.iter().zip(x.as_chunks::<LANES>().0) {
            accumulate::<I, i8>(&mut group, codes, x, f32::from);
        }
        accumulate::<I, f32>(&mut sums, &group, &[*scale; LANES], |sum| sum);
    }
    if let (Some(scale), false) = (scales.last(), rest.is_empty()) {
        let mut group = [0.0; LANES];
        for (codes, x) in rest.chunks(LANES).zip(x_rest.chunks(LANES)) {
            accumulate_rest::<I, i8>(&mut group, codes, x, f32::from);
        }
        accumulate::<I, f32>(&mut sums, &group, &[*scale; LANES], |sum| sum);
    }
    lanes::total(sums)
}

pub(super) fn gemv(
    device: &Cpu,
    weight: WeightView<'_, Cpu>,
    x: View<'_, Cpu>,
    mut y: ViewMut<'_, Cpu>,
) -> Result<()> {
    check("gemv", "rows", x.rows(), y.rows())?;
    check("gemv", "x columns", weight.columns(), x.columns())?;
    check("gemv", "y columns", weight.rows(), y.columns())?;
    weight.check("gemv")?;
    let piece = (PIECE / x.columns().max(1)).max(1);
    let elements = x.rows() * weight.rows() * x.columns();
    if x.rows() == 1 {
        let x = x.row(0);
        device.for_each_chunk(y.row_mut(0), piece, elements, |index, y| {
            device.run(Rows { weight, first: index * piece, x, y });
        });
    } else {
        let y = y.share_rows();
        device.for_each(weight.rows().div_ceil(piece), elements, |index| {
            let first = index * piece;
            let count = piece.min(weight.rows() - first);
            // Every piece writes columns of its own.
            device.run(FewRows { weight, first, count, x, y: &y });
        });
    }
    Ok(())
}

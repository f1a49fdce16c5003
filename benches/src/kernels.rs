//! Kernels that are here only to be compared with.

use fermi_blas::gpu::{Argument, Gpu, MOST_BLOCKS, Runtime, Shape};
use fermi_blas::{Matrix, Result, View, ViewMut, gpu_module};

gpu_module!(empty: "kernels/empty.ptx" { empty = 0, read_all = 1 });
gpu_module!(gemm_tiled: "kernels/gemm_tiled.ptx" { gemm_tiled = 0 });
gpu_module!(gemv_q4: "kernels/gemv_q4.ptx" { gemv_q4 = 0 });
gpu_module!(naive_attention: "kernels/naive_attention.ptx" { naive_attention = 0 });

/// Threads of a block of these kernels.
const THREADS: u32 = 256;

/// Rows and columns of C that a block of the tiled product takes.
const TILE: usize = 96;

/// Rows of a group of threads of the 4-bit product.
const Q4_ROWS: usize = 4;

macro_rules! arguments {
    ($($value:expr),+ $(,)?) => { [$(Argument::from($value)),+] };
}

/// A kernel that does nothing.
///
/// # Errors
/// Whatever the device reports.
pub fn launch_empty<R: Runtime>(device: &Gpu<R>, buffer: &Matrix<Gpu<R>>) -> Result<()> {
    // SAFETY: the kernel neither reads nor writes.
    unsafe { device.launch(empty::empty, Shape::blocks(1, 32), &arguments![buffer.view().address()]) }
}

/// Reads a whole buffer of a multiple of four values.
///
/// # Errors
/// Whatever the device reports.
pub fn read_all<R: Runtime>(
    device: &Gpu<R>,
    buffer: &Matrix<Gpu<R>>,
    sums: &mut Matrix<Gpu<R>>,
) -> Result<()> {
    let quads = buffer.rows() * buffer.columns() / 4;
    let arguments = arguments![buffer.view().address(), sums.view_mut().address(), quads];
    // A few quads a thread: more threads than a card holds at once only queue.
    let shape = Shape::threads(quads / 8, THREADS);
    // SAFETY: the kernel reads inside the one buffer and writes at most the first value of the other.
    unsafe { device.launch(empty::read_all, shape, &arguments) }
}

/// C = A Bᵀ with micro-tiles of 6 x 6.
///
/// # Shapes
/// A `[m, k]`, B `[n, k]`, C `[m, n]`, none of them empty
///
/// # Errors
/// Whatever the device reports.
///
/// # Panics
/// When the sizes do not fit together.
pub fn gemm_tiled<R: Runtime>(
    device: &Gpu<R>,
    a: View<'_, Gpu<R>>,
    b: View<'_, Gpu<R>>,
    mut c: ViewMut<'_, Gpu<R>>,
) -> Result<()> {
    let (m, n, k) = (a.rows(), b.rows(), a.columns());
    assert!(b.columns() == k && c.rows() == m && c.columns() == n && m * n * k > 0, "{m} x {n} x {k}");
    let c_stride = c.row_stride();
    let (a_stride, b_stride) = (a.row_stride(), b.row_stride());
    let arguments = arguments![a.address(), b.address(), c.address(), m, n, k, a_stride, b_stride, c_stride];
    let shape = Shape::blocks(m.div_ceil(TILE) * n.div_ceil(TILE), THREADS);
    // SAFETY: the kernel's arguments; the sizes were checked, and c is exclusive.
    unsafe { device.launch(gemm_tiled::gemm_tiled, shape, &arguments) }
}

/// A weight in 4 bits with one scale for 64 neighbours.
#[derive(Debug)]
pub struct Q4<R: Runtime> {
    /// Two columns a byte, the first in the low half, each as value + 8, `[out, in / 2]`
    pub codes: Matrix<Gpu<R>, i8>,
    /// `[out, ceil(in / 64)]`
    pub scales: Matrix<Gpu<R>>,
}

/// y = x Wᵀ for one activation row and a weight in 4 bits.
///
/// # Errors
/// Whatever the device reports.
///
/// # Panics
/// When the sizes do not fit together.
pub fn gemv_q4<R: Runtime>(
    device: &Gpu<R>,
    weight: &Q4<R>,
    x: View<'_, Gpu<R>>,
    mut y: ViewMut<'_, Gpu<R>>,
) -> Result<()> {
    let (rows, columns) = (weight.codes.rows(), x.columns());
    let scale_stride = weight.scales.columns();
    assert!(x.rows() == 1 && y.rows() == 1 && y.columns() == rows && rows > 0, "one row to one row");
    assert!(
        columns == 2 * weight.codes.columns() && columns.div_ceil(64) == scale_stride,
        "{columns} columns"
    );
    // As many threads a row as the 8-bit product takes.
    let mut lanes = 32;
    while lanes < THREADS && (lanes as usize) * 16 < columns && rows * (lanes as usize) < (1 << 15) {
        lanes *= 2;
    }
    let (codes, scales) = (weight.codes.view().address(), weight.scales.view().address());
    let arguments =
        arguments![codes, scales, x.address(), y.address(), rows, columns, columns / 2, scale_stride, lanes];
    let shape = Shape::blocks(rows.div_ceil(Q4_ROWS * (THREADS / lanes) as usize), THREADS);
    // SAFETY: the kernel's arguments; the sizes were checked, and y is exclusive.
    unsafe { device.launch(gemv_q4::gemv_q4, shape, &arguments) }
}

/// What [`naive_attention`] reads and writes.
///
/// # Shapes
/// q `[T, H * Q]`, of whose Q columns a head the first D are the query; keys and values `[S, G * D]`, without gaps, at least
/// `history` + T rows; out `[T, H * D]` without gaps; scores at least [`naive_scores_len`]
#[derive(Debug)]
pub struct NaiveAttention<'a, R: Runtime> {
    /// Queries.
    pub q: View<'a, Gpu<R>>,
    /// Keys.
    pub keys: View<'a, Gpu<R>>,
    /// Values.
    pub values: View<'a, Gpu<R>>,
    /// The weighted sums of the values.
    pub out: ViewMut<'a, Gpu<R>>,
    /// Scratch.
    pub scores: ViewMut<'a, Gpu<R>>,
    /// Tokens before the first query.
    pub history: usize,
    /// Query heads H.
    pub heads: usize,
    /// Key and value heads G.
    pub groups: usize,
}

/// Blocks of the naive attention: each has scores of its own.
fn naive_blocks(tokens: usize, heads: usize) -> usize {
    (tokens * heads).min(MOST_BLOCKS).min(2_048)
}

/// Values of scratch that [`naive_attention`] needs.
pub fn naive_scores_len(tokens: usize, history: usize, heads: usize) -> usize {
    naive_blocks(tokens, heads) * (history + tokens)
}

/// Causal attention with a block a query and head.
///
/// # Errors
/// Whatever the device reports.
///
/// # Panics
/// When the sizes do not fit together.
pub fn naive_attention<R: Runtime>(device: &Gpu<R>, attention: NaiveAttention<'_, R>) -> Result<()> {
    let NaiveAttention { q, keys, values, mut out, mut scores, history, heads, groups } = attention;
    let (tokens, width, q_width) = (q.rows(), keys.columns() / groups, q.columns() / heads);
    let capacity = history + tokens;
    assert!(keys.rows() >= capacity && values.rows() >= capacity && keys.columns() == groups * width);
    assert!(out.rows() == tokens && out.columns() == heads * width && width <= THREADS as usize);
    assert!(scores.rows() * scores.columns() >= naive_scores_len(tokens, history, heads) && width <= q_width);
    let (q_stride, scale) = (q.row_stride(), 1.0 / (width as f32).sqrt());
    let arguments = arguments![
        q.address(),
        keys.address(),
        values.address(),
        out.address(),
        scores.address(),
        tokens,
        history,
        heads,
        groups,
        width,
        q_stride,
        q_width,
        scale
    ];
    let shape = Shape::blocks(naive_blocks(tokens, heads), THREADS);
    // SAFETY: the kernel's arguments; the sizes were checked, and what is written is exclusive.
    unsafe { device.launch(naive_attention::naive_attention, shape, &arguments) }
}

//! Operations allocate nothing of their own: all memory is the caller's.

use fermi_blas::testing::allocation::{CountingAllocator, count};
use fermi_blas::{
    Activation, Blas, Cpu, Gemm, GemmBatched, Matrix, Q8, Result, RotaryTable, RowOps, Weight, quantize,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

struct Pass {
    x: Matrix<Cpu>,
    y: Matrix<Cpu>,
    scores: Matrix<Cpu>,
    scratch: Matrix<Cpu>,
    row: Matrix<Cpu>,
    weight: Weight<Cpu>,
    positions: Matrix<Cpu, u32>,
    ids: Matrix<Cpu, u32>,
    table: RotaryTable<Cpu>,
}

impl Pass {
    fn new(device: &Cpu, tokens: usize, width: usize) -> Result<Self> {
        let values = fermi_blas::testing::uniform("weight", width * width);
        let (codes, scales) = quantize(&values, width);
        Ok(Self {
            x: Matrix::from_slice(device, tokens, width, &values[..tokens * width])?,
            y: Matrix::zeros(device, tokens, width)?,
            scores: Matrix::zeros(device, 4 * tokens, tokens)?,
            scratch: Matrix::zeros(device, 1, width * width)?,
            row: Matrix::zeros(device, 1, width)?,
            weight: Weight::Q8(Q8 {
                codes: Matrix::from_slice(device, width, width, &codes)?,
                scales: Matrix::from_slice(device, width, width.div_ceil(64), &scales)?,
            }),
            positions: Matrix::zeros(device, 1, tokens)?,
            ids: Matrix::zeros(device, 1, tokens)?,
            table: RotaryTable::new(device, 4, 64, 1e7)?,
        })
    }

    fn run(&mut self, device: &Cpu) -> Result<()> {
        let Self { x, y, scores, scratch, row, weight, positions, ids, table } = self;
        device.gather(weight.view(), positions.view(), y.view_mut())?;
        device.rms_norm(x.view(), row.view(), 1e-6, y.view_mut())?;
        device.layer_norm(x.view(), row.view(), row.view(), 1e-6, y.view_mut())?;
        weight.multiply(device, x.view(), y.view_mut(), scratch.view_mut())?;
        device.rms_norm_in_place(
            y.view_mut().heads(4)?,
            row.view().column_range(0..x.columns() / 4)?,
            1e-6,
        )?;
        device.rotary_in_place(y.view_mut().heads(4)?, positions.view(), table)?;
        let (q, k) = (x.view().heads(4)?, y.view().heads(4)?);
        device.gemm_batched(GemmBatched::new(q, k.t(), scores.view_mut().blocks(4)?)?)?;
        device.softmax_in_place(scores.view_mut(), 0.1)?;
        device.causal_softmax_in_place(scores.view_mut(), 4, positions.view(), 0.1)?;
        device.gated_rms_norm_in_place(y.view_mut(), x.view(), row.view(), 1e-6)?;
        device.activate_in_place(Activation::GeluErf, y.view_mut())?;
        device.gate_in_place(Activation::Silu, y.view_mut(), x.view())?;
        device.add_in_place(y.view_mut(), x.view())?;
        device.argmax(y.view(), ids.view_mut())?;
        let square = scratch.view().reshape(x.columns(), x.columns())?;
        device.gemm(Gemm::new(x.view(), square.t(), y.view_mut())?)
    }
}

// One test in this file: the allocator counts the whole process.
#[test]
fn operations_allocate_nothing() {
    for threads in [1, 3] {
        let device = Cpu::with_threads(threads).unwrap();
        for tokens in [1, 5, 100] {
            let mut pass = Pass::new(&device, tokens, 512).unwrap();
            let run = |pass: &mut Pass| device.install(|| count(|| pass.run(&device)));
            // The first run may allocate what threads keep.
            run(&mut pass).0.unwrap();
            let (result, allocations) = run(&mut pass);
            result.unwrap();
            assert_eq!(allocations.own, 0, "{threads} threads, {tokens} tokens: {allocations:?}");
            if tokens == 100 {
                assert!(allocations.library > 0, "the product library packs copies: {allocations:?}");
            }
        }
    }
}

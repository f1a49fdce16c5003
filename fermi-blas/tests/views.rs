//! Views: bounds are checked where they are built, parts share no element, offsets are 64 bits wide.

use fermi_blas::{Backend, Cpu, Error, Matrix};
use proptest::prelude::*;

#[test]
fn x7_offsets_beyond_two_to_the_31_reach_their_elements() {
    let device = Cpu::with_threads(1).unwrap();
    // the scores of 8 heads over 16384 tokens are 2^31 elements; bytes, so that the test fits into 2 GiB
    let (heads, tokens) = (8, 16384);
    let mut scores = Matrix::<Cpu, i8>::zeros(&device, heads * tokens + 1, tokens).unwrap();
    let last = heads * tokens;
    device.write(&vec![7; tokens], scores.row_range_mut(last..last + 1).unwrap()).unwrap();
    let view = scores.row_range(tokens..last + 1).unwrap();
    let entry = view.blocks(1).unwrap().entry(0).unwrap();
    let end = entry.row_range(last - tokens..last - tokens + 1).unwrap();
    assert_eq!(end.column_range(tokens - 1..tokens).unwrap().to_vec(&device).unwrap(), [7]);
    assert_eq!(scores.row_range(0..1).unwrap().to_vec(&device).unwrap(), vec![0; tokens]);
    assert_eq!(scores.row_range(last - 1..last).unwrap().to_vec(&device).unwrap(), vec![0; tokens]);
}

#[test]
fn views_outside_their_matrix_are_refused() {
    let device = Cpu::with_threads(1).unwrap();
    let mut matrix = Matrix::<Cpu>::zeros(&device, 4, 6).unwrap();
    #[allow(clippy::reversed_empty_ranges, reason = "such a range must be refused too")]
    for range in [3..5, 5..5, 3..2, usize::MAX..usize::MAX, 0..usize::MAX] {
        assert!(matches!(matrix.row_range(range.clone()), Err(Error::OutOfBounds { .. })), "{range:?}");
        assert!(matches!(matrix.row_range_mut(range.clone()), Err(Error::OutOfBounds { .. })));
    }
    assert!(matches!(matrix.view().column_range(6..7), Err(Error::OutOfBounds { .. })));
    assert!(matches!(matrix.view().reshape(5, 5), Err(Error::Shape { .. })));
    assert!(matches!(matrix.view().column_range(0..3).unwrap().reshape(3, 4), Err(Error::Shape { .. })));
    assert!(matches!(matrix.view().heads(4), Err(Error::Shape { .. })));
    assert!(matches!(matrix.view().heads(0), Err(Error::Shape { .. })));
    assert!(matches!(matrix.view().blocks(3), Err(Error::Shape { .. })));
    assert!(matches!(matrix.view_mut().split_rows_mut(5), Err(Error::OutOfBounds { .. })));
    assert!(matches!(matrix.view().heads(2).unwrap().entry(2), Err(Error::OutOfBounds { .. })));
    assert!(matrix.row_range(4..4).unwrap().to_vec(&device).unwrap().is_empty());
}

proptest! {
    /// Every part is written with a value of its own; then each element holds that of the one part that covers it.
    #[test]
    fn parts_share_no_element_and_leave_none_out(rows in 0usize..7, parts in 1usize..5, width in 0usize..6, cut in 0usize..7) {
        let device = Cpu::with_threads(1).unwrap();
        let columns = parts * width;
        let mut matrix = Matrix::<Cpu, u32>::zeros(&device, rows, columns).unwrap();
        let cut = cut.min(rows);
        let (head, tail) = matrix.view_mut().split_rows_mut(cut).unwrap();
        for (index, part) in [head, tail].into_iter().enumerate() {
            let part_rows = part.rows();
            let mut heads = part.heads(parts).unwrap();
            for entry in 0..parts {
                let values = vec![(index * parts + entry) as u32; part_rows * width];
                device.write(&values, heads.reborrow().entry(entry).unwrap()).unwrap();
            }
        }
        let expected: Vec<u32> = (0..rows * columns)
            .map(|at| (usize::from(at / columns >= cut) * parts + at % columns / width) as u32)
            .collect();
        prop_assert_eq!(matrix.to_vec(&device).unwrap(), expected);
    }

    /// A row range of a column range is the column range of the row range.
    #[test]
    fn ranges_commute(rows in 1usize..6, columns in 1usize..6, a in 0usize..6, b in 0usize..6, c in 0usize..6, d in 0usize..6) {
        let device = Cpu::with_threads(1).unwrap();
        let values: Vec<u32> = (0..rows * columns).map(|x| x as u32).collect();
        let matrix = Matrix::from_slice(&device, rows, columns, &values).unwrap();
        let range = |a: usize, b: usize, size: usize| a.min(b).min(size)..a.max(b).min(size);
        let (r, c) = (range(a, b, rows), range(c, d, columns));
        let one = matrix.view().row_range(r.clone()).unwrap().column_range(c.clone()).unwrap();
        let other = matrix.view().column_range(c.clone()).unwrap().row_range(r.clone()).unwrap();
        let expected: Vec<u32> = r.flat_map(|row| c.clone().map(move |column| (row, column)))
            .map(|(row, column)| (row * columns + column) as u32)
            .collect();
        prop_assert_eq!(one.to_vec(&device).unwrap(), &expected[..]);
        prop_assert_eq!(other.to_vec(&device).unwrap(), &expected[..]);
    }
}

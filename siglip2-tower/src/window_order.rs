//! The order in which the vectors of a window lie side by side.

use crate::Grid;

/// Appends the rows of a grid, from `first` on, window by window: windows in raster order, and so the vectors in each.
///
/// Gathered in this order, a window's vectors are contiguous, and the windows' order is the raster order of the reduced grid.
pub(crate) fn append(first: usize, grid: Grid, window: Grid, order: &mut Vec<u32>) {
    for top in (0..grid.rows).step_by(window.rows) {
        for left in (0..grid.columns).step_by(window.columns) {
            for row in top..top + window.rows {
                let start = first + row * grid.columns + left;
                order.extend((start..start + window.columns).map(|index| index as u32));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(first: usize, grid: [usize; 2], window: [usize; 2]) -> Vec<u32> {
        let mut order = Vec::new();
        append(first, grid.into(), window.into(), &mut order);
        order
    }

    #[test]
    fn windows_follow_in_raster_order() {
        assert_eq!(order(0, [2, 4], [2, 2]), [0, 1, 4, 5, 2, 3, 6, 7]);
        assert_eq!(order(100, [4, 2], [2, 2]), [100, 101, 102, 103, 104, 105, 106, 107]);
        assert_eq!(order(0, [2, 4], [1, 4]), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(order(0, [4, 2], [4, 1]), [0, 2, 4, 6, 1, 3, 5, 7]);
    }

    #[test]
    fn every_row_appears_once() {
        let mut rows = order(0, [8, 12], [2, 2]);
        rows.sort_unstable();
        assert!(rows.iter().copied().eq(0..96));
    }
}

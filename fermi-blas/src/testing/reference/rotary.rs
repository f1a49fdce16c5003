//! Rotary positions in float64.

/// Rotates the first `2 · half` columns of every row in half-split pairs, by the angles' cosines and sines at
/// `positions[row]`.
///
/// # Shapes
/// x `[rows, columns]`, cosines and sines `[positions, half]`
pub fn naive_rotary(
    x: &[f32],
    columns: usize,
    positions: &[u32],
    half: usize,
    (cosines, sines): (&[f32], &[f32]),
) -> Vec<f64> {
    let mut y: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
    for (row, &position) in y.chunks_mut(columns.max(1)).zip(positions) {
        for index in 0..half {
            let at = position as usize * half + index;
            let (cos, sin) = (f64::from(cosines[at]), f64::from(sines[at]));
            let (a, b) = (row[index], row[index + half]);
            (row[index], row[index + half]) = (a * cos - b * sin, b * cos + a * sin);
        }
    }
    y
}

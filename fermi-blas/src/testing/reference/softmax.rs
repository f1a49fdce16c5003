//! Softmax in float64.

/// Softmax of x · scale for every row of `columns` values.
pub fn naive_softmax(x: &[f32], columns: usize, scale: f64) -> Vec<f64> {
    x.chunks(columns.max(1)).flat_map(|row| softmax(row, scale)).collect()
}

/// The same over the first `positions[r / heads] + 1` values of row r; the others become 0.
pub fn naive_causal_softmax(
    x: &[f32],
    columns: usize,
    heads: usize,
    positions: &[u32],
    scale: f64,
) -> Vec<f64> {
    let rows = x.chunks(columns.max(1)).enumerate();
    let row = |(index, row): (usize, &[f32])| {
        let visible = (positions[index / heads] as usize + 1).min(row.len());
        let mut values = softmax(&row[..visible], scale);
        values.resize(row.len(), 0.0);
        values
    };
    rows.flat_map(row).collect()
}

fn softmax(row: &[f32], scale: f64) -> Vec<f64> {
    let scaled: Vec<f64> = row.iter().map(|x| f64::from(*x) * scale).collect();
    let largest = scaled.iter().fold(f64::NEG_INFINITY, |largest, x| largest.max(*x));
    let sum: f64 = scaled.iter().map(|x| (x - largest).exp()).sum();
    scaled.iter().map(|x| (x - largest).exp() / sum).collect()
}

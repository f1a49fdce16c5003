//! From ids and given embeddings to the first residual.

use fermi_blas::{View, ViewMut, Weight};
use gdn_scan::ScanBackend;

use crate::tensors::{Tensor, projection};
use crate::{Config, Input, Result};

/// The table: `embed_tokens.weight`, `[vocab, hidden]`.
pub(crate) fn tensor(config: &Config) -> Tensor {
    projection("embed_tokens.weight", config.vocab_size, config.hidden_size)
}

/// The embeddings of the tokens `start .. start + T` of an input: rows of the table for its ids, and the given rows at the
/// positions that they replace.
///
/// # Shapes
/// ids `[1, T]` on the device: scratch; hidden `[T, hidden]`
pub(crate) fn embed<B: ScanBackend>(
    device: &B,
    table: &Weight<B>,
    input: Input<'_, B>,
    start: usize,
    mut ids: ViewMut<'_, B, u32>,
    mut hidden: ViewMut<'_, B>,
) -> Result<()> {
    let _span = device.span("embedding");
    let end = start + hidden.rows();
    if let Some(given) = input.ids() {
        device.write(&given[start..end], ids.reborrow())?;
        device.gather(table.view(), ids.as_view(), hidden.reborrow())?;
    }
    match input {
        Input::Ids(_) => Ok(()),
        Input::Embeddings(rows) => Ok(device.copy(rows.row_range(start..end)?, hidden)?),
        Input::Mixed { positions, embeddings, .. } => {
            let first = positions.partition_point(|position| *position < start);
            let last = positions.partition_point(|position| *position < end);
            replace(device, &positions[first..last], start, embeddings.row_range(first..last)?, hidden)
        }
    }
}

/// Copies each run of consecutive positions in one go: an image is one run or a few.
fn replace<B: ScanBackend>(
    device: &B,
    positions: &[usize],
    start: usize,
    embeddings: View<'_, B>,
    mut hidden: ViewMut<'_, B>,
) -> Result<()> {
    let mut row = 0;
    for run in positions.chunk_by(|a, b| a + 1 == *b) {
        let source = embeddings.row_range(row..row + run.len())?;
        let target = run[0] - start;
        device.copy(source, hidden.reborrow().row_range(target..target + run.len())?)?;
        row += run.len();
    }
    Ok(())
}

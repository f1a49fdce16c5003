//! What goes into a backbone.

use fermi_blas::{Backend, View};

use crate::{Error, Result};

/// The tokens of a pass.
#[derive(Debug)]
pub enum Input<'a, B: Backend> {
    /// Token ids.
    Ids(&'a [u32]),
    /// Embeddings `[T, hidden]` on the device in place of ids.
    Embeddings(View<'a, B>),
    /// Token ids, some of which are replaced: row i of the embeddings stands at position `positions[i]` of the input.
    Mixed {
        /// One id a token. Those at replaced positions are not used but must be in the vocabulary.
        ids: &'a [u32],
        /// Positions within `ids`, ascending.
        positions: &'a [usize],
        /// One row a position, `[positions, hidden]`, on the device.
        embeddings: View<'a, B>,
    },
}

impl<B: Backend> Clone for Input<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for Input<'_, B> {}

impl<'a, B: Backend> Input<'a, B> {
    /// Number of tokens.
    pub fn len(&self) -> usize {
        match self {
            Self::Ids(ids) | Self::Mixed { ids, .. } => ids.len(),
            Self::Embeddings(rows) => rows.rows(),
        }
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ids, if there are any.
    pub(crate) fn ids(&self) -> Option<&'a [u32]> {
        match self {
            Self::Ids(ids) | Self::Mixed { ids, .. } => Some(ids),
            Self::Embeddings(_) => None,
        }
    }

    /// Everything that can be wrong with an input, found before anything is changed.
    pub(crate) fn check(&self, vocab_size: usize, hidden_size: usize) -> Result<()> {
        if self.is_empty() {
            return Err(Error::EmptyInput);
        }
        let mut ids = self.ids().unwrap_or_default().iter();
        if let Some(position) = ids.position(|id| *id as usize >= vocab_size) {
            let id = self.ids().unwrap_or_default()[position];
            return Err(Error::Vocabulary { id, position, vocab_size });
        }
        let width = |embeddings: &View<'_, B>| match embeddings.columns() {
            actual if actual == hidden_size => Ok(()),
            actual => Err(Error::Embeddings { axis: "width", expected: hidden_size, actual }),
        };
        match self {
            Self::Ids(_) => Ok(()),
            Self::Embeddings(rows) => width(rows),
            Self::Mixed { ids, positions, embeddings } => {
                width(embeddings)?;
                if embeddings.rows() != positions.len() {
                    let (expected, actual) = (positions.len(), embeddings.rows());
                    return Err(Error::Embeddings { axis: "rows", expected, actual });
                }
                let mut least = 0;
                for (index, &position) in positions.iter().enumerate() {
                    if position < least || position >= ids.len() {
                        return Err(Error::EmbeddingPosition { index, position, tokens: ids.len() });
                    }
                    least = position + 1;
                }
                Ok(())
            }
        }
    }
}

//! The tower: embeddings, encoder with the window merger inside it, norm, projector.

use std::sync::Arc;

use fermi_blas::{Checkpoint, Cpu, Matrix, Observer, ViewMut};

use crate::activations::Activations;
use crate::embeddings::Embeddings;
use crate::encoder::EncoderLayer;
use crate::layers::LayerNorm;
use crate::merger::MergerMlp;
use crate::positions::Positions;
use crate::slices::{self, Pass};
use crate::vit_merger::{VitMerger, WINDOW};
use crate::{Config, DownsampleMode, Grid, Options, Result, Slice, WindowBackend};

/// What a checkpoint holds, by its own names.
#[derive(Debug)]
struct Weights<B: WindowBackend> {
    embeddings: Embeddings<B>,
    layers: Vec<EncoderLayer<B>>,
    /// Absent in 4x mode.
    vit_merger: Option<VitMerger<B>>,
    post_layernorm: LayerNorm<B>,
    mlp: Vec<MergerMlp<B>>,
}

/// The vision tower on a device: pictures in, vectors of the language width out.
///
/// Weights are shared among the towers made by [`Tower::share`]; each has scratch of its own.
#[derive(Debug)]
pub struct Tower<B: WindowBackend = Cpu> {
    device: B,
    config: Config,
    options: Options,
    mode: DownsampleMode,
    positions: Positions,
    weights: Arc<Weights<B>>,
    activations: Activations<B>,
}

impl<B: WindowBackend> Tower<B> {
    /// Reads the tower's weights (as float32) and allocates the scratch of a pass.
    ///
    /// # Errors
    /// [`crate::Error::Blas`] when a tensor is missing or has another shape, or when memory runs out;
    /// [`crate::Error::InvalidOption`], [`crate::Error::PositionTable`], [`crate::Error::InsertLayer`].
    pub fn load(device: &B, checkpoint: &Checkpoint, config: &Config, options: Options) -> Result<Self> {
        options.check()?;
        let mode = options.mode(config);
        config.check(mode)?;
        let side = config.vision_config.positions_per_side();
        let positions = Positions::new(side, options.position_table.clone())?;
        let layer = |index| EncoderLayer::load(device, checkpoint, index, config);
        let round = |index| MergerMlp::load(device, checkpoint, index, config);
        let weights = Weights {
            embeddings: Embeddings::load(device, checkpoint, config)?,
            layers: (0..config.vision_config.num_hidden_layers).map(layer).collect::<Result<_>>()?,
            vit_merger: match mode {
                DownsampleMode::X16 => Some(VitMerger::load(device, checkpoint, config)?),
                DownsampleMode::X4 => None,
            },
            post_layernorm: LayerNorm::load(
                device,
                checkpoint,
                "model.vision_tower.post_layernorm",
                config.vision_config.hidden_size,
                config.vision_config.layer_norm_eps,
            )?,
            mlp: (0..config.merger_times).map(round).collect::<Result<_>>()?,
        };
        let activations = Activations::new(device, config, &options)?;
        Ok(Self {
            device: device.clone(),
            config: config.clone(),
            options,
            mode,
            positions,
            weights: Arc::new(weights),
            activations,
        })
    }

    /// Another tower with the same weights and scratch of its own, to run beside this one.
    ///
    /// # Errors
    /// [`crate::Error::Blas`] when memory runs out.
    pub fn share(&self) -> Result<Self> {
        Ok(Self {
            device: self.device.clone(),
            config: self.config.clone(),
            options: self.options.clone(),
            mode: self.mode,
            positions: self.positions.clone(),
            weights: Arc::clone(&self.weights),
            activations: Activations::new(&self.device, &self.config, &self.options)?,
        })
    }

    /// The config that it was loaded with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The mode that it runs in.
    pub fn mode(&self) -> DownsampleMode {
        self.mode
    }

    /// Width of the output.
    pub fn width(&self) -> usize {
        self.config.text_hidden_size
    }

    /// Output vectors of these slices together.
    ///
    /// # Errors
    /// [`crate::Error::Grid`], [`crate::Error::SliceTooLarge`], [`crate::Error::PixelValues`].
    pub fn tokens(&self, slices: &[Slice<'_>]) -> Result<usize> {
        slices::check(slices, &self.config, self.mode, self.options.max_patches)?;
        Ok(slices.iter().map(|slice| self.config.tokens(slice.grid, self.mode)).sum())
    }

    /// The embeddings of some slices, in a new matrix; see [`Tower::forward`].
    ///
    /// # Errors
    /// As [`Tower::forward`].
    pub fn encode(&mut self, slices: &[Slice<'_>]) -> Result<Matrix<B>> {
        let mut output = Matrix::zeros(&self.device, self.tokens(slices)?, self.width())?;
        self.forward(slices, &mut (), output.view_mut())?;
        Ok(output)
    }

    /// Writes the embeddings of some slices into `output`, slice after slice in the order given.
    ///
    /// Slices run together in passes of at most `max_patches` patches; none attends to another. `observer` sees every
    /// stage of every pass: `embeddings`, `encoder.layers.K`, `vit_merger`, `post_layernorm`, `merger.mlp.K` for all
    /// rounds of the projector but the last, `merger`. Nothing is allocated.
    ///
    /// # Shapes
    /// output `[tokens, language width]`, see [`Tower::tokens`]
    ///
    /// # Errors
    /// [`crate::Error::Grid`], [`crate::Error::SliceTooLarge`] and [`crate::Error::PixelValues`] before anything runs;
    /// [`crate::Error::Blas`] when `output` has another shape, or with the observer's error.
    pub fn forward(
        &mut self,
        slices: &[Slice<'_>],
        observer: &mut impl Observer<B>,
        mut output: ViewMut<'_, B>,
    ) -> Result<()> {
        let tokens = self.tokens(slices)?;
        let sizes = [("rows", tokens, output.rows()), ("columns", self.width(), output.columns())];
        for (axis, expected, actual) in sizes {
            if expected != actual {
                let operation = "Tower::forward";
                return Err(fermi_blas::Error::Shape { operation, axis, expected, actual }.into());
            }
        }
        let (mut rest, mut start) = (slices, 0);
        while !rest.is_empty() {
            let (group, others) = rest.split_at(slices::group(rest, self.options.max_patches).max(1));
            let tokens: usize = group.iter().map(|slice| self.config.tokens(slice.grid, self.mode)).sum();
            let part = output.reborrow().row_range(start..start + tokens)?;
            let device = self.device.clone();
            device.run_pass(|| self.forward_pass(Pass::new(group), observer, part))?;
            (rest, start) = (others, start + tokens);
        }
        Ok(())
    }

    /// One pass over slices that fit into it together.
    fn forward_pass(
        &mut self,
        mut pass: Pass<'_>,
        observer: &mut impl Observer<B>,
        mut output: ViewMut<'_, B>,
    ) -> Result<()> {
        let Self { device, config, weights, activations, positions, .. } = self;
        let kernel: Grid = config.merge_kernel_size.into();
        let merges = weights.vit_merger.iter().map(|_| WINDOW);
        let merges = merges.chain(weights.mlp.iter().map(|_| kernel));
        activations.indices.upload(device, pass, positions, merges)?;
        weights.embeddings.forward(device, pass, activations)?; // [T, D]
        observer.stage(format_args!("embeddings"), activations.hidden.row_range(0..pass.rows())?)?;
        for (index, layer) in weights.layers.iter().enumerate() {
            layer.forward(device, pass, activations)?; // [T, D]
            let hidden = activations.hidden.row_range(0..pass.rows())?;
            observer.stage(format_args!("encoder.layers.{index}"), hidden)?;
            if let Some(merger) = weights.vit_merger.as_ref().filter(|_| index == config.insert_layer_id) {
                merger.forward(device, pass, activations)?; // [T / 4, D]
                pass = pass.reduced(WINDOW);
                observer.stage(format_args!("vit_merger"), activations.hidden.row_range(0..pass.rows())?)?;
            }
        }

        let Activations { hidden, normed, .. } = activations;
        let mut normed = normed.row_range_mut(0..pass.rows())?; // [M, D]
        weights.post_layernorm.forward(device, hidden.row_range(0..pass.rows())?, normed.reborrow())?;
        observer.stage(format_args!("post_layernorm"), normed.as_view())?;

        let first = weights.vit_merger.iter().len();
        for (round, mlp) in weights.mlp.iter().enumerate() {
            let Activations { hidden, normed, windows, indices, .. } = activations;
            let rows = 0..pass.rows();
            let source = if round == 0 { normed } else { hidden }.row_range(rows.clone())?; // [M, D]
            indices.gather_windows(device, first + round, source, windows.row_range_mut(rows)?)?;
            pass = pass.reduced(kernel);
            if round + 1 < weights.mlp.len() {
                mlp.forward(device, pass.rows(), None, activations)?; // [M / 4, D]
                let hidden = activations.hidden.row_range(0..pass.rows())?;
                observer.stage(format_args!("merger.mlp.{round}"), hidden)?;
            } else {
                mlp.forward(device, pass.rows(), Some(output.reborrow()), activations)?; // [M / 4, language width]
            }
        }
        Ok(observer.stage(format_args!("merger"), output.as_view())?)
    }
}

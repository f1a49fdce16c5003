//! The tensors that a checkpoint of a config holds.

use super::{Config, DownsampleMode, VisionConfig};

/// Names and shapes of tensors, collected part by part.
struct Tensors(Vec<(String, Vec<usize>)>);

impl Tensors {
    fn push(&mut self, name: impl Into<String>, shape: impl Into<Vec<usize>>) {
        self.0.push((name.into(), shape.into()));
    }

    fn norm(&mut self, name: &str, width: usize) {
        self.push(format!("{name}.weight"), [width]);
        self.push(format!("{name}.bias"), [width]);
    }

    fn linear(&mut self, name: &str, outputs: usize, inputs: usize) {
        self.push(format!("{name}.weight"), [outputs, inputs]);
        self.push(format!("{name}.bias"), [outputs]);
    }

    fn attention(&mut self, name: &str, width: usize) {
        for projection in ["k_proj", "v_proj", "q_proj", "out_proj"] {
            self.linear(&format!("{name}.self_attn.{projection}"), width, width);
        }
    }
}

impl Config {
    /// Name and shape of every tensor of the tower in a checkpoint, the projector's included.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let VisionConfig { hidden_size, intermediate_size, num_channels, patch_size, .. } =
            self.vision_config;
        let mut tensors = Tensors(Vec::new());
        let side = self.vision_config.positions_per_side();
        let embeddings = "model.vision_tower.embeddings";
        tensors.push(
            format!("{embeddings}.patch_embedding.weight"),
            [hidden_size, num_channels, patch_size, patch_size],
        );
        tensors.push(format!("{embeddings}.patch_embedding.bias"), [hidden_size]);
        tensors.push(format!("{embeddings}.position_embedding.weight"), [side * side, hidden_size]);
        for layer in 0..self.vision_config.num_hidden_layers {
            let layer = format!("model.vision_tower.encoder.layers.{layer}");
            tensors.norm(&format!("{layer}.layer_norm1"), hidden_size);
            tensors.attention(&layer, hidden_size);
            tensors.norm(&format!("{layer}.layer_norm2"), hidden_size);
            tensors.linear(&format!("{layer}.mlp.fc1"), intermediate_size, hidden_size);
            tensors.linear(&format!("{layer}.mlp.fc2"), hidden_size, intermediate_size);
        }
        tensors.norm("model.vision_tower.post_layernorm", hidden_size);
        let merger = "model.vision_tower.vit_merger";
        tensors.attention(merger, hidden_size);
        tensors.norm(&format!("{merger}.layer_norm1"), hidden_size);
        tensors.norm(&format!("{merger}.pre_norm"), 4 * hidden_size);
        tensors.linear(&format!("{merger}.linear_1"), 4 * intermediate_size, 4 * hidden_size);
        tensors.linear(&format!("{merger}.linear_2"), hidden_size, 4 * intermediate_size);
        for round in 0..self.merger_times {
            let mlp = format!("model.merger.mlp.{round}");
            tensors.norm(&format!("{mlp}.pre_norm"), 4 * hidden_size);
            tensors.linear(&format!("{mlp}.linear_1"), 4 * hidden_size, 4 * hidden_size);
            tensors.linear(&format!("{mlp}.linear_2"), self.round_width(round), 4 * hidden_size);
        }
        tensors.0
    }

    /// float32 values of the tensors that a mode reads: 4x has no window merger.
    pub(crate) fn weight_values(&self, mode: DownsampleMode) -> usize {
        let read = |name: &str| mode == DownsampleMode::X16 || !name.contains(".vit_merger.");
        let tensors = self.tensors();
        tensors.iter().filter(|(name, _)| read(name)).map(|(_, shape)| shape.iter().product::<usize>()).sum()
    }

    /// Output width of a round of the projector: only the last goes to the language width.
    pub(crate) fn round_width(&self, round: usize) -> usize {
        if round + 1 == self.merger_times { self.text_hidden_size } else { self.vision_config.hidden_size }
    }
}

//! What a tower will hold.

use fermi_blas::MemoryPlan;

use crate::activations::Shapes;
use crate::{Config, Options, Result};

impl Config {
    /// Bytes that [`crate::Tower::load`] will allocate on the device, told from the config alone.
    ///
    /// # Errors
    /// [`crate::Error::InvalidOption`], [`crate::Error::InvalidKey`] and its like for a config changed by hand.
    pub fn memory_plan(&self, options: &Options) -> Result<MemoryPlan> {
        options.check()?;
        let mode = options.mode(self);
        self.check(mode)?;
        let scratch = Shapes::new(self, options).bytes();
        Ok(MemoryPlan { weights: 4 * self.weight_values(mode), caches: 0, scratch })
    }
}

//! Reading tensors onto a device.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::PoisonError;

use half::{bf16, f16};
use safetensors::Dtype;

use super::{Checkpoint, TensorInfo};
use crate::weight::quantize_row;
use crate::{Backend, Blas, Error, Matrix, Precision, Q8, Q8_GROUP, Result, Weight};

/// Bytes of a file that are read at once.
const PIECE: usize = 4 << 20;

impl Checkpoint {
    /// A float tensor's values as float32 on the host.
    ///
    /// # Errors
    /// [`Error::MissingTensor`], [`Error::TensorShape`], [`Error::TensorType`], [`Error::Io`].
    pub fn load_vec(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let info = self.expect(name, shape)?;
        let mut values = Vec::with_capacity(shape.iter().product());
        self.for_each_piece(name, info, 1, |_, piece| {
            values.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(values)
    }

    /// A float tensor as a float32 matrix: the first axis becomes the rows, the others the columns; a vector becomes one
    /// row.
    ///
    /// # Errors
    /// [`Error::MissingTensor`], [`Error::TensorShape`], [`Error::TensorType`], [`Error::Io`], [`Error::OutOfMemory`].
    pub fn load_matrix<B: Backend>(&self, device: &B, name: &str, shape: &[usize]) -> Result<Matrix<B>> {
        let info = self.expect(name, shape)?;
        let (rows, columns) = match shape {
            [] => (1, 1),
            [columns] => (1, *columns),
            [rows, rest @ ..] => (*rows, rest.iter().product()),
        };
        let mut matrix = Matrix::zeros(device, rows, columns)?;
        self.for_each_piece(name, info, columns, |row, values| {
            let end = row + values.len() / columns;
            device.write(values, matrix.row_range_mut(row..end)?)
        })?;
        Ok(matrix)
    }

    /// A linear layer's weight `[out, in]` in the precision asked for.
    ///
    /// A weight stored in 8 bits (`name` as int8, `name.scale` as float32) stays so for [`Precision::Q8`] and is expanded
    /// for the others.
    ///
    /// # Errors
    /// [`Error::MissingTensor`], [`Error::TensorShape`], [`Error::TensorType`], [`Error::Io`], [`Error::OutOfMemory`].
    pub fn load_weight<B: Blas>(
        &self,
        device: &B,
        name: &str,
        shape: [usize; 2],
        precision: Precision,
    ) -> Result<Weight<B>> {
        let info = self.expect(name, &shape)?;
        let [rows, columns] = shape;
        if info.dtype == Dtype::I8 {
            let stored = self.load_q8(device, name, shape, info)?;
            if precision == Precision::Q8 {
                return Ok(Weight::Q8(stored));
            }
            let mut values = Matrix::zeros(device, rows, columns)?;
            device.dequantize(Weight::Q8(stored).view(), values.view_mut())?;
            return Ok(Weight::F32(values));
        }
        match precision {
            Precision::F32 => Ok(Weight::F32(self.load_matrix(device, name, &shape)?)),
            Precision::Bf16 => {
                let mut matrix = Matrix::zeros(device, rows, columns)?;
                self.for_each_piece(name, info, columns, |row, values| {
                    let values: Vec<bf16> = values.iter().map(|x| bf16::from_f32(*x)).collect();
                    device.write(&values, matrix.row_range_mut(row..row + values.len() / columns)?)
                })?;
                Ok(Weight::Bf16(matrix))
            }
            Precision::Q8 => {
                let mut weight = Q8::zeros(device, rows, columns)?;
                let groups = columns.div_ceil(Q8_GROUP);
                self.for_each_piece(name, info, columns, |row, values| {
                    let count = values.len() / columns;
                    let (mut codes, mut scales) = (vec![0; values.len()], vec![0.0; count * groups]);
                    for index in 0..count {
                        let codes = &mut codes[index * columns..][..columns];
                        quantize_row(
                            &values[index * columns..][..columns],
                            codes,
                            &mut scales[index * groups..][..groups],
                        );
                    }
                    device.write(&codes, weight.codes.row_range_mut(row..row + count)?)?;
                    device.write(&scales, weight.scales.row_range_mut(row..row + count)?)
                })?;
                Ok(Weight::Q8(weight))
            }
        }
    }

    fn load_q8<B: Blas>(
        &self,
        device: &B,
        name: &str,
        shape: [usize; 2],
        info: &TensorInfo,
    ) -> Result<Q8<B>> {
        let [rows, columns] = shape;
        let mut codes = Matrix::zeros(device, rows, columns)?;
        self.for_each_bytes(info, columns, |start, bytes| {
            let row = start / columns.max(1);
            let values: &[i8] = bytemuck::cast_slice(bytes);
            device.write(values, codes.row_range_mut(row..row + values.len() / columns.max(1))?)
        })?;
        let scales =
            self.load_matrix(device, &format!("{name}.scale"), &[rows, columns.div_ceil(Q8_GROUP)])?;
        Ok(Q8 { codes, scales })
    }

    /// Hands on a tensor's values as float32, in pieces of whole rows of `columns` values, with the first row's index.
    fn for_each_piece(
        &self,
        name: &str,
        info: &TensorInfo,
        columns: usize,
        mut piece: impl FnMut(usize, &[f32]) -> Result<()>,
    ) -> Result<()> {
        let width = match info.dtype {
            Dtype::F32 => 4,
            Dtype::F16 | Dtype::BF16 => 2,
            dtype => {
                let path = self.files[info.file].clone();
                return Err(Error::TensorType { path, tensor: name.to_owned(), dtype: format!("{dtype:?}") });
            }
        };
        let mut values = Vec::new();
        self.for_each_bytes(info, columns * width, |start, bytes| {
            values.clear();
            match info.dtype {
                Dtype::F32 => {
                    values.extend(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])))
                }
                Dtype::F16 => {
                    values.extend(bytes.chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32()));
                }
                _ => values.extend(bytes.chunks_exact(2).map(|b| bf16::from_le_bytes([b[0], b[1]]).to_f32())),
            }
            piece(start / (columns * width), &values)
        })
    }

    /// Hands on a tensor's bytes in pieces that are whole multiples of `unit`, with the first byte's index.
    fn for_each_bytes(
        &self,
        info: &TensorInfo,
        unit: usize,
        mut piece: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let path = &self.files[info.file];
        let io = |source| Error::Io { path: path.clone(), source };
        let mut file = File::open(path).map_err(io)?;
        file.seek(SeekFrom::Start(info.start)).map_err(io)?;
        let step = (PIECE / unit.max(1)).max(1) * unit.max(1);
        let mut buffer = vec![0; step.min(info.bytes)];
        let mut start = 0;
        while start < info.bytes {
            let bytes = &mut buffer[..step.min(info.bytes - start)];
            file.read_exact(bytes).map_err(io)?;
            piece(start, bytes)?;
            start += bytes.len();
            self.advance(bytes.len());
        }
        Ok(())
    }

    fn advance(&self, bytes: usize) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.bytes += bytes as u64;
        if let Some(progress) = &self.progress {
            progress(seen.bytes, self.tensors.values().map(|info| info.bytes as u64).sum());
        }
    }
}

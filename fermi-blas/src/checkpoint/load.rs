//! Reading tensors onto a device.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::PoisonError;

use half::bf16;
use rayon::prelude::*;
use safetensors::Dtype;

use super::convert::{self, Values};
use super::write::scale_name;
use super::{Checkpoint, Q8_FORMAT_VERSION, TensorInfo};
use crate::cpu::quantize_row;
use crate::{Backend, Blas, Error, Matrix, Precision, Q8, Q8_GROUP, Result, Weight};

/// Bytes of a file that are read at once.
const PIECE: usize = 4 << 20;

impl Checkpoint {
    /// A tensor's values as float32 on the host; an 8-bit weight is expanded.
    ///
    /// # Errors
    /// [`Error::MissingTensor`], [`Error::TensorShape`], [`Error::TensorType`], [`Error::Q8Format`], [`Error::Io`].
    pub fn load_vec(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let info = self.expect(name, shape)?;
        let mut values = Vec::with_capacity(shape.iter().product());
        self.for_each_piece(name, info, matrix_shape(shape).1, |_, piece| {
            values.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(values)
    }

    /// Hands on a tensor's values as float32 in pieces of whole rows (its first axis; a vector is one row), each with the index
    /// of its first row: for tensors that need not be in memory as a whole. An 8-bit weight is expanded.
    ///
    /// # Errors
    /// As [`Checkpoint::load_vec`], and whatever `piece` fails with.
    pub fn read_rows(
        &self,
        name: &str,
        shape: &[usize],
        piece: impl FnMut(usize, &[f32]) -> Result<()>,
    ) -> Result<()> {
        let info = self.expect(name, shape)?;
        self.for_each_piece(name, info, matrix_shape(shape).1, piece)
    }

    /// A tensor as a float32 matrix: the first axis becomes the rows, the others the columns; a vector becomes one
    /// row. An 8-bit weight is expanded.
    ///
    /// # Errors
    /// [`Error::MissingTensor`], [`Error::TensorShape`], [`Error::TensorType`], [`Error::Q8Format`], [`Error::Io`],
    /// [`Error::OutOfMemory`].
    pub fn load_matrix<B: Backend>(&self, device: &B, name: &str, shape: &[usize]) -> Result<Matrix<B>> {
        let info = self.expect(name, shape)?;
        let (rows, columns) = matrix_shape(shape);
        let mut matrix = Matrix::zeros(device, rows, columns)?;
        self.for_each_piece(name, info, columns, |row, values| {
            let end = row + values.len() / columns;
            device.write(values, matrix.row_range_mut(row..end)?)
        })?;
        Ok(matrix)
    }

    /// A linear layer's weight `[out, in]` in the precision asked for, whatever it is stored in; the pool that this is
    /// called on (or the global one) shares the conversion.
    ///
    /// A weight stored in 8 bits (`name` as int8, `name.scale` as float32) is taken as it is for [`Precision::Q8`], and
    /// expanded (and rounded again for [`Precision::Bf16`]) for the others.
    ///
    /// # Errors
    /// [`Error::MissingTensor`], [`Error::TensorShape`], [`Error::TensorType`], [`Error::Q8Format`], [`Error::Io`],
    /// [`Error::OutOfMemory`].
    pub fn load_weight<B: Blas>(
        &self,
        device: &B,
        name: &str,
        shape: [usize; 2],
        precision: Precision,
    ) -> Result<Weight<B>> {
        let info = self.expect(name, &shape)?;
        match precision {
            Precision::F32 => Ok(Weight::F32(self.load_matrix(device, name, &shape)?)),
            Precision::Bf16 => self.load_bf16(device, name, shape, info).map(Weight::Bf16),
            Precision::Q8 if info.dtype == Dtype::I8 => {
                self.load_codes(device, name, shape, info).map(Weight::Q8)
            }
            Precision::Q8 => self.load_quantized(device, name, shape, info).map(Weight::Q8),
        }
    }

    fn load_bf16<B: Blas>(
        &self,
        device: &B,
        name: &str,
        [rows, columns]: [usize; 2],
        info: &TensorInfo,
    ) -> Result<Matrix<B, bf16>> {
        let mut matrix = Matrix::zeros(device, rows, columns)?;
        let mut narrow = Vec::new();
        self.for_each_piece(name, info, columns, |row, values| {
            narrow.resize(values.len(), bf16::ZERO);
            convert::share(&mut narrow, values, |narrow, value| *narrow = bf16::from_f32(*value));
            device.write(&narrow, matrix.row_range_mut(row..row + values.len() / columns)?)
        })?;
        Ok(matrix)
    }

    /// Rounds float values to 8 bits as they are read.
    fn load_quantized<B: Blas>(
        &self,
        device: &B,
        name: &str,
        [rows, columns]: [usize; 2],
        info: &TensorInfo,
    ) -> Result<Q8<B>> {
        let mut weight = Q8::zeros(device, rows, columns)?;
        let groups = columns.div_ceil(Q8_GROUP);
        let (mut codes, mut scales) = (Vec::new(), Vec::new());
        self.for_each_piece(name, info, columns, |row, values| {
            let count = values.len() / columns;
            codes.resize(values.len(), 0);
            scales.resize(count * groups, 0.0);
            let sources = values.par_chunks(columns);
            let targets = codes.par_chunks_mut(columns).zip(scales.par_chunks_mut(groups));
            let rows = sources.zip(targets).with_min_len(convert::SHARE.div_ceil(columns));
            rows.for_each(|(values, (codes, scales))| quantize_row(values, codes, scales));
            device.write(&codes, weight.codes.row_range_mut(row..row + count)?)?;
            device.write(&scales, weight.scales.row_range_mut(row..row + count)?)
        })?;
        Ok(weight)
    }

    /// Takes an 8-bit weight as it is stored.
    fn load_codes<B: Blas>(
        &self,
        device: &B,
        name: &str,
        [rows, columns]: [usize; 2],
        info: &TensorInfo,
    ) -> Result<Q8<B>> {
        self.check_q8_format(name, info)?;
        let mut codes = Matrix::zeros(device, rows, columns)?;
        self.for_each_bytes(info, columns, |start, bytes| {
            let row = start / columns;
            device.write(bytemuck::cast_slice(bytes), codes.row_range_mut(row..row + bytes.len() / columns)?)
        })?;
        let scales = self.load_matrix(device, &scale_name(name), &[rows, columns.div_ceil(Q8_GROUP)])?;
        Ok(Q8 { codes, scales })
    }

    fn check_q8_format(&self, name: &str, info: &TensorInfo) -> Result<()> {
        let version = &self.q8_formats[info.file];
        if version.as_deref() == Some(Q8_FORMAT_VERSION) {
            return Ok(());
        }
        Err(Error::Q8Format {
            path: self.files[info.file].clone(),
            tensor: name.to_owned(),
            version: version.clone(),
            known: Q8_FORMAT_VERSION,
        })
    }

    /// How a tensor's bytes become float32.
    fn values(&self, name: &str, info: &TensorInfo) -> Result<Values> {
        match (info.dtype, &info.shape[..]) {
            (Dtype::F32, _) => Ok(Values::F32),
            (Dtype::F16, _) => Ok(Values::F16),
            (Dtype::BF16, _) => Ok(Values::Bf16),
            (Dtype::I8, &[rows, columns]) => {
                self.check_q8_format(name, info)?;
                let scales = self.load_vec(&scale_name(name), &[rows, columns.div_ceil(Q8_GROUP)])?;
                Ok(Values::Q8 { scales, columns })
            }
            (dtype, _) => {
                let (path, dtype) = (self.files[info.file].clone(), format!("{dtype:?}"));
                Err(Error::TensorType { path, tensor: name.to_owned(), dtype })
            }
        }
    }

    /// Hands on a tensor's values as float32, in pieces of whole rows of `columns` values, with the first row's index.
    fn for_each_piece(
        &self,
        name: &str,
        info: &TensorInfo,
        columns: usize,
        mut piece: impl FnMut(usize, &[f32]) -> Result<()>,
    ) -> Result<()> {
        let kind = self.values(name, info)?;
        let row_bytes = columns * kind.width();
        let mut values = Vec::new();
        self.for_each_bytes(info, row_bytes, |start, bytes| {
            let row = start / row_bytes;
            values.resize(bytes.len() / kind.width(), 0.0);
            kind.widen(row, bytes, &mut values);
            piece(row, &values)
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

/// A shape as rows and columns.
fn matrix_shape(shape: &[usize]) -> (usize, usize) {
    match shape {
        [] => (1, 1),
        [columns] => (1, *columns),
        [rows, rest @ ..] => (*rows, rest.iter().product()),
    }
}

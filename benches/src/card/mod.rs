//! What the questions to a GPU share: the card, its ceilings, medians of event times, Markdown.

mod date;

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use fermi_blas::{Backend, Cuda, DeviceInfo, Matrix};

pub use date::today;

/// What a bench ends with.
pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Timed repetitions of everything that takes less than a second.
pub const REPETITIONS: usize = 20;

/// Bytes beyond the second-level cache of any card: a weight that decode reads comes from memory.
pub const BEYOND_CACHE: usize = 256 << 20;

/// Prints a line of Markdown.
#[allow(clippy::print_stdout, reason = "a program's output")]
pub fn line(text: impl Display) {
    println!("{text}");
}

/// Prints a row of a table.
pub fn row(cells: &[String]) {
    line(format_args!("| {} |", cells.join(" | ")));
}

/// Prints a table's head.
pub fn head(cells: &[&str]) {
    line(format_args!("\n| {} |\n|{}", cells.join(" | "), "---|".repeat(cells.len())));
}

/// Opens the first card and prints what was asked and where.
///
/// # Errors
/// When there is no card.
pub fn open(title: &str) -> Outcome<Cuda> {
    let device = Cuda::new(0)?;
    let DeviceInfo { name, capability, multiprocessors, clock_khz, driver_version, .. } = device.info();
    line(format_args!("# {title}\n"));
    line(format_args!(
        "{}. {name}, compute capability {}.{}, {multiprocessors} multiprocessors at up to {:.3} GHz; driver for CUDA {}.{}; \
         cuBLAS {}. Medians of event times.",
        today(),
        capability.0,
        capability.1,
        f64::from(*clock_khz) / 1e6,
        driver_version / 1000,
        driver_version % 1000 / 10,
        device.cublas_version(),
    ));
    Ok(device)
}

/// Float32 operations a second that the card could do: lanes of all multiprocessors, two operations a clock each.
pub fn peak_flops(info: &DeviceInfo) -> f64 {
    let lanes = match info.capability {
        (2, 0) => 32,
        (2, _) => 48,
        (3, _) => 192,
        (6, 0) | (7, _) | (8, 0) => 64,
        _ => 128,
    };
    2.0 * f64::from(lanes) * f64::from(info.multiprocessors) * f64::from(info.clock_khz) * 1e3
}

/// Seconds of one call of `work`: `calls` of them between two events, of which the median of `repetitions` is taken after two that
/// are not counted.
///
/// # Errors
/// That of `work`.
pub fn seconds<E>(
    device: &Cuda,
    repetitions: usize,
    calls: usize,
    mut work: impl FnMut(usize) -> Result<(), E>,
) -> Outcome<f64>
where
    E: From<fermi_blas::Error> + std::error::Error + 'static,
{
    let mut times = Vec::with_capacity(repetitions);
    for repetition in 0..repetitions + 2 {
        let time: Duration = device.time(|| (0..calls).try_for_each(&mut work))?;
        if repetition >= 2 {
            times.push(time.as_secs_f64() / calls as f64);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// Bytes a second that a copy on the card moves, reading and writing counted.
///
/// # Errors
/// Whatever the device reports.
pub fn copy_bandwidth(device: &Cuda) -> Outcome<f64> {
    let (rows, columns) = (1 << 10, 1 << 18);
    let source = Matrix::<Cuda>::zeros(device, rows, columns)?;
    let mut target = Matrix::zeros(device, rows, columns)?;
    let time = seconds(device, REPETITIONS, 1, |_| device.copy(source.view(), target.view_mut()))?;
    Ok(2.0 * (4 * rows * columns) as f64 / time)
}

/// Bytes a second that a kernel reads which does nothing else.
///
/// # Errors
/// Whatever the device reports.
pub fn read_bandwidth(device: &Cuda) -> Outcome<f64> {
    let (rows, columns) = (1 << 10, 1 << 18);
    let source = Matrix::zeros(device, rows, columns)?;
    let mut sums = Matrix::zeros(device, 1, 1)?;
    let time = seconds(device, REPETITIONS, 1, |_| crate::kernels::read_all(device, &source, &mut sums))?;
    Ok((4 * rows * columns) as f64 / time)
}

/// The checkpoint's folder: the first argument that is no option, or the variable MODEL.
///
/// # Errors
/// When there is neither.
pub fn model_folder() -> Outcome<PathBuf> {
    let argument = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let folder = argument.map(PathBuf::from).or_else(|| std::env::var_os("MODEL").map(PathBuf::from));
    folder.ok_or_else(|| {
        "name a full-size checkpoint, as an argument or by MODEL: the example make_checkpoint makes a random one".into()
    })
}

//! How many tokens a second does the full-size backbone read (prefill of 512) and write (decode) on two threads, in 8 bits?
//!
//! ```sh
//! cargo bench -p benches --bench backbone
//! ```
//!
//! Random weights of the published sizes (752 M values, made once in the build folder, in bfloat16). Printed first: what
//! loading took and the most memory that the process ever held beside what stays resident, and a profile of either pass by
//! component.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fermi_blas::{Checkpoint, CheckpointWriter, Cpu, Dtype, Precision, Sharding, TensorSpec, synthetic};
use qwen3_hybrid::{Backbone, Config, Input, ModelTensor, Options};

const SEED: u64 = 1;
const PREFILL: usize = 512;
/// Values made at a time, so that making the checkpoint does not show in the process's peak.
const PIECE: usize = 1 << 22;

/// The public checkpoint's config.
const CONFIG: &str = include_str!("../qwen3-hybrid/tests/data/full.json");

/// The random checkpoint, in bfloat16 as the published one, made unless it is there.
fn checkpoint(config: &Config) -> fermi_blas::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("full-backbone-{SEED}"));
    if folder.join("model.safetensors").exists() {
        return Ok(folder);
    }
    let tensors = config.tensors();
    let specs = tensors.iter().map(|tensor| TensorSpec::new(&tensor.name, Dtype::BF16, &tensor.shape));
    let mut writer = CheckpointWriter::create(&folder, specs, &BTreeMap::new(), Sharding::default())?;
    let mut piece = Vec::new();
    for ModelTensor { name, shape, .. } in &tensors {
        let (sequence, count) = (synthetic::Sequence::new(name, SEED), shape.iter().product::<usize>());
        let distribution = synthetic::Distribution::of_weight(name, shape);
        for start in (0..count).step_by(PIECE) {
            piece.resize(PIECE.min(count - start), 0.0);
            sequence.fill(distribution, start, &mut piece);
            writer.append(name, &piece)?;
        }
    }
    writer.finish()?;
    Ok(folder)
}

/// Memory of this process in bytes, where the system tells: `VmHWM` the most ever, `VmRSS` now.
fn memory(which: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(which))?;
    line.trim_start_matches(':')
        .trim()
        .strip_suffix(" kB")?
        .parse::<u64>()
        .ok()
        .map(|kilobytes| kilobytes * 1024)
}

/// Processor time that this process took so far, in seconds, where the system tells: on a busy machine it says more than the
/// clock.
fn processor_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may hold spaces; user and system time are the 12th and 13th fields behind it, in 1/100 s.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}

fn load(device: &Cpu, config: &Config, options: Options) -> Backbone {
    let folder = checkpoint(config).expect("the checkpoint can be written");
    let plan = Backbone::memory_plan(device, config, &options).expect("the options are valid");
    let start = Instant::now();
    let checkpoint = Checkpoint::open(folder).expect("the checkpoint is there");
    let model = Backbone::load(device, &checkpoint, config, options).expect("the backbone fits");
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("loaded in {seconds:.1} s; {plan:?}");
    if let Some((peak, now)) = memory("VmHWM").zip(memory("VmRSS")) {
        let ratio = peak as f64 / now as f64;
        eprintln!("peak {:.3} GB, resident {:.3} GB: {ratio:.2} times", peak as f64 / 1e9, now as f64 / 1e9);
    }
    model
}

fn profile(device: &Cpu, what: &str, passes: u32, mut pass: impl FnMut()) {
    pass();
    device.set_profiling(true);
    let (start, processor) = (Instant::now(), processor_seconds());
    (0..passes).for_each(|_| pass());
    let seconds = start.elapsed().as_secs_f64();
    let busy = processor_seconds().zip(processor).map_or(f64::NAN, |(end, start)| end - start);
    device.set_profiling(false);
    eprintln!(
        "{what}: {:.1} ms, {:.1} ms of processor time, over {passes} passes",
        1e3 * seconds,
        1e3 * busy
    );
    eprintln!("{}", device.profile());
}

fn backbone(criterion: &mut Criterion) {
    let config = Config::from_json(CONFIG.as_bytes()).expect("the config is valid");
    let device = Cpu::with_threads(2).expect("two threads");
    let options = Options::default().precision(Precision::Q8).context_length(4096);
    let mut model = load(&device, &config, options);
    let ids = synthetic::token_ids("prompt", PREFILL, SEED, config.vocab_size as u32);
    let mut sequence = model.sequence().expect("the sequence fits");

    let mut prefill = || {
        sequence.clear(&device).expect("the states fit");
        model.prefill(&mut sequence, Input::Ids(black_box(&ids))).expect("the pass runs");
    };
    profile(&device, "prefill of 512", 1, &mut prefill);
    let mut group = criterion.benchmark_group("backbone q8");
    group.sample_size(10).throughput(Throughput::Elements(PREFILL as u64));
    group.bench_function("prefill 512", |bencher| bencher.iter(&mut prefill));

    let mut decode = || {
        if sequence.room() == 0 {
            sequence.clear(&device).expect("the states fit");
            model.prefill(&mut sequence, Input::Ids(&ids)).expect("the pass runs");
        }
        let id = model.greedy().expect("the logits are finite");
        model.step(&mut sequence, black_box(id)).expect("the pass runs");
    };
    profile(&device, "decode", 20, &mut decode);
    group.sample_size(20).throughput(Throughput::Elements(1));
    group.bench_function("decode after 512", |bencher| bencher.iter(&mut decode));
    group.finish();
}

criterion_group!(benches, backbone);
criterion_main!(benches);

//! Checks that a program needs no CUDA function that the last driver for Fermi lacks.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::cuda_stubs::{self, Kind};
use crate::names::library_of;
use crate::workspace::{metadata, output, report, root};

/// Builds an example against the empty shared libraries and compares the names that it needs with those of CUDA 8.0.
///
/// Build scripts do not notice that the variables name other libraries, so the build has a folder of its own unless it is `in_place`.
pub(crate) fn run(example: &str, in_place: bool) -> anyhow::Result<()> {
    let base = cuda_stubs::make(Kind::Shared)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--package=examples", "--features=cuda", "--example", example]);
    let metadata = metadata()?;
    let usual = metadata["target_directory"].as_str().context("cargo metadata names the target folder")?;
    let target = if in_place { PathBuf::from(usual) } else { Path::new(usual).join("audit") };
    build.env("CARGO_TARGET_DIR", &target).current_dir(root()?).envs(cuda_stubs::variables(&base));
    ensure!(build.status().context("cargo build")?.success(), "the example {example} does not build");

    let program = target.join("debug/examples").join(example);
    let symbols = undefined(&program)?;
    ensure!(
        !symbols.is_empty(),
        "{}: imports no CUDA function: was it built with other libraries?",
        program.display()
    );
    let mut newer = Vec::new();
    for symbol in &symbols {
        let known = library_of(symbol).is_some_and(|library| library.of_cuda_8().contains(symbol.as_str()));
        report(format_args!("{symbol}{}", if known { "" } else { "  <- not in CUDA 8.0" }));
        if !known {
            newer.push(symbol.as_str());
        }
    }
    ensure!(newer.is_empty(), "not in CUDA 8.0: {}", newer.join(", "));
    report(format_args!("{} functions, all of them in CUDA 8.0", symbols.len()));
    Ok(())
}

/// The CUDA functions that a program imports.
fn undefined(program: &Path) -> anyhow::Result<Vec<String>> {
    let table = output(Command::new("nm").args(["--dynamic", "--undefined-only"]).arg(program))?;
    let names = table.lines().filter_map(|line| line.split_whitespace().last());
    let names = names.map(|name| name.split('@').next().unwrap_or(name));
    Ok(names.filter(|name| library_of(name).is_some()).map(str::to_owned).collect())
}

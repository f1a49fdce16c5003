//! Where things lie.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// The workspace's root folder.
pub(crate) fn root() -> anyhow::Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")
}

/// What cargo knows of the workspace with all features.
pub(crate) fn metadata() -> anyhow::Result<serde_json::Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let text = output(
        Command::new(cargo).args(["metadata", "--format-version=1", "--all-features"]).current_dir(root()?),
    )?;
    Ok(serde_json::from_str(&text)?)
}

/// The folder with the sources of a dependency.
pub(crate) fn dependency(name: &str) -> anyhow::Result<PathBuf> {
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists packages")?;
    let manifest = packages
        .iter()
        .find(|package| package["name"] == name)
        .and_then(|package| package["manifest_path"].as_str())
        .with_context(|| format!("{name} is not a dependency"))?;
    Path::new(manifest).parent().map(Path::to_owned).context("a manifest lies in a folder")
}

/// Runs a command to its end and returns what it printed.
///
/// # Errors
/// When it cannot be started or fails, with what it wrote to its error output.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let name = format!("{command:?}");
    let output = command.output().with_context(|| format!("cannot start {name}"))?;
    ensure!(output.status.success(), "{name} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// Prints a line of a task's result.
#[allow(clippy::print_stdout, reason = "a program's output")]
pub(crate) fn report(line: impl std::fmt::Display) {
    println!("{line}");
}

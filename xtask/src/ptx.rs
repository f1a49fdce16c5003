//! Compiles the kernels: each `kernels/NAME.cu` of a crate to `kernels/NAME.ptx` beside it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::workspace::{output, report, root};

/// Instructions and types that a Fermi card does not have, and that an assembler for newer cards would let pass.
const TOO_NEW: [&str; 7] = ["shfl", ".f16", "ld.global.nc", "ldg", "dp4a", "vote.sync", "bar.warp"];

/// Registers a thread of a Fermi card can have.
const MOST_REGISTERS: &str = "63";

/// Rebuilds every kernel's PTX; with `check`, fails when a committed text differs instead of writing it.
pub(crate) fn run(check: bool) -> anyhow::Result<()> {
    let mut stale = Vec::new();
    for source in sources()? {
        let text = compile(&source)?;
        audit(&source, &text)?;
        let target = source.with_extension("ptx");
        if std::fs::read_to_string(&target).ok().as_deref() == Some(&text) {
            continue;
        }
        if check {
            stale.push(target.display().to_string());
        } else {
            std::fs::write(&target, text)?;
            report(format_args!("wrote {}", target.display()));
        }
    }
    ensure!(
        stale.is_empty(),
        "not what the sources compile to, run `cargo xtask ptx`:\n{}",
        stale.join("\n")
    );
    Ok(())
}

/// Assembles every committed PTX within Fermi's registers and prints a table; fails when registers spill.
pub(crate) fn resources(ptxas: &Path, architecture: &str) -> anyhow::Result<()> {
    report(format_args!(
        "| kernel | registers | with at most {MOST_REGISTERS} | shared memory, bytes |\n|---|---|---|---|"
    ));
    let mut spilled = Vec::new();
    let copy = root()?.join("target/within-registers.ptx");
    std::fs::create_dir_all(root()?.join("target"))?;
    for source in sources()? {
        let ptx = source.with_extension("ptx");
        let free = assemble(ptxas, architecture, &ptx)?;
        let text = std::fs::read_to_string(&ptx).with_context(|| ptx.display().to_string())?;
        std::fs::write(&copy, within_registers(&text))?;
        let held = assemble(ptxas, architecture, &copy)?;
        for (free, held) in free.iter().zip(&held) {
            report(format_args!(
                "| {} | {} | {} | {} |",
                free.name, free.registers, held.registers, held.shared
            ));
            if held.spills > 0 {
                spilled.push(format!("{}: {} bytes", held.name, held.spills));
            }
        }
    }
    ensure!(spilled.is_empty(), "registers spill:\n{}", spilled.join("\n"));
    Ok(())
}

/// What the assembler says of one kernel.
#[derive(Debug, Default, PartialEq, Eq)]
struct Resources {
    name: String,
    registers: u32,
    spills: u32,
    shared: u32,
}

/// The text with Fermi's limit in every kernel: where a kernel states its launch bounds, the assembler passes over its own
/// option for that.
fn within_registers(text: &str) -> String {
    let limited = |line: &str| match line.starts_with(".maxntid") {
        true => format!("{line}\n.maxnreg {MOST_REGISTERS}\n"),
        false => format!("{line}\n"),
    };
    text.lines().map(limited).collect()
}

fn assemble(ptxas: &Path, architecture: &str, ptx: &Path) -> anyhow::Result<Vec<Resources>> {
    let mut command = Command::new(ptxas);
    command.arg("-v").arg(format!("-arch={architecture}"));
    command.arg(ptx).args(["-o", "/dev/null"]);
    let output = command.output().with_context(|| ptxas.display().to_string())?;
    let report =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{}:\n{report}", ptx.display());
    Ok(parse(&report))
}

fn parse(report: &str) -> Vec<Resources> {
    let mut kernels: Vec<Resources> = Vec::new();
    for line in report.lines() {
        if let Some(name) =
            line.split("Compiling entry function '").nth(1).and_then(|rest| rest.split('\'').next())
        {
            kernels.push(Resources { name: name.to_owned(), ..Resources::default() });
        }
        let Some(kernel) = kernels.last_mut() else { continue };
        if let Some(bytes) = number_before(line, " bytes spill stores") {
            kernel.spills += bytes + number_before(line, " bytes spill loads").unwrap_or(0);
        }
        if let Some(registers) = number_before(line, " registers") {
            kernel.registers = registers;
            kernel.shared = number_before(line, " bytes smem").unwrap_or(0);
        }
    }
    kernels
}

fn number_before(line: &str, what: &str) -> Option<u32> {
    let before = &line[..line.find(what)?];
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Every kernel source of the workspace.
fn sources() -> anyhow::Result<Vec<PathBuf>> {
    let root = root()?;
    let list = output(
        Command::new("git").args(["ls-files", "-co", "--exclude-standard", "*.cu"]).current_dir(root),
    )?;
    Ok(list.lines().map(|file| root.join(file)).filter(|path| path.is_file()).collect())
}

fn compile(source: &Path) -> anyhow::Result<String> {
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang-16".to_owned());
    let mut command = Command::new(clang);
    command.args(["-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_20", "-nocudainc", "-nocudalib"]);
    command.args(["-O3", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-cuda-version"]);
    command.arg("-I").arg(root()?.join("fermi-blas/kernels")).args(["-S", "-o", "-"]).arg(source);
    output(&mut command)
}

/// Fails when a text needs more than a Fermi card has, or calls what no one defines.
fn audit(source: &Path, text: &str) -> anyhow::Result<()> {
    let name = source.display();
    ensure!(text.contains(".target sm_20"), "{name}: not compiled for sm_20");
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        if let Some(word) = TOO_NEW.iter().find(|word| line.contains(*word)) {
            bail!("{name}: {word} is not for Fermi: {line}");
        }
        ensure!(!line.starts_with(".extern .func"), "{name}: calls what is not defined: {line}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_assemblers_report_is_read() {
        let report = "ptxas info    : Compiling entry function 'add' for 'sm_75'\n\
            ptxas info    : Function properties for add\n    0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n\
            ptxas info    : Used 34 registers, used 1 barriers, 1024 bytes smem, 392 bytes cmem[0]\n";
        let expected = Resources { name: "add".to_owned(), registers: 34, spills: 12, shared: 1024 };
        assert_eq!(parse(report), [expected]);
    }

    #[test]
    fn every_kernel_gets_the_limit() {
        let text = within_registers(".entry a(\n)\n.maxntid 256, 1, 1\n{\n}\n");
        assert_eq!(text, ".entry a(\n)\n.maxntid 256, 1, 1\n.maxnreg 63\n{\n}\n");
    }

    #[test]
    fn newer_instructions_are_refused() {
        let file = Path::new("a.cu");
        assert!(audit(file, ".target sm_20\n add.f32 %f1, %f2, %f3;").is_ok());
        assert!(audit(file, ".target sm_20\n shfl.sync.bfly.b32 %r1, %r2;").is_err());
        assert!(audit(file, ".target sm_20\n.extern .func expf").is_err());
        assert!(audit(file, ".target sm_75\n").is_err());
    }
}

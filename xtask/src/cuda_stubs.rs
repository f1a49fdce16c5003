//! Stand-ins for the CUDA libraries, so that programs build on machines without a toolkit.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;

use crate::names::Library;
use crate::workspace::{output, report, root};

/// Which stand-ins to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Libraries with every name and no code: a program that links them shows the names that it needs, and does not run.
    Shared,
    /// Archives of small jumps that open the real libraries at first use: a program that links them runs anywhere, and
    /// reports no device where there is none.
    Static,
}

/// Makes the libraries under `target/` and prints the variables that a build needs.
pub(crate) fn run(kind: Kind) -> anyhow::Result<()> {
    let base = make(kind)?;
    for (variable, value) in variables(&base) {
        report(format_args!("export {variable}={}", value.display()));
    }
    Ok(())
}

/// What `cust` and `cublas-sys` read to find the libraries.
pub(crate) fn variables(base: &Path) -> [(&'static str, PathBuf); 2] {
    [("CUDA_LIBRARY_PATH", base.to_owned()), ("CUBLAS_LIB_DIR", base.join("lib64"))]
}

/// Makes the libraries and returns the folder that holds their `lib64`.
pub(crate) fn make(kind: Kind) -> anyhow::Result<PathBuf> {
    let name = match kind {
        Kind::Shared => "cuda-stubs-shared",
        Kind::Static => "cuda-stubs-static",
    };
    let base = root()?.join("target").join(name);
    let lib = base.join("lib64");
    std::fs::create_dir_all(lib.join("stubs"))?;
    for library in Library::ALL {
        match kind {
            Kind::Shared => shared(library, &lib)?,
            Kind::Static => archive(library, &lib)?,
        }
    }
    Ok(base)
}

fn shared(library: Library, lib: &Path) -> anyhow::Result<()> {
    let source = lib.join(format!("{}.c", library.stem()));
    let mut text = String::new();
    for name in library.declared()? {
        writeln!(text, "int {name}(void) {{ return 1; }}")?;
    }
    std::fs::write(&source, text)?;
    let soname = match library {
        Library::Cuda => "libcuda.so.1",
        Library::Cublas => "libcublas.so",
    };
    let file = lib.join(format!("lib{}.so", library.stem()));
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-w", "-fno-builtin", "-o"]).arg(&file);
    output(compiler.arg(format!("-Wl,-soname,{soname}")).arg(&source))?;
    Ok(())
}

fn archive(library: Library, lib: &Path) -> anyhow::Result<()> {
    ensure!(
        cfg!(target_arch = "x86_64"),
        "the jumps are written for x86-64; link a toolkit's libraries here"
    );
    let stem = library.stem();
    let (source, object) = (lib.join(format!("{stem}.c")), lib.join(format!("{stem}.o")));
    std::fs::write(&source, trampolines(library)?)?;
    let mut compiler = Command::new("cc");
    output(compiler.args(["-c", "-O2", "-fPIC", "-Wall", "-Werror", "-o"]).arg(&object).arg(&source))?;
    let file = lib.join(format!("lib{stem}.a"));
    let _ = std::fs::remove_file(&file);
    output(Command::new("ar").arg("rcs").arg(&file).arg(&object))?;
    Ok(())
}

/// C code with one jump a name. The first call through a jump opens the library and looks the name up; what the library
/// lacks returns an error code, as a function that failed would.
fn trampolines(library: Library) -> anyhow::Result<String> {
    let names = library.declared()?;
    let (stem, files, failure) = match library {
        Library::Cuda => ("cuda", vec!["libcuda.so.1".to_owned(), "libcuda.so".to_owned()], 303),
        Library::Cublas => {
            let versions = ["13", "12", "11", "10", "9.2", "9.1", "9.0", "8.0"];
            ("cublas", versions.iter().map(|version| format!("libcublas.so.{version}")).collect(), 1)
        }
    };
    let mut text =
        include_str!("trampoline.c").replace("LIBRARY", stem).replace("FAILURE", &failure.to_string());
    let list = |items: &[String]| items.iter().map(|item| format!("\"{item}\", ")).collect::<String>();
    text = text.replace("FILES", &list(&files));
    text = text.replace("NAMES", &list(&names.iter().cloned().collect::<Vec<_>>()));
    for (index, name) in names.iter().enumerate() {
        writeln!(text, "TRAMPOLINE({name}, {index})")?;
    }
    Ok(text)
}

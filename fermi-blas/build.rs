//! Compiles the kernels as host code for the feature `emulated`; does nothing otherwise.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "emulated")]
    emulated::compile();
}

#[cfg(feature = "emulated")]
mod emulated {
    use std::path::{Path, PathBuf};

    pub(super) fn compile() {
        let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
        let kernels = root.join("kernels");
        let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets it"));
        println!("cargo:rerun-if-changed=kernels");
        println!("cargo:rerun-if-changed=src/emulated/emulator.cpp");
        // Crates with kernels of their own find the shared headers through this.
        println!("cargo:include={}", kernels.display());
        let mut build = cc::Build::new();
        build.cpp(true).std("c++17").define("EMULATED", None).include(&kernels).warnings(true).opt_level(2);
        build.file(root.join("src/emulated/emulator.cpp"));
        let entries = std::fs::read_dir(&kernels).expect("the kernels are part of the crate");
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_source(path)) {
            build.file(wrap(&path, &out));
        }
        // The sanitizer's runtime, which gcc would add if it linked the tests by itself.
        if std::env::var("CXXFLAGS").is_ok_and(|flags| flags.contains("-fsanitize=address")) {
            println!("cargo:rustc-link-lib=asan");
        }
        build.compile("fermi_blas_emulated");
    }

    fn is_source(path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "cu")
    }

    /// A C++ file that includes a kernel source and gives each of its kernels an entry for the launcher.
    fn wrap(source: &Path, out: &Path) -> PathBuf {
        let text = std::fs::read_to_string(source).expect("kernel sources are text");
        let mut wrapper = format!("#include \"{}\"\n", source.display());
        for rest in text.split("KERNEL(").skip(1) {
            let name = rest.split_once(')').and_then(|(_, rest)| rest.trim_start().split('(').next());
            wrapper += &format!("ENTRY({})\n", name.expect("a kernel has a name").trim());
        }
        let file = out.join(source.with_extension("cpp").file_name().expect("a source has a name"));
        std::fs::write(&file, wrapper).expect("OUT_DIR is writable");
        file
    }
}

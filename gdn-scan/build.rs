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
        let variable = |name| PathBuf::from(std::env::var(name).expect("cargo sets it"));
        let (root, out) = (variable("CARGO_MANIFEST_DIR"), variable("OUT_DIR"));
        let headers = variable("DEP_FERMI_BLAS_EMULATED_INCLUDE");
        println!("cargo:rerun-if-changed=kernels");
        println!("cargo:rerun-if-changed={}", headers.display());
        let mut build = cc::Build::new();
        build.cpp(true).std("c++17").define("EMULATED", None).include(&headers).warnings(true).opt_level(2);
        let entries = std::fs::read_dir(root.join("kernels")).expect("the kernels are part of the crate");
        let sources = entries.filter_map(|entry| Some(entry.ok()?.path()));
        for path in sources.filter(|path| path.extension().is_some_and(|extension| extension == "cu")) {
            build.file(wrap(&path, &out));
        }
        build.compile("gdn_scan_emulated");
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

//! Compiles the kernels as host code for the feature `emulated`; does nothing otherwise.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "emulated")]
    emulated::compile();
}

#[cfg(feature = "emulated")]
mod emulated {
    use std::path::PathBuf;

    /// Kernels by the source that they stand in.
    const SOURCES: [(&str, &[&str]); 4] = [
        ("empty", &["empty", "read_all"]),
        ("gemm_tiled", &["gemm_tiled"]),
        ("gemv_q4", &["gemv_q4"]),
        ("naive_attention", &["naive_attention"]),
    ];

    pub(super) fn compile() {
        let variable = |name: &str| PathBuf::from(std::env::var(name).expect("cargo sets it"));
        let kernels = variable("CARGO_MANIFEST_DIR").join("kernels");
        let out = variable("OUT_DIR");
        println!("cargo:rerun-if-changed=kernels");
        let mut build = cc::Build::new();
        build.cpp(true).std("c++17").define("EMULATED", None).warnings(true).opt_level(2);
        build.include(variable("DEP_FERMI_BLAS_EMULATED_INCLUDE"));
        for (source, names) in SOURCES {
            let mut wrapper =
                format!("#include \"{}\"\n", kernels.join(source).with_extension("cu").display());
            // What the launcher calls.
            names.iter().for_each(|name| wrapper += &format!("ENTRY({name})\n"));
            let file = out.join(source).with_extension("cpp");
            std::fs::write(&file, wrapper).expect("OUT_DIR is writable");
            build.file(file);
        }
        build.compile("benches_emulated");
    }
}

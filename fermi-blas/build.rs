//! Compiles the kernels as host code for the feature `emulated`; does nothing otherwise.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "emulated")]
    compile();
}

#[cfg(feature = "emulated")]
fn compile() {
    println!("cargo:rerun-if-changed=kernels");
    println!("cargo:rerun-if-changed=src/emulated/emulator.cpp");
    // Crates with kernels of their own find the shared headers through this.
    println!("cargo:include={}/kernels", std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    // The sanitizer's runtime, which gcc would add if it linked the tests by itself.
    if std::env::var("CXXFLAGS").is_ok_and(|flags| flags.contains("-fsanitize=address")) {
        println!("cargo:rustc-link-lib=asan");
    }
    let kernels = std::fs::read_dir("kernels").expect("the kernels are part of the crate");
    let sources = kernels.filter_map(|entry| Some(entry.ok()?.path()));
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .flags(["-x", "c++"]) // also what ends in .cu
        .define("EMULATED", None)
        .include("kernels")
        .opt_level(2)
        .files(sources.filter(|path| path.extension().is_some_and(|extension| extension == "cu")))
        .file("src/emulated/emulator.cpp")
        .compile("fermi_blas_emulated");
}

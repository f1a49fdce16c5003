//! Compiles the kernels as host code for the feature `emulated`; does nothing otherwise.

fn main() {
    println!("cargo:rerun-if-changed=kernels");
    #[cfg(feature = "emulated")]
    compile();
}

#[cfg(feature = "emulated")]
fn compile() {
    let variable = |name: &str| std::env::var(name).expect("cargo and fermi-blas tell it");
    let headers = variable("DEP_FERMI_BLAS_EMULATED_INCLUDE");
    println!("cargo:rerun-if-changed={headers}");
    let kernels = std::fs::read_dir("kernels").expect("the kernels are part of the crate");
    let sources = kernels.filter_map(|entry| Some(entry.ok()?.path()));
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .flags(["-x", "c++"]) // also what ends in .cu
        .define("EMULATED", None)
        .include(headers)
        .opt_level(2)
        .files(sources.filter(|path| path.extension().is_some_and(|extension| extension == "cu")))
        .compile(&format!("{}-emulated", variable("CARGO_PKG_NAME")));
}

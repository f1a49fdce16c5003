//! The names of CUDA functions: those that the bindings declare, and those that CUDA 8.0 has.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context;

use crate::workspace::{dependency, root};

/// One of the two libraries that a program links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    /// The driver.
    Cuda,
    /// The vendor's BLAS.
    Cublas,
}

impl Library {
    pub(crate) const ALL: [Self; 2] = [Self::Cuda, Self::Cublas];

    /// The name that a linker knows it by.
    pub(crate) fn stem(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Cublas => "cublas",
        }
    }

    /// Whether a symbol belongs to this library, by its name alone.
    fn owns(self, name: &str) -> bool {
        let rest = match self {
            Self::Cuda => name.strip_prefix("cu"),
            Self::Cublas => name.strip_prefix("cublas"),
        };
        rest.and_then(|rest| rest.chars().next()).is_some_and(char::is_uppercase)
    }

    /// Every name that the bindings and our own sources declare.
    pub(crate) fn declared(self) -> anyhow::Result<BTreeSet<String>> {
        let bindings = match self {
            Self::Cuda => dependency("cust_raw")?.join("src/cuda.rs"),
            Self::Cublas => dependency("cublas-sys")?.join("src/generated.rs"),
        };
        let mut names = self.functions(&read(&bindings)?);
        let own = root()?.join("fermi-blas/src/cuda");
        if own.is_dir() {
            for entry in std::fs::read_dir(&own)? {
                let path = entry?.path();
                if path.extension().is_some_and(|extension| extension == "rs") {
                    names.extend(self.functions(&read(&path)?));
                }
            }
        }
        Ok(names)
    }

    /// The names that this library had in CUDA 8.0, the last release for Fermi.
    pub(crate) fn of_cuda_8(self) -> BTreeSet<&'static str> {
        let list = match self {
            Self::Cuda => include_str!("../cuda8/driver.txt"),
            Self::Cublas => include_str!("../cuda8/cublas.txt"),
        };
        list.lines().map(str::trim).filter(|name| !name.is_empty()).collect()
    }

    /// Functions that a source declares under this library's names.
    fn functions(self, source: &str) -> BTreeSet<String> {
        let names = source.split("fn ").skip(1).filter_map(|rest| rest.split('(').next());
        names.filter(|name| self.owns(name) && is_identifier(name)).map(str::to_owned).collect()
    }
}

fn is_identifier(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// The library that a symbol belongs to.
pub(crate) fn library_of(symbol: &str) -> Option<Library> {
    Library::ALL.into_iter().find(|library| library.owns(symbol))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_find_their_library() {
        assert_eq!(library_of("cuInit"), Some(Library::Cuda));
        assert_eq!(library_of("cublasSgemm_v2"), Some(Library::Cublas));
        assert_eq!(library_of("curl_easy_init"), None);
        assert_eq!(library_of("cublas"), None);
    }

    #[test]
    fn declarations_are_found() {
        let source = "extern \"C\" { pub fn cuInit(flags: u32) -> i32;\n fn cublasGemmEx(\n handle: u8); fn other(); }";
        assert_eq!(Library::Cuda.functions(source).into_iter().collect::<Vec<_>>(), ["cuInit"]);
        assert_eq!(Library::Cublas.functions(source).into_iter().collect::<Vec<_>>(), ["cublasGemmEx"]);
    }

    #[test]
    fn the_lists_of_cuda_8_are_whole() {
        assert!(Library::Cuda.of_cuda_8().contains("cuModuleLoadDataEx"));
        assert!(!Library::Cuda.of_cuda_8().contains("cuDevicePrimaryCtxRelease_v2"));
        assert!(Library::Cublas.of_cuda_8().contains("cublasSgemmStridedBatched"));
    }
}

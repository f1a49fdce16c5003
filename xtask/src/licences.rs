//! Which licences a dependency may have, and where it may come from.

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::workspace::{metadata, report};

const ALLOWED: [&str; 12] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// The only source of dependencies.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks every dependency of every feature; fails with all that may not be used.
pub(crate) fn run() -> anyhow::Result<()> {
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists packages")?;
    let faults: Vec<String> = packages.iter().filter_map(fault).collect();
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    report(format_args!("{} packages, all of them under licences that are allowed", packages.len()));
    Ok(())
}

/// What is wrong with a package.
fn fault(package: &Value) -> Option<String> {
    let name = format!("{} {}", package["name"].as_str()?, package["version"].as_str()?);
    match package["source"].as_str() {
        Some(REGISTRY) => {}
        Some(source) => return Some(format!("{name}: comes from {source}")),
        None => {
            return wildcard(package).map(|dependency| format!("{name}: takes any version of {dependency}"));
        }
    }
    match package["license"].as_str() {
        Some(expression) if is_allowed(expression) => None,
        Some(expression) => Some(format!("{name}: {expression}")),
        None => Some(format!("{name}: names no licence")),
    }
}

/// A dependency of our own package whose version is not bounded.
fn wildcard(package: &Value) -> Option<&str> {
    let dependencies = package["dependencies"].as_array()?;
    let open = |dependency: &&Value| dependency["req"] == "*" && dependency["path"].is_null();
    dependencies.iter().find(open)?["name"].as_str()
}

/// Whether an SPDX expression can be met by allowed licences alone. A slash is how older manifests write OR.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any(&mut rest) && rest.is_empty()
}

fn any(words: &mut &[&str]) -> bool {
    let mut allowed = all(words);
    while take(words, "OR") {
        allowed |= all(words);
    }
    allowed
}

fn all(words: &mut &[&str]) -> bool {
    let mut allowed = one(words);
    while take(words, "AND") {
        allowed &= one(words);
    }
    allowed
}

fn one(words: &mut &[&str]) -> bool {
    if take(words, "(") {
        return any(words) & take(words, ")");
    }
    let [first, rest @ ..] = *words else { return false };
    *words = rest;
    if take(words, "WITH") {
        let [exception, rest @ ..] = *words else { return false };
        *words = rest;
        return ALLOWED.contains(&format!("{first} WITH {exception}").as_str());
    }
    ALLOWED.contains(first)
}

fn take(words: &mut &[&str], word: &str) -> bool {
    let found = words.first() == Some(&word);
    if found {
        *words = &words[1..];
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{REGISTRY, fault, is_allowed};

    #[test]
    fn expressions_are_read() {
        for allowed in
            ["MIT", "MIT/GPL-3.0", "(MIT OR GPL-2.0) AND ISC", "Apache-2.0 WITH LLVM-exception OR X"]
        {
            assert!(is_allowed(allowed), "{allowed}");
        }
        for refused in
            ["", "GPL-3.0", "MIT AND GPL-3.0", "GPL-2.0 WITH LLVM-exception", "(MIT", "MIT MIT", "MIT WITH"]
        {
            assert!(!is_allowed(refused), "{refused}");
        }
    }

    #[test]
    fn sources_and_versions_are_seen() {
        let package = |source: Option<&str>| {
            let dependency = json!({"name": "b", "req": "*"});
            json!({"name": "a", "version": "1.0.0", "source": source, "license": "MIT", "dependencies": [dependency]})
        };
        assert_eq!(fault(&package(Some(REGISTRY))), None);
        assert!(fault(&package(Some("git+https://example.com/a"))).is_some());
        assert!(fault(&package(None)).unwrap().contains("any version of b"));
    }
}

//! Keeps files and functions short enough to be read.

use std::process::Command;

use anyhow::{Context, bail};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::workspace::{output, report, root};

const FILE_LINES: usize = 400;
const FUNCTION_LINES: usize = 80;

/// Checks every Rust, CUDA and Python file that git tracks, and prints the longest.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = root()?;
    let list =
        output(Command::new("git").args(["ls-files", "*.rs", "*.cu", "*.cuh", "*.py"]).current_dir(root))?;
    let mut faults = Vec::new();
    let mut longest = (0, String::new());
    for file in list.lines() {
        let path = root.join(file);
        if !path.is_file() {
            continue;
        }
        let text = std::fs::read_to_string(&path).with_context(|| file.to_owned())?;
        let lines = text.lines().count();
        if lines > longest.0 {
            longest = (lines, file.to_owned());
        }
        if lines > FILE_LINES {
            faults.push(format!("{file}: {lines} lines, at most {FILE_LINES}"));
        }
        faults.extend(long_functions(file, &text)?);
    }
    let (lines, file) = longest;
    report(format_args!("longest file: {file}, {lines} lines"));
    if !faults.is_empty() {
        bail!("too long:\n{}", faults.join("\n"));
    }
    Ok(())
}

fn long_functions(file: &str, text: &str) -> anyhow::Result<Vec<String>> {
    let functions = match file.rsplit('.').next() {
        Some("rs") => rust_functions(text).with_context(|| format!("{file}: not valid Rust"))?,
        Some("cu" | "cuh") => braced_functions(text),
        _ => Vec::new(),
    };
    let long = functions.into_iter().filter(|(_, lines)| *lines > FUNCTION_LINES);
    Ok(long.map(|(name, lines)| format!("{file}: {name}: {lines} lines, at most {FUNCTION_LINES}")).collect())
}

#[derive(Default)]
struct Functions(Vec<(String, usize)>);

impl Functions {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let lines = block.span().end().line - signature.span().start().line + 1;
        self.0.push((signature.ident.to_string(), lines));
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.add(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

fn rust_functions(text: &str) -> syn::Result<Vec<(String, usize)>> {
    let mut functions = Functions::default();
    functions.visit_file(&syn::parse_file(text)?);
    Ok(functions.0)
}

/// Outermost braces of a CUDA source, named by the line that opens them (`extern "C"` and `namespace` excepted).
fn braced_functions(text: &str) -> Vec<(String, usize)> {
    let (mut depth, mut open, mut found) = (0usize, None, Vec::new());
    for (number, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        if depth == 0 && (code.contains("extern \"C\" {") || code.trim_start().starts_with("namespace")) {
            continue;
        }
        for character in code.chars() {
            match character {
                '{' => {
                    if depth == 0 {
                        open = Some((number, code.trim().to_owned()));
                    }
                    depth += 1;
                }
                '}' if depth > 0 => {
                    depth -= 1;
                    if let (0, Some((start, name))) = (depth, &open) {
                        found.push((name.clone(), number - start + 1));
                    }
                }
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{braced_functions, long_functions, rust_functions};

    #[test]
    fn lengths_are_counted() {
        let rust = "fn a() {}\nimpl X {\n    fn b(\n        x: u8,\n    ) {\n    }\n}\n";
        assert_eq!(rust_functions(rust).unwrap(), [("a".to_owned(), 1), ("b".to_owned(), 4)]);
        let cuda = "extern \"C\" {\n__global__ void k() {\n  if (x) { y(); }\n}\n}\n";
        assert_eq!(braced_functions(cuda), [("__global__ void k() {".to_owned(), 3)]);
    }

    #[test]
    fn a_long_function_is_a_fault() {
        let text = format!("fn long() {{\n{}}}\n", "    x();\n".repeat(80));
        assert_eq!(long_functions("a.rs", &text).unwrap(), ["a.rs: long: 82 lines, at most 80"]);
        assert!(long_functions("a.rs", "fn short() {}").unwrap().is_empty());
    }
}

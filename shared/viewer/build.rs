//! Writes the list of the viewer's files, each with its bytes. Without them
//! the list is empty, so that a build needs nothing but Rust.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("assets");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    if root.join("VERSION.txt").is_file() {
        collect(&root, "", &mut files)?;
    }
    files.sort();
    let mut code = String::from("pub(crate) static FILES: &[(&str, &[u8])] = &[\n");
    for name in &files {
        let path = root.join(name);
        writeln!(code, "    ({name:?}, include_bytes!({:?})),", path.display().to_string())
            .map_err(io::Error::other)?;
    }
    code.push_str("];\n");
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("files.rs"), code)
}

/// Names below `folder`, with `/` between their parts on every system.
fn collect(folder: &Path, prefix: &str, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|name| io::Error::other(format!("{name:?}")))?;
        if name == ".gitignore" {
            continue;
        }
        let below = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{below}/"), files)?;
        } else {
            files.push(below);
        }
    }
    Ok(())
}

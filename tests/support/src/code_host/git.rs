//! A git repository made by `git`, and what it says about itself.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

/// The tree without files, against which a commit without parents is compared.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// A repository in a folder of its own, on the branch `main`.
#[derive(Debug)]
pub struct GitRepository {
    folder: TempDir,
}

/// A commit as `git log` tells it.
#[derive(Debug)]
pub(super) struct Logged {
    pub(super) sha: String,
    pub(super) parents: Vec<String>,
    pub(super) author: String,
    pub(super) email: String,
    pub(super) date: String,
    pub(super) message: String,
}

/// A file that changed, as `git diff` tells it.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) path: String,
    pub(super) old_path: String,
    /// `A`, `M`, `D` or `R`.
    pub(super) status: char,
    /// `None` for binary files.
    pub(super) lines: Option<(u64, u64)>,
    /// From the first `@@` on; empty without hunks.
    pub(super) hunks: String,
}

impl GitRepository {
    /// Creates an empty repository.
    ///
    /// # Errors
    /// When `git` cannot be run.
    pub fn create() -> Result<Self> {
        let repository = Self { folder: TempDir::new()? };
        repository.git(&["init", "--quiet", "--initial-branch=main"])?;
        Ok(repository)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `git` here and returns what it printed.
    ///
    /// # Errors
    /// When `git` fails, with what it said.
    pub fn git(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("git");
        command.current_dir(self.folder.path()).args(arguments);
        // Nothing of this machine's settings gets in.
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", self.folder.path());
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "Ada Lovelace");
            command.env(format!("GIT_{role}_EMAIL"), "ada@example.org");
        }
        let output = command.output().context("git")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "git {arguments:?}: {said}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    pub(super) fn commit(&self, message: &str, files: &[(&str, Option<&[u8]>)]) -> Result<String> {
        for (name, contents) in files {
            let path = self.path(name);
            match contents {
                Some(contents) => {
                    std::fs::create_dir_all(path.parent().context("a folder")?)?;
                    std::fs::write(path, contents)?;
                }
                None => std::fs::remove_file(path)?,
            }
        }
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message])?;
        Ok(self.git(&["rev-parse", "HEAD"])?.trim().to_owned())
    }

    /// The commit that a branch or a hash names.
    pub(super) fn resolve(&self, name: &str) -> Option<String> {
        let name = format!("{name}^{{commit}}");
        let found = self.git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &name]).ok()?;
        Some(found.trim().to_owned())
    }

    /// Commits of a range, newest first.
    pub(super) fn log(&self, range: &[&str]) -> Vec<Logged> {
        let format = "--format=%H%x1f%P%x1f%an%x1f%ae%x1f%aI%x1f%B%x1e";
        let arguments: Vec<&str> =
            ["log", "--topo-order", format].into_iter().chain(range.iter().copied()).collect();
        let told = self.git(&arguments).unwrap_or_default();
        let records = told.split('\u{1e}').map(|record| record.trim_start_matches('\n'));
        records
            .filter(|record| !record.is_empty())
            .filter_map(|record| {
                let mut fields = record.split('\u{1f}');
                Some(Logged {
                    sha: fields.next()?.to_owned(),
                    parents: fields.next()?.split_whitespace().map(str::to_owned).collect(),
                    author: fields.next()?.to_owned(),
                    email: fields.next()?.to_owned(),
                    date: fields.next()?.to_owned(),
                    message: fields.next()?.to_owned(),
                })
            })
            .collect()
    }

    /// What a commit is compared with.
    pub(super) fn parent_of(&self, sha: &str) -> String {
        self.resolve(&format!("{sha}^")).unwrap_or_else(|| EMPTY_TREE.to_owned())
    }

    /// The whole diff as `git` writes it.
    pub(super) fn diff(&self, from: &str, to: &str) -> String {
        self.git(&["diff", "-M", from, to]).unwrap_or_default()
    }

    /// Files that differ between two commits.
    pub(super) fn changes(&self, from: &str, to: &str) -> Vec<Changed> {
        let told = self.git(&["diff", "-M", "-z", "--name-status", from, to]).unwrap_or_default();
        let mut words = told.split('\0').filter(|word| !word.is_empty());
        let mut changed = Vec::new();
        while let (Some(status), Some(old_path)) =
            (words.next().and_then(|word| word.chars().next()), words.next())
        {
            let path = if status == 'R' { words.next().unwrap_or(old_path) } else { old_path };
            let one = ["diff", "-M", "--numstat", from, to, "--", old_path, path];
            let numbers = self.git(&one).unwrap_or_default();
            let mut numbers = numbers.split('\t').map(|number| number.parse::<u64>().ok());
            let patch = self.git(&["diff", "-M", from, to, "--", old_path, path]).unwrap_or_default();
            let hunks = patch.find("\n@@ ").map_or("", |at| &patch[at + 1..]);
            changed.push(Changed {
                path: path.to_owned(),
                old_path: old_path.to_owned(),
                status,
                lines: numbers.next().flatten().zip(numbers.next().flatten()),
                hunks: hunks.to_owned(),
            });
        }
        changed
    }

    /// The contents of a file at a commit.
    pub(super) fn file_at(&self, sha: &str, path: &str) -> Option<Vec<u8>> {
        self.git(&["show", &format!("{sha}:{path}")]).ok().map(String::into_bytes)
    }
}

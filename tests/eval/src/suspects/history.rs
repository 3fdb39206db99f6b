//! The history around a fault: a real repository of the shop, the commit that
//! breaks it, and 9 to 39 others that touch the same files, those beside them,
//! and everything at once.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::faults::{Edit, Fault};
use super::shop::{AREAS, capital, of_area, shared};

/// Commits of the shortest and the longest range.
const COMMITS: (u64, u64) = (10, 40);

/// A stream of numbers from a seed (SplitMix64, Steele et al., OOPSLA 2014).
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn choose<'t, T>(&mut self, list: &'t [T]) -> &'t T {
        let at = usize::try_from(self.below(list.len() as u64)).unwrap_or_default();
        &list[at]
    }
}

/// A repository with the history around a fault.
pub(super) struct History {
    folder: TempDir,
    /// Commit before the range.
    pub(super) base: String,
    /// Newest commit of the range.
    pub(super) head: String,
    /// The commit that holds the fault.
    pub(super) culprit: String,
}

impl History {
    /// Makes the repository of a fault; the same one for the same seed.
    pub(super) fn make(fault: &Fault) -> Result<Self> {
        let mut numbers = Numbers(fault.seed);
        let folder = TempDir::new()?;
        let mut made = Self { folder, base: String::new(), head: String::new(), culprit: String::new() };
        made.git(&["init", "--quiet", "--initial-branch=main"])?;
        for (path, text) in AREAS.iter().flat_map(|(area, _)| of_area(area)).chain(shared()) {
            made.write(&path, &text)?;
        }
        made.base = made.commit("Open the shop")?;
        let commits = COMMITS.0 + numbers.below(COMMITS.1 - COMMITS.0 + 1);
        let faulty = numbers.below(commits);
        for number in 0..commits {
            made.head = if number == faulty {
                let (edits, message) = fault.edits();
                for edit in &edits {
                    made.replace(edit)?;
                }
                made.commit(message)?
            } else {
                let message = made.distract(fault, &mut numbers, number)?;
                made.commit(&message)?
            };
            if number == faulty {
                made.culprit.clone_from(&made.head);
            }
        }
        Ok(made)
    }

    /// A change that breaks nothing; most of them near the fault.
    fn distract(&self, fault: &Fault, numbers: &mut Numbers, number: u64) -> Result<String> {
        let areas: Vec<&str> = AREAS.iter().map(|(area, _)| *area).collect();
        let any = *numbers.choose(&areas);
        match numbers.below(100) {
            // The files of the area of the failing test.
            0..35 => {
                let files = of_area(fault.area);
                let (path, _) = numbers.choose(&files);
                self.add_to(path, fault.area, number)?;
                Ok(format!("Extend {} with option {number}", fault.area))
            }
            // The very file that breaks.
            35..45 => {
                let (edits, _) = fault.edits();
                let path = &numbers.choose(&edits).path;
                self.add_to(path, fault.area, number)?;
                Ok(format!("Refine {}", path.rsplit('/').next().unwrap_or(path)))
            }
            // What all areas share.
            45..57 => {
                let files = shared();
                let (path, _) = numbers.choose(&files);
                self.add_to(path, any, number)?;
                Ok(format!("Improve shared code, part {number}"))
            }
            // Everything at once.
            57..62 => {
                for (path, _) in AREAS.iter().flat_map(|(area, _)| of_area(area)).chain(shared()) {
                    self.add_to(&path, any, number)?;
                }
                Ok("Reorganise the whole shop".to_owned())
            }
            // Another test, or the documents of the same area.
            62..72 => {
                self.add_to(&format!("e2e/{any}.spec.ts"), any, number)?;
                Ok(format!("Test {any} more"))
            }
            72..80 => {
                self.add_to(&format!("docs/{}.md", fault.area), fault.area, number)?;
                Ok(format!("Describe {}", fault.area))
            }
            _ => {
                let files = of_area(any);
                let (path, _) = numbers.choose(&files);
                self.add_to(path, any, number)?;
                Ok(format!("Extend {any} with option {number}"))
            }
        }
    }

    /// Every second change touches a line that is there, and changes nothing by
    /// it; the others add a line or two that name the area.
    fn add_to(&self, path: &str, area: &str, number: u64) -> Result<()> {
        let place = self.folder.path().join(path);
        let text = std::fs::read_to_string(&place).with_context(|| path.to_owned())?;
        let touched = if number.is_multiple_of(2) { touched(path, &text, number) } else { None };
        self.write(path, &touched.unwrap_or_else(|| extended(path, &text, area, number)))
    }

    fn replace(&self, edit: &Edit) -> Result<()> {
        let text = std::fs::read_to_string(self.folder.path().join(&edit.path))?;
        ensure!(text.contains(&edit.from), "{}: no {}", edit.path, edit.from);
        self.write(&edit.path, &text.replace(&edit.from, &edit.to))
    }

    fn write(&self, path: &str, text: &str) -> Result<()> {
        let place = self.folder.path().join(path);
        std::fs::create_dir_all(place.parent().unwrap_or(Path::new("/")))?;
        Ok(std::fs::write(place, text)?)
    }

    fn commit(&self, message: &str) -> Result<String> {
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message])?;
        Ok(self.git(&["rev-parse", "HEAD"])?.trim().to_owned())
    }

    /// Runs `git` in the repository, the same way on every machine.
    pub(super) fn git(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("git");
        command.current_dir(self.folder.path()).args(arguments);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", self.folder.path());
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "Ada Lovelace");
            command.env(format!("GIT_{role}_EMAIL"), "ada@example.org");
            command.env(format!("GIT_{role}_DATE"), "2026-01-01T10:00:00Z");
        }
        let output = command.output().context("git")?;
        ensure!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The text with one line written in another way that means the same; `None`
/// where no line can be.
fn touched(path: &str, text: &str, number: u64) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let ending = |line: &str| match path.rsplit('.').next() {
        Some("css") if line.ends_with(';') => Some(" /* as before */"),
        Some("tsx") if line.trim_start().starts_with('<') && line.ends_with('>') => Some("{' '}"),
        Some("ts" | "tsx") if line.ends_with(';') || line.ends_with('{') => Some(" // as before"),
        Some("md") if !line.is_empty() => Some("  "),
        _ => None,
    };
    let possible: Vec<(usize, &str)> =
        lines.iter().enumerate().filter_map(|(at, line)| Some((at, ending(line)?))).collect();
    let seed = path.bytes().fold(number, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
    if possible.is_empty() {
        return None;
    }
    let (chosen, ending) = *Numbers(seed).choose(&possible);
    let written = lines.iter().enumerate().map(|(at, line)| match at == chosen {
        true => format!("{line}{ending}\n"),
        false => format!("{line}\n"),
    });
    Some(written.collect())
}

/// The text with a line or two that name the area, in the language of the file.
fn extended(path: &str, text: &str, area: &str, number: u64) -> String {
    let big = capital(area);
    match path.rsplit('.').next() {
        Some("css") => format!("{text}.{area}-option-{number} {{\n  display: block;\n}}\n"),
        Some("md") => format!("{text}\nOption {number} of the {area} page is new.\n"),
        // Objects begin with a brace of their own line.
        Some("json") => {
            text.replacen("{\n", &format!("{{\n  \"{area}Option{number}\": \"{big} option\",\n"), 1)
        }
        Some("tsx") => format!(
            "{text}export function {big}Option{number}() {{\n  return <button>{big} option {number}</button>;\n}}\n"
        ),
        _ => format!("{text}export const {area}Option{number} = '/{area}/option/{number}';\n"),
    }
}

//! `CODEOWNERS`: who owns a file. The four providers read the file in four ways.
//!
//! | Provider | Patterns | A file is owned by |
//! |---|---|---|
//! | [GitHub](https://docs.github.com/en/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners), [Bitbucket](https://support.atlassian.com/bitbucket-cloud/docs/set-up-and-use-code-owners/) | those of `.gitignore` without `!` and `[ ]` | the last rule that matches |
//! | [GitLab](https://docs.gitlab.com/user/project/codeowners/reference/) | relative ones match in every folder; `!` takes files out | the last rule that matches in each section |
//! | [Gitea, Forgejo](https://docs.gitea.com/usage/code-owners) | regular expressions of the whole path; `!` turns one round | the last rule that matches |
//!
//! Published crates read the dialect of GitHub only, so the file is read here.
//! A line that cannot be read is left out, as the providers do.

use regex::{Regex, RegexBuilder};

use super::repository::Provider;

/// Lines that are read; more are left out.
const MAX_LINES: usize = 20_000;
/// Bytes of the longest line that is read.
const MAX_LINE_BYTES: usize = 1_000;
/// Rules with regular expressions, which cost more.
const MAX_EXPRESSIONS: usize = 2_000;
/// Bytes that an expression may take when it is compiled.
const MAX_EXPRESSION_BYTES: usize = 200_000;
/// Folders of the deepest path that is matched.
const MAX_DEPTH: usize = 62;

/// The places where a provider looks for the file, in its order.
#[must_use]
pub const fn code_owners_paths(provider: Provider) -> &'static [&'static str] {
    match provider {
        Provider::GitHub => &[".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"],
        Provider::GitLab => &["CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"],
        Provider::Gitea => &["CODEOWNERS", "docs/CODEOWNERS", ".gitea/CODEOWNERS", ".forgejo/CODEOWNERS"],
        Provider::Bitbucket => &[".bitbucket/CODEOWNERS", "CODEOWNERS"],
    }
}

/// The rules of a file.
#[derive(Debug)]
pub struct CodeOwners {
    rules: Vec<Rule>,
    has_sections: bool,
}

#[derive(Debug)]
struct Rule {
    /// Number of the section of GitLab; 0 before the first one.
    section: usize,
    pattern: Pattern,
    is_negated: bool,
    /// The owner that is named first; none takes the file away from earlier rules.
    owner: Option<String>,
}

#[derive(Debug)]
enum Pattern {
    Glob(Glob),
    Expression(Regex),
}

impl Pattern {
    fn matches(&self, path: &str, parts: &[&str]) -> bool {
        match self {
            Self::Glob(glob) => glob.matches(parts),
            Self::Expression(expression) => expression.is_match(path),
        }
    }
}

impl CodeOwners {
    /// Reads a file as a provider does.
    #[must_use]
    pub fn parse(text: &str, provider: Provider) -> Self {
        let mut read = Self { rules: Vec::new(), has_sections: provider == Provider::GitLab };
        let (mut section, mut default_owner) = (0, None);
        for line in text.lines().take(MAX_LINES) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') || line.len() > MAX_LINE_BYTES {
                continue;
            }
            if provider == Provider::GitLab
                && let Some(owners) = section_owners(line)
            {
                section += 1;
                default_owner = first_owner(owners);
                continue;
            }
            let (is_negated, line) = match line.strip_prefix('!') {
                Some(rest) if matches!(provider, Provider::GitLab | Provider::Gitea) => (true, rest),
                // GitHub and Bitbucket know no negation and leave such a line out.
                Some(_) => continue,
                None => (false, line),
            };
            let (pattern, owners) = split_pattern(line);
            let pattern = match provider {
                Provider::Gitea if read.rules.len() >= MAX_EXPRESSIONS => break,
                Provider::Gitea => expression(pattern).map(Pattern::Expression),
                _ => Glob::parse(pattern, provider).map(Pattern::Glob),
            };
            let Some(pattern) = pattern else { continue };
            let owner = first_owner(owners).or_else(|| default_owner.clone());
            read.rules.push(Rule { section, pattern, is_negated, owner });
        }
        read
    }

    /// The owner of a file by its path from the root of the repository: the one
    /// that its rule names first.
    #[must_use]
    pub fn owner_of(&self, path: &str) -> Option<&str> {
        let path = path.trim_start_matches("./").trim_start_matches('/');
        let parts: Vec<&str> = path.split('/').collect();
        if path.is_empty() || parts.len() > MAX_DEPTH {
            return None;
        }
        if self.has_sections {
            return self.owner_by_section(path, &parts);
        }
        let deciding = self.rules.iter().rev().find(|rule| rule.matches(path, &parts));
        deciding?.owner.as_deref()
    }

    /// The owner in the first section that has one. A file that a section takes
    /// out stays out of it.
    fn owner_by_section(&self, path: &str, parts: &[&str]) -> Option<&str> {
        let mut sections = self.rules.chunk_by(|one, next| one.section == next.section);
        sections.find_map(|rules| {
            let matching = |rule: &&Rule| rule.pattern.matches(path, parts);
            if rules.iter().filter(|rule| rule.is_negated).any(|rule| matching(&rule)) {
                return None;
            }
            rules.iter().rev().find(matching)?.owner.as_deref()
        })
    }

    /// Whether no rule was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

impl Rule {
    fn matches(&self, path: &str, parts: &[&str]) -> bool {
        self.pattern.matches(path, parts) != self.is_negated
    }
}

/// What follows the name of a section: `[Name]`, `^[Name]` or `[Name][2]`.
fn section_owners(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('^').unwrap_or(line).strip_prefix('[')?;
    let (name, rest) = rest.split_once(']')?;
    if name.trim().is_empty() {
        return None;
    }
    let approvals = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    Some(approvals.map_or(rest, |(_, rest)| rest))
}

/// The first word of a line and what follows; `\ ` is a blank within it.
fn split_pattern(line: &str) -> (&str, &str) {
    let mut is_escaped = false;
    let end = line.char_indices().find(|(_, letter)| {
        let ends = letter.is_whitespace() && !is_escaped;
        is_escaped = *letter == '\\' && !is_escaped;
        ends
    });
    match end {
        Some((at, _)) => line.split_at(at),
        None => (line, ""),
    }
}

/// The first word that names an owner: `@name`, `@group/team`, `@@role` or an
/// address of mail.
fn first_owner(words: &str) -> Option<String> {
    let words = words.split_whitespace().take_while(|word| !word.starts_with('#'));
    let mut owners = words.filter(|word| word.len() > 1 && word.contains('@'));
    owners.next().map(str::to_owned)
}

fn expression(pattern: &str) -> Option<Regex> {
    let whole = format!("^(?:{pattern})$");
    RegexBuilder::new(&whole).size_limit(MAX_EXPRESSION_BYTES).build().ok()
}

/// A pattern of paths.
#[derive(Debug)]
struct Glob {
    parts: Vec<Part>,
    /// Whether it begins at the root of the repository.
    is_anchored: bool,
    /// Whether it names folders only.
    is_folder: bool,
    /// Whether it also owns what is below a folder of that name.
    descends: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// Any number of folders.
    Any,
    /// A name without wildcards.
    Name(String),
    /// A name with `*` or `?`.
    Wild(Vec<Letter>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Letter {
    Many,
    One,
    Is(char),
}

impl Part {
    fn parse(text: &str) -> Self {
        if text == "**" {
            return Self::Any;
        }
        let mut letters = Vec::new();
        let mut rest = text.chars();
        while let Some(letter) = rest.next() {
            match letter {
                '*' if letters.last() == Some(&Letter::Many) => {}
                '*' => letters.push(Letter::Many),
                '?' => letters.push(Letter::One),
                '\\' => letters.extend(rest.next().map(Letter::Is)),
                letter => letters.push(Letter::Is(letter)),
            }
        }
        let plain = letters.iter().map(|letter| match letter {
            Letter::Is(letter) => Some(*letter),
            _ => None,
        });
        plain.collect::<Option<String>>().map_or(Self::Wild(letters), Self::Name)
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Name(wanted) => wanted == name,
            Self::Wild(letters) => is_like(letters, name),
        }
    }
}

/// Whether a name fits letters with wildcards, in time proportional to both.
fn is_like(letters: &[Letter], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let (mut letter, mut at) = (0, 0);
    // Where the last `*` stands, and what it has taken.
    let mut star = None;
    while at < name.len() {
        match letters.get(letter) {
            Some(Letter::Many) => {
                star = Some((letter, at));
                letter += 1;
            }
            Some(Letter::One) => (letter, at) = (letter + 1, at + 1),
            Some(Letter::Is(wanted)) if *wanted == name[at] => (letter, at) = (letter + 1, at + 1),
            _ => match star {
                Some((begin, taken)) => {
                    star = Some((begin, taken + 1));
                    (letter, at) = (begin + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    letters[letter..].iter().all(|letter| *letter == Letter::Many)
}

impl Glob {
    /// `None` for a pattern of nothing, and for one that the provider refuses.
    fn parse(pattern: &str, provider: Provider) -> Option<Self> {
        // GitHub takes ranges of letters for a mistake.
        if provider == Provider::GitHub && pattern.contains('[') {
            return None;
        }
        let is_folder = pattern.ends_with('/');
        let inner = pattern.trim_matches('/');
        let has_inner_slash = inner.contains('/');
        let is_rooted = pattern.starts_with('/');
        let is_anchored = is_rooted || (has_inner_slash && provider != Provider::GitLab);
        let parts: Vec<Part> =
            inner.split('/').filter(|part| !part.is_empty()).map(Part::parse).take(MAX_DEPTH).collect();
        let last = parts.last()?;
        let descends = is_folder
            || (provider != Provider::GitLab
                && !matches!(last, Part::Wild(letters) if letters == &[Letter::Many]));
        Some(Self { is_anchored, is_folder, descends, parts })
    }

    /// Whether it matches a path. Bit `n` of `reached` says that the pattern so
    /// far can end before part `n` of the path.
    fn matches(&self, path: &[&str]) -> bool {
        let end = path.len();
        let all = (1_u64 << (end + 1)) - 1;
        let mut reached: u64 = if self.is_anchored { 1 } else { all >> 1 };
        for part in &self.parts {
            if reached == 0 {
                return false;
            }
            reached = match part {
                // From the first place on, everything.
                Part::Any => all & !((1_u64 << reached.trailing_zeros()) - 1),
                part => (0..end)
                    .filter(|at| reached & (1 << at) != 0 && part.matches(path[*at]))
                    .fold(0, |next, at| next | (1 << (at + 1))),
            };
        }
        let is_whole = reached & (1 << end) != 0 && !self.is_folder;
        let is_below = self.descends && reached & (all >> 1) != 0;
        is_whole || is_below
    }
}

#[cfg(test)]
#[path = "codeowners_tests.rs"]
mod tests;

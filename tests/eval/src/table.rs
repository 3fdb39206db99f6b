//! A table of figures, each beside its target and what a trivial method gets.

/// What a figure has to be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// Not below.
    AtLeast(f64),
    /// Not above.
    AtMost(f64),
    /// Shown, not judged.
    None,
}

impl Target {
    fn is_met(self, figure: f64) -> bool {
        match self {
            Self::AtLeast(bound) => figure >= bound,
            Self::AtMost(bound) => figure <= bound,
            Self::None => true,
        }
    }
}

/// Figures of one method.
#[derive(Debug)]
pub(crate) struct Table {
    title: String,
    rows: Vec<(String, f64, Target, Option<f64>)>,
    notes: Vec<String>,
}

impl Table {
    /// An empty table.
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), rows: Vec::new(), notes: Vec::new() }
    }

    /// Adds a figure; `trivial` is what the trivial method gets.
    pub(crate) fn add(&mut self, name: impl Into<String>, figure: f64, target: Target, trivial: Option<f64>) {
        self.rows.push((name.into(), figure, target, trivial));
    }

    /// Adds a line below the table.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Whether every figure meets its target.
    pub(crate) fn is_good(&self) -> bool {
        self.rows.iter().all(|(_, figure, target, _)| target.is_met(*figure))
    }

    /// Writes the table to standard output.
    #[expect(clippy::print_stdout, reason = "the table is what the program is for")]
    pub(crate) fn print(&self) {
        println!("{}", self.title);
        println!("  {:<34} {:>9}  {:>9}  {:>9}", "", "figure", "target", "trivial");
        for (name, figure, target, trivial) in &self.rows {
            let bound = match target {
                Target::AtLeast(bound) => format!(">= {}", short(*bound)),
                Target::AtMost(bound) => format!("<= {}", short(*bound)),
                Target::None => String::new(),
            };
            let trivial = trivial.map(short).unwrap_or_default();
            let mark = if target.is_met(*figure) { "" } else { "  missed" };
            println!("  {name:<34} {:>9}  {bound:>9}  {trivial:>9}{mark}", short(*figure));
        }
        for note in &self.notes {
            println!("  {note}");
        }
        println!();
    }
}

fn short(figure: f64) -> String {
    if figure.fract() == 0.0 && figure.abs() >= 2.0 { format!("{figure}") } else { format!("{figure:.4}") }
}

//! Rows of a list to choose from (`chooser` of `components/form.html`).

/// Something that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChoiceRow {
    /// Its id.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// What else tells it from others.
    pub second: Option<&'static str>,
    /// Whether it is chosen now.
    pub is_chosen: bool,
}

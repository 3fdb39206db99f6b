//! What is written down equals what is built.

use callboard_platform::config::registry;

fn read(path: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    std::fs::read_to_string(format!("{root}{path}")).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_reference_lists_every_setting() {
    let page = read("docs/reference/configuration.md");
    let table = page
        .split("<!-- configuration:begin -->")
        .nth(1)
        .and_then(|rest| rest.split("<!-- configuration:end -->").next());
    let table = table.expect("the page marks its table").trim();
    assert_eq!(
        table,
        registry::markdown_table().trim(),
        "paste what `callboard config` prints into docs/reference/configuration.md"
    );
}

use proptest::prelude::*;
use serde_json::json;

use super::rewrite::{Lines, end_of_file, rewrite, unified_diff};
use super::*;
use crate::trace::dom::Node;

fn named(role: &str, name: &str) -> Element {
    Element { role: role.into(), name: name.into(), text: name.into(), ..Element::default() }
}

fn role(role: &'static str, name: &str) -> Locator {
    Locator(vec![Call { method: "getByRole", args: vec![json!(role), json!({ "name": name })] }])
}

const ACCOUNT: &str = r#"- generic [ref=e1]:
  - banner [ref=e2]:
    - heading "Account" [level=1] [ref=e3]
    - navigation "Main" [ref=e4]:
      - link "Home" [ref=e5] [cursor=pointer]:
        - /url: /
      - 'link "Cart: 2" [ref=e6]'
  - main [ref=e8]:
    - form "Sign in" [ref=e9]:
      - text: Email
      - textbox "Email" [active] [ref=e11]: ada@example.com
      - button "Sign in" [ref=e14]
"#;

#[test]
fn an_accessibility_snapshot_gives_its_elements_without_what_was_typed() {
    let page = aria::page(ACCOUNT);
    let found = page.elements();
    let listed: Vec<String> = found.iter().map(|each| format!("{} {}", each.role, each.name)).collect();
    assert_eq!(
        listed,
        [
            "banner ",
            "heading Account",
            "navigation Main",
            "link Home",
            "link Cart: 2",
            "main ",
            "form Sign in",
            "textbox Email",
            "button Sign in"
        ]
    );
    assert_eq!(found[3].href, "/");
    assert_eq!(found[7].text, "");
    assert_eq!(found[8].landmarks, ["form:Sign in", "main"]);
    assert_eq!(found[6].landmarks, ["main"]);
    assert_eq!(found[3].landmarks, ["navigation:Main", "banner"]);
}

#[test]
fn a_renamed_button_is_found_and_a_removed_one_is_not() {
    let page = aria::page(ACCOUNT);
    let target = Element { role: "button".into(), name: "Log in".into(), ..Element::default() };
    let answer = heal(&target, &[], page.elements());
    let Verdict::Answer(best) = answer.verdict else { panic!("{answer:?}") };
    assert_eq!(page.elements()[best.index].name, "Sign in");
    let written: Vec<String> =
        locators(&page, best.index).iter().map(|each| each.locator.written('\'')).collect();
    assert_eq!(
        written,
        [
            "getByRole('button', { name: 'Sign in' })",
            "getByRole('form', { name: 'Sign in' }).getByRole('button', { name: 'Sign in' })",
            "getByRole('button')"
        ],
        "that it says its name is not known"
    );

    let without: Vec<Element> =
        page.elements().iter().filter(|each| each.role != "button").cloned().collect();
    let target = Element { landmarks: vec!["main".into()], ..named("button", "Log in") };
    assert_eq!(heal(&target, &[], &without).verdict, Verdict::Abstain);
    assert_eq!(heal(&target, &[], &[]).confidence(), 25);
}

#[test]
fn what_was_there_before_is_not_the_lost_element() {
    let target = named("button", "Save");
    let before = [target.clone(), named("button", "Send")];
    let page = [named("button", "Send"), named("link", "Home")];
    assert_eq!(heal(&target, &before, &page).verdict, Verdict::Abstain);
    let alone = heal(&target, &before[..1], &page);
    assert_eq!(alone.best.map(|best| best.index), Some(0));
    assert_ne!(alone.verdict, Verdict::Abstain);
}

#[test]
fn the_kind_of_locator_a_test_uses_is_kept_when_it_is_good_enough() {
    let page = Page::from(vec![
        Element { test_id: "pay".into(), ..named("button", "Pay") },
        named("button", "Pay later"),
        Element { id: "x".into(), tag: "div".into(), ..Element::default() },
    ]);
    let priced = locators(&page, 0);
    let written: Vec<String> = priced.iter().map(|each| each.locator.written('\'')).collect();
    assert_eq!(
        written,
        [
            "getByTestId('pay')",
            "getByRole('button', { name: 'Pay', exact: true })",
            "getByText('Pay', { exact: true })"
        ]
    );
    let kept = recommend(&priced, "getByRole").expect("is recommended");
    assert_eq!(kept.recommended.locator.method(), "getByRole");
    assert!(kept.preserves_convention && kept.has_durable_alternative && !kept.suggest_add_test_id);
    assert_eq!(kept.durable.locator.written('"'), "getByTestId(\"pay\")");
    let poor = recommend(&locators(&page, 2), "getByRole").expect("is recommended");
    assert_eq!(poor.recommended.locator.written('\''), "locator('#x')");
    assert!(!poor.preserves_convention && !poor.suggest_add_test_id && !poor.has_durable_alternative);
}

#[test]
fn equal_elements_are_told_apart_by_their_landmark_or_their_place() {
    let page = aria::page(
        "- region \"Orders\":\n  - button \"Edit\"\n- region \"Orders archive\":\n  - button \"Edit\"\n- form \"Team\":\n  - button \"Edit\"\n",
    );
    let cheapest = |index: usize| locators(&page, index)[0].locator.written('\'');
    assert_eq!(cheapest(5), "getByRole('form', { name: 'Team' }).getByRole('button', { name: 'Edit' })");
    // Its name is a part of another one's.
    assert_eq!(
        cheapest(1),
        "getByRole('region', { name: 'Orders', exact: true }).getByRole('button', { name: 'Edit' })"
    );
    let same =
        aria::page("- region \"Orders\":\n  - button \"Edit\"\n- region \"Orders\":\n  - button \"Edit\"\n");
    assert!(locators(&same, 1).iter().all(|each| each.locator.0[0].args[0] != "region"));
    let page = Page::from(vec![named("button", "Edit"), named("button", "Edit")]);
    let last = locators(&page, 1).pop().expect("has a place");
    assert_eq!(last.locator.written('\''), "getByRole('button', { name: 'Edit', exact: true }).nth(1)");
    assert!(recommend(&locators(&page, 1), "getByRole").is_some_and(|best| best.suggest_add_test_id));
}

#[test]
fn an_edit_replaces_the_failing_chain_and_nothing_else() {
    let line = r#"    await page.getByRole("button", { name: "Log in" }).click({ timeout: 700 }); // getByText('x')"#;
    let edited = rewrite(line, "getByRole('button', { name: 'Log in' })", &role("button", "Sign \"in\""));
    assert_eq!(
        edited.as_deref(),
        Some(
            r#"    await page.getByRole("button", { name: "Sign \"in\"" }).click({ timeout: 700 }); // getByText('x')"#
        )
    );
    let exact = rewrite(
        "x.getByText(`a`, {exact:true}).click()",
        "getByText('a', { exact: true })",
        &role("button", "b"),
    );
    assert_eq!(exact.as_deref(), Some("x.getByRole(`button`, { name: `b` }).click()"));
    for ambiguous in [
        "await expect(page.getByText('a')).toHaveText(await page.getByText('a').innerText())",
        "await button.click()",
        "await page.getByText(`a${b}`).click()",
        "await page.getByTestId('list').getByText('a').click()",
        "await page.getByText(label).click()",
    ] {
        assert_eq!(rewrite(ambiguous, "getByText('a')", &role("button", "b")), None, "{ambiguous}");
    }
}

#[test]
fn a_diff_holds_the_lines_that_are_known() {
    let path = "tests/a.spec.ts";
    let place = Lines { path, line: 3, before: &["one", "two"], after: &["four"], is_end_open: false };
    assert_eq!(
        unified_diff(place, "old", "new").as_deref(),
        Some(
            "--- a/tests/a.spec.ts\n+++ b/tests/a.spec.ts\n@@ -1,4 +1,4 @@\n one\n two\n-old\n+new\n four\n"
        )
    );
    assert_eq!(unified_diff(Lines { path: "a\nb", ..place }, "old", "new"), None);
    assert_eq!(unified_diff(Lines { line: 2, ..place }, "old", "new"), None);
}

#[test]
fn a_diff_says_that_the_last_line_has_no_break() {
    let place = Lines { path: "a.ts", line: 2, before: &["one"], after: &[], is_end_open: true };
    let end = "\\ No newline at end of file\n";
    let head = "--- a/a.ts\n+++ b/a.ts\n@@ -1,2 +1,2 @@\n one\n";
    assert_eq!(unified_diff(place, "old", "new"), Some(format!("{head}-old\n{end}+new\n{end}")));
    let above = Lines { after: &["});"], ..place };
    let head = head.replace("1,2 +1,2", "1,3 +1,3");
    assert_eq!(unified_diff(above, "old", "new"), Some(format!("{head}-old\n+new\n }});\n{end}")));
    let far = unified_diff(Lines { after: &["3", "4", "5", "6"], ..place }, "old", "new").expect("a diff");
    assert!(!far.contains("No newline"), "{far}");
}

#[test]
fn a_piece_that_breaks_off_tells_the_end_of_its_file() {
    let source = "     3 | a\n     4 | b\n     5 | c\n>    6 | d\n     7 | });";
    assert_eq!(end_of_file(source, 6), Some(7));
    assert_eq!(end_of_file(&format!("{source}\n     8 | "), 6), Some(8));
    assert_eq!(end_of_file(&format!("{source}\n     8 | \n     9 | e"), 6), None);
    assert_eq!(end_of_file(&format!("{source}\n[truncated 9 chars]"), 6), None);
    assert_eq!(end_of_file(source, 2), None);
    assert_eq!(end_of_file("", 1), None);
}

#[test]
fn stored_source_gives_its_lines_back() {
    let source =
        "*   23 | test('x', async () => {\n>   26 |     a | b;\n    27 | \n    28 |\nnothing | here\n";
    let lines = rewrite::numbered_lines(source);
    assert_eq!(lines, [(23, "test('x', async () => {"), (26, "    a | b;"), (27, ""), (28, "")]);
}

fn element(tag: &str, attributes: &[(&str, &str)], children: Vec<Node>) -> Node {
    let attributes = attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Node::Element { tag: tag.into(), attributes: attributes.collect(), children }
}

fn text(text: &str) -> Node {
    Node::Text(text.into())
}

#[test]
fn a_document_gives_roles_names_labels_and_hides_what_is_hidden() {
    let root = element(
        "html",
        &[],
        vec![
            element("head", &[], vec![element("title", &[], vec![text("No")])]),
            element(
                "body",
                &[],
                vec![element(
                    "form",
                    &[("aria-label", "Sign in")],
                    vec![
                        element(
                            "label",
                            &[],
                            vec![text("Email "), element("input", &[("name", "email")], vec![])],
                        ),
                        element("label", &[("for", "pw")], vec![text("Password")]),
                        element("input", &[("id", "pw"), ("type", "password")], vec![]),
                        element(
                            "button",
                            &[("data-testid", "go"), ("class", "btn wide")],
                            vec![text(" Sign\n in ")],
                        ),
                        element("button", &[("style", "color: red; display : none")], vec![text("Hidden")]),
                    ],
                )],
            ),
        ],
    );
    let page = inventory::page(&root, "data-testid");
    let found = page.elements();
    let button = found.iter().find(|each| each.role == "button").expect("is listed");
    assert_eq!(
        (button.name.as_str(), button.test_id.as_str(), button.landmarks.as_slice()),
        ("Sign in", "go", &["form:Sign in".to_owned()][..])
    );
    assert_eq!(button.path, "html/body/form/button");
    let fields: Vec<(&str, &str)> = found
        .iter()
        .filter(|each| each.tag == "input")
        .map(|each| (each.role.as_str(), each.label.as_str()))
        .collect();
    assert_eq!(fields, [("textbox", "Email"), ("", "Password")][..1]);
    assert_eq!(found.iter().filter(|each| each.role == "button").count(), 1);
}

/// The locators of the listed element with this name or text.
fn locators_of(page: &Page, wanted: &str) -> Vec<String> {
    let is_wanted = |each: &Element| each.name == wanted || each.text == wanted;
    let index = page.elements().iter().position(is_wanted).expect("is listed");
    locators(page, index).iter().map(|each| each.locator.written('\'')).collect()
}

#[test]
fn what_an_accessibility_tree_does_not_prove_is_not_written() {
    let page = aria::page(
        "- button \"Close\": ×\n- textbox \"Search\"\n- button \"Pay now\"\n- text: Pay now or later\n- paragraph: Thank you\n- link \"Terms\":\n  - /url: /terms\n",
    );
    assert_eq!(locators_of(&page, "Close"), ["getByRole('button', { name: 'Close' })", "getByText('×')"]);
    assert_eq!(
        locators_of(&page, "Search"),
        ["getByRole('textbox', { name: 'Search' })", "getByRole('textbox')"]
    );
    assert_eq!(locators_of(&page, "Pay now"), ["getByRole('button', { name: 'Pay now' })"]);
    assert_eq!(locators_of(&page, "Thank you"), ["getByText('Thank you')", "getByRole('paragraph')"]);
    assert_eq!(locators_of(&page, "Terms"), ["getByRole('link', { name: 'Terms' })", "getByRole('link')"]);
}

#[test]
fn a_frame_is_no_part_of_the_page() {
    let page =
        aria::page("- button \"Pay\"\n- iframe \"Card\":\n  - textbox \"Number\"\n- button \"Back\"\n");
    let names: Vec<&str> = page.elements().iter().map(|each| each.name.as_str()).collect();
    assert_eq!(names, ["Pay", "Back"]);
    let inside = element("button", &[], vec![text("Pay")]);
    let root = element("body", &[], vec![element("iframe", &[], vec![inside])]);
    assert!(inventory::page(&root, "data-testid").elements().is_empty());
}

#[test]
fn what_is_not_listed_is_counted_all_the_same() {
    let root = element(
        "body",
        &[],
        vec![
            element(
                "div",
                &[("class", "card")],
                vec![text("Pay "), element("b", &[], vec![text("now")]), text(" or later")],
            ),
            element("span", &[], vec![element("button", &[("data-testid", "pay")], vec![text("Pay now")])]),
            element("button", &[("data-testid", "pay"), ("hidden", "")], vec![text("Hidden")]),
            element("div", &[("class", "card"), ("data-testid", "note")], vec![text("Paid")]),
            element("span", &[("title", "Help")], vec![]),
            element(
                "template",
                &[("__playwright_shadow_root_", "open")],
                vec![element("h2", &[], vec![text("Bill")])],
            ),
        ],
    );
    let page = inventory::page(&root, "data-testid");
    assert_eq!(
        locators_of(&page, "Pay now"),
        [
            "getByRole('button', { name: 'Pay now' })",
            "getByText('Pay now', { exact: true })",
            "getByRole('button')"
        ],
        "its test id and its tag find the hidden one too"
    );
    assert_eq!(locators_of(&page, "Paid"), ["getByTestId('note')", "getByText('Paid')"]);
    assert_eq!(
        locators_of(&page, "Bill"),
        [
            "getByRole('heading', { name: 'Bill' })",
            "getByText('Bill')",
            "getByRole('heading')",
            "locator('h2')"
        ]
    );
    let found = |locator: &str| found_by(locator, &page).map(|found| found.places.len());
    assert_eq!(
        [
            "locator('div')",
            "locator('span')",
            "locator('.card')",
            "getByTestId('pay')",
            "getByText('Pay now')"
        ]
        .map(found),
        [Some(2), Some(2), Some(2), Some(2), Some(2)]
    );
    assert_eq!(found("getByText('or later')"), Some(1), "the innermost that says it");
}

#[test]
fn what_was_there_before_is_known_in_an_accessibility_tree_too() {
    let stored =
        |name: &str, id: &str| Element { tag: "button".into(), id: id.into(), ..named("button", name) };
    let before = [stored("Save", "save"), stored("Save draft", "draft")];
    let page = aria::page("- heading \"Letter\"\n- button \"Save draft\"\n- link \"Home\"\n");
    assert_eq!(heal(&before[0], &before, page.elements()).verdict, Verdict::Abstain);
    assert!(matches!(heal(&before[0], &before[..1], page.elements()).verdict, Verdict::Answer(_)));
}

#[test]
fn a_locator_is_like_an_element_that_was_renamed() {
    let target = |locator: &str| Finder::of_text(locator).expect("is a locator").target();
    let field = Element { label: "First name".into(), ..named("textbox", "First name") };
    assert!(is_like(&target("getByLabel('Name')"), &field));
    assert!(is_like(&target("getByRole('combobox', { name: 'Your name' })"), &field), "of the same family");
    for other in [
        "getByLabel('City')",
        "getByRole('button', { name: 'First name' })",
        "getByRole('textbox')",
        "locator('.x')",
    ] {
        assert!(!is_like(&target(other), &field), "{other}");
    }
    let button = Element { test_id: "pay-button".into(), ..Element::default() };
    assert!(is_like(&target("getByTestId('pay-now-button')"), &button));
}

#[test]
fn a_diff_of_lines_with_carriage_returns_keeps_them() {
    let source = ">    1 | old\r\n     2 | next\r";
    assert_eq!(rewrite::numbered_lines(source), [(1, "old"), (2, "next")]);
    assert_eq!(rewrite::source_lines(source), [(1, "old\r"), (2, "next\r")]);
    let place = Lines { path: "a.ts", line: 1, before: &[], after: &["next\r"], is_end_open: false };
    assert_eq!(
        unified_diff(place, "old\r", "new\r").as_deref(),
        Some("--- a/a.ts\n+++ b/a.ts\n@@ -1,2 +1,2 @@\n-old\r\n+new\r\n next\r\n")
    );
    assert_eq!(unified_diff(place, "o\rld", "new"), None);
}

fn any_element() -> impl Strategy<Value = Element> {
    let word = || prop::sample::select(vec!["", "Save", "Save all", "Log in", "a'b\"`${c}\\", "\u{2028}"]);
    (word(), word(), prop::sample::select(vec!["", "button", "link", "tab"]), word()).prop_map(
        |(name, test_id, role, id)| Element {
            role: role.into(),
            name: name.into(),
            text: name.into(),
            test_id: test_id.into(),
            id: id.into(),
            tag: "button".into(),
            ..Element::default()
        },
    )
}

proptest! {
    #[test]
    fn every_locator_reads_as_written_and_is_one_chain(page in prop::collection::vec(any_element(), 1..8), at in 0..8_usize, quote in prop::sample::select(vec!['\'', '"', '`'])) {
        let page = Page::from(page);
        for priced in locators(&page, at % page.elements().len()) {
            let written = priced.locator.written(quote);
            let chain = callboard_domain::locator::parse(&written).expect("is a chain");
            prop_assert_eq!(chain.range, 0..written.len());
            prop_assert_eq!(chain.calls.len(), priced.locator.0.len());
            prop_assert!(chain.calls.iter().all(callboard_domain::locator::Call::is_locator));
        }
    }

    #[test]
    fn an_edited_line_holds_the_replacement_once(before in "[a-z ]{0,8}", after in "[a-z ();]{0,8}", name in any::<String>()) {
        let line = format!("{before};page.getByText('lost').click(){after}");
        if let Some(edited) = rewrite(&line, "getByText(\"lost\")", &role("button", &name)) {
            prop_assert!(!edited.contains("lost"));
            let chain = callboard_domain::locator::first_chain(&edited).expect("is a chain");
            let kept: String = name.chars().filter(|char| !char.is_control() || matches!(char, '\n' | '\r' | '\t')).collect();
            prop_assert_eq!(chain.calls[0].option("name").and_then(|name| name.value.as_text()), Some(kept.as_str()));
        }
    }

    #[test]
    fn ratios_are_symmetric_enough_and_bounded(one in "[a-d]{0,12}", other in "[a-d]{0,12}") {
        let ratio = ratio::text_ratio(&one, &other);
        prop_assert!((0.0..=1.0).contains(&ratio));
        prop_assert_eq!(ratio == 1.0, one == other);
    }

    #[test]
    fn any_text_is_read_as_a_snapshot_without_panic(text in "(\\PC|[-'\": \n])*") {
        let page = aria::page(&text);
        let _ = heal(&Element::default(), &[], page.elements());
        let _ = locators(&page, 0);
    }
}

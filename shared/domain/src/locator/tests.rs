use proptest::prelude::*;

use super::*;

fn names(chain: &Chain) -> Vec<&str> {
    chain.calls.iter().map(|call| call.name.as_str()).collect()
}

#[test]
fn a_logged_locator_is_read_with_its_names_and_options() {
    let text = "getByRole('row', { name: 'Order 5069 Umbrella' }).getByRole('button', { name: /re\\/move/i })\n  - more";
    let chain = parse(text).expect("is a chain");
    assert_eq!(names(&chain), ["getByRole", "getByRole"]);
    assert_eq!(chain.calls[0].text(), Some("row"));
    assert_eq!(
        chain.calls[0].option("name").map(|name| &name.value),
        Some(&Value::Text("Order 5069 Umbrella".into()))
    );
    assert_eq!(
        chain.calls[1].option("name").map(|name| &name.value),
        Some(&Value::Pattern { source: "re\\/move".into(), flags: "i".into() })
    );
    assert_eq!(&text[chain.range.clone()], text.lines().next().unwrap_or_default());
}

#[test]
fn chains_are_found_in_source_with_the_bytes_of_every_call_and_argument() {
    let source = "await expect(this.page\n  .getByTestId(`cart`) // the cart\n  .filter({ has: page.getByText(\"a)b\"), hasText }))\n  .toHaveText(x);\nconst b = page.locator('css=#a >> nth=1', opts[0]).nth(2 * i).click();";
    let found = chains(source);
    assert_eq!(
        found.iter().map(names).collect::<Vec<_>>(),
        [vec!["getByTestId", "filter"], vec!["locator", "nth", "click"]]
    );
    assert_eq!(&source[found[0].root.clone()], "this.page");
    assert_eq!(&source[found[0].calls[0].arguments[0].range.clone()], "`cart`");
    let Value::Chain(inner) = &found[0].calls[1].option("has").expect("has").value else { panic!("a chain") };
    assert_eq!(&source[inner.range.clone()], "page.getByText(\"a)b\")");
    assert_eq!(&source[found[0].calls[1].option("hasText").expect("hasText").range.clone()], "hasText");
    assert_eq!(found[1].locator_calls().len(), 2);
    assert_eq!(
        found[1].locator_range().map(|range| &source[range]),
        Some("locator('css=#a >> nth=1', opts[0]).nth(2 * i)")
    );
    assert_eq!(found[1].calls[0].text(), Some("css=#a >> nth=1"));
    assert_eq!(found[1].calls[1].arguments[0].value, Value::Expression);
}

#[test]
fn values_of_every_kind_are_told_apart() {
    let text = r#"locator('a\'\u0041\x42\u{1F600}', `t ${a(`x`)} u`, -1.5, [1, 'b'], { 'k': 1, ...rest, f() { return 1 } }, (a) => a / 2, x ? '(' : ")", /[/]\)/g.source)"#;
    let chain = parse(text).expect("is a chain");
    let values: Vec<&Value> = chain.calls[0].arguments.iter().map(|argument| &argument.value).collect();
    assert_eq!(values[0], &Value::Text("a'AB\u{1F600}".into()));
    assert_eq!(values[1], &Value::Expression);
    assert_eq!(values[2], &Value::Number(-1.5));
    assert!(matches!(values[3], Value::List(items) if items.len() == 2));
    assert!(matches!(values[4], Value::Object(properties) if properties[0].name == "k"));
    assert_eq!(values[5..], [&Value::Expression; 3]);
    assert_eq!(chain.range, 0..text.len());
}

#[test]
fn what_does_not_end_is_no_chain() {
    for text in
        ["", "page", "getByText('a'", "getByText('a)", "getByText(/a)", "getByText(`${)`)", "1.getByText()"]
    {
        assert_eq!(parse(text), None, "{text}");
    }
    assert_eq!(parse(&format!("getByText('{}')", "x".repeat(MAX_CHAIN_BYTES))), None);
    assert_eq!(parse(&"a(".repeat(500)), None);
}

#[test]
fn a_locator_that_steps_into_a_frame_says_so() {
    let crosses = |text: &str| parse(text).expect("is a chain").crosses_frames();
    assert!(crosses("page.frameLocator('#f').getByText('x').click()"));
    assert!(crosses("locator('#f').contentFrame().getByRole('button')"));
    assert!(!crosses("getByText('x').filter({ has: getByText('y') }).contentEditable()"));
}

fn chain_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "page.",
        "getByText",
        "locator",
        "(",
        ")",
        "'",
        "\"",
        "`",
        "${",
        "}",
        "{",
        "[",
        "]",
        "/",
        "\\",
        ",",
        ".",
        ":",
        "\n",
        " ",
        "a",
        "1",
        "-",
        "ä",
        "\u{1F600}",
        "\\u00e9",
        "\\u{1}",
        "\\x4",
        "//",
        "/*",
        "*/",
        "=>",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic_and_ranges_are_parts_of_it(text in prop_oneof![chain_text(), any::<String>()]) {
        let mut last = 0;
        for chain in chains(&text) {
            prop_assert!(chain.range.start >= last && text.get(chain.range.clone()).is_some());
            last = chain.range.end;
            for call in &chain.calls {
                prop_assert!(text.get(call.range.clone()).is_some_and(|part| part.starts_with(&call.name)));
                for argument in &call.arguments {
                    prop_assert!(text.get(argument.range.clone()).is_some());
                }
            }
        }
        let _ = parse(&text);
    }

    #[test]
    fn a_string_argument_comes_back_as_it_was(argument in any::<String>()) {
        let quoted = serde_json::to_string(&argument).expect("is JSON").replace("\\b", "\\x08").replace("\\f", "\\x0c");
        let text = format!("getByText({quoted})");
        if text.len() <= MAX_CHAIN_BYTES && !argument.contains('\\') {
            let chain = parse(&text).expect("is a chain");
            prop_assert_eq!(chain.calls[0].text(), Some(argument.as_str()));
        }
    }
}

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn read(value: &Value) -> Result<TestFunction, String> {
    TestFunction::read(value.as_object().unwrap()).map_err(|faults| faults.to_string())
}

fn paying() -> Value {
    json!({
        "name": "payWithCard", "kind": "page-object-method", "module": "./pages/checkout", "receiver": "CheckoutPage",
        "params": [
            {"name": "card", "type": "string"}, {"name": "count", "type": "number"},
            {"name": "user", "type": "object", "fields": ["email"]},
        ],
        "steps": [
            {"action": "goto", "value": "/orders/{{count}}/pay"},
            {"action": "fill", "role": "textbox", "name": "Card", "value": "1234"},
            {"action": "fill", "target": {"testId": "mail"}, "value": "to: {{user.email}}"},
            {"action": "click", "locator": "page.getByRole('row', { name: /Order \\d+/i }).filter({ hasText: \"it's\" }).getByRole('button', { name: 'Pay', exact: true }).first()"},
            {"action": "assertVisible", "role": "status"},
        ],
        "paramSources": [{"param": "card", "stepIndex": 1, "from": "value"}],
    })
}

#[test]
fn a_function_is_written_as_its_kind_is_written() {
    let mut given = paying();
    let method = read(&given).unwrap();
    assert_eq!(
        method.code(),
        "async payWithCard(card: string, count: number, user: { email: string }): Promise<void> {\n  \
           await this.page.goto('/orders/' + String(count) + '/pay');\n  \
           await this.page.getByRole('textbox', { name: 'Card' }).fill(card);\n  \
           await this.page.getByTestId('mail').fill('to: ' + user.email);\n  \
           await this.page.getByRole('row', { name: /Order \\d+/i }).filter({ hasText: 'it\\'s' })\
           .getByRole('button', { name: 'Pay', exact: true }).first().click();\n  \
           await expect(this.page.getByRole('status')).toBeVisible();\n}\n"
    );
    // Of the five: 1, 0.9, 0.999, 0 and 0.49.
    assert_eq!(method.confidence(), 0.6778);
    assert_eq!(
        method.warnings(),
        ["steps[3]: the element is found by its position; a name or a test id holds longer."]
    );
    let stored = serde_json::to_value(&method).unwrap();
    assert_eq!(serde_json::from_value::<TestFunction>(stored.clone()).unwrap(), method);
    assert_eq!(read(&stored).unwrap(), method, "what is told can be sent again");

    given["steps"] = json!([{"action": "click", "testId": "{{card}}"}]);
    given["params"] = json!([{"name": "card", "type": "string"}]);
    given["paramSources"] = json!([]);
    given["returnsPage"] = json!(true);
    let code = |kind: &str| {
        let mut given = given.clone();
        given["kind"] = json!(kind);
        read(&given).unwrap().code()
    };
    assert_eq!(
        code("helper"),
        "export async function payWithCard(page: Page, card: string): Promise<Page> {\n  \
           await page.getByTestId(card).click();\n  return page;\n}\n"
    );
    assert_eq!(
        code("fixture"),
        "payWithCard: async ({ page }, use) => {\n  await use(async (card: string): Promise<Page> => {\n    \
           await page.getByTestId(card).click();\n    return page;\n  });\n}\n"
    );
}

#[test]
fn everything_that_is_wrong_is_told_with_its_place() {
    let with = |change: Value| {
        let mut given = paying();
        for (key, value) in change.as_object().unwrap() {
            given[key] = value.clone();
        }
        read(&given).expect_err(&change.to_string())
    };
    let step = |step: Value| with(json!({"steps": [step], "params": [], "paramSources": []}));
    assert_eq!(
        with(
            json!({"name": "class", "kind": "page", "module": "../x", "receiver": "a b", "steps": [], "params": [], "paramSources": []})
        ),
        "name: must be an identifier: letters, digits, _ and $, no digit first, no reserved word; \
         kind: must be one of page-object-method, helper, fixture; \
         module: must be a relative path with / and without .., quotes and backslashes, such as ./pages/checkout; \
         receiver: must be an identifier: letters, digits, _ and $, no digit first, no reserved word; \
         steps: must be 1 to 30 entries, got 0"
    );
    for (wrong, message) in [
        (json!({"action": "hover"}), "steps[0].action: must be one of goto"),
        (json!({"action": "click"}), "steps[0]: needs an element"),
        (json!({"action": "click", "name": "Pay"}), "steps[0].role: is required with a name"),
        (json!({"action": "click", "role": "But ton"}), "steps[0].role: must be a role"),
        (json!({"action": "click", "testId": "a", "value": "x"}), "steps[0].value: click takes none"),
        (json!({"action": "fill", "testId": "a"}), "steps[0].value: fill needs one"),
        (json!({"action": "fill", "testId": "a", "value": "{{b}}"}), "steps[0]: \"b\" is no parameter"),
        (json!({"action": "fill", "testId": 7, "value": ""}), "steps[0].testId: must be a text"),
        (json!({"action": "goto", "value": "javascript:alert(1)"}), "steps[0].value: must be a path"),
        (json!({"action": "goto", "value": "//evil.example"}), "steps[0].value: must be a path"),
        (json!({"action": "goto", "value": "/", "testId": "a"}), "steps[0]: goto opens an address"),
        (json!({"action": "click", "locator": "getByRole(`x`)"}), "steps[0].locator: a template text"),
        (
            json!({"action": "click", "locator": "getByText('a').click()"}),
            "steps[0].locator: click is no part",
        ),
        (
            json!({"action": "click", "locator": "getByText('a'); x()"}),
            "steps[0].locator: this is no locator",
        ),
        (json!({"action": "click", "locator": "getByText(process.env.A)"}), "steps[0].locator: only texts"),
        (
            json!({"action": "click", "locator": "window.getByText('a')"}),
            "steps[0].locator: a locator begins",
        ),
        (
            json!({"action": "click", "locator": "filter({ has: window.locator('a') })"}),
            "steps[0].locator: a loc",
        ),
    ] {
        let told = step(wrong.clone());
        assert!(told.starts_with(message), "{wrong}: {told}");
    }
    for (change, message) in [
        (json!({"params": [{"name": "page", "type": "string"}]}), "params[0].name: page is a name of the"),
        (json!({"params": [{"name": "a", "type": "date"}]}), "params[0].type: must be one of string"),
        (
            json!({"params": vec![json!({"name": "a", "type": "string"}); 11]}),
            "params: must be 0 to 10 entries",
        ),
        (
            json!({"steps": vec![json!({"action": "goto", "value": "/"}); 31]}),
            "steps: must be 1 to 30 entries",
        ),
        (
            json!({"paramSources": [{"param": "card", "stepIndex": 9, "from": "value"}]}),
            "paramSources[0].stepIndex: must",
        ),
        (
            json!({"paramSources": [{"param": "card", "stepIndex": 4, "from": "value"}]}),
            "paramSources[0].from: step 4",
        ),
        (
            json!({"paramSources": [{"param": "user", "stepIndex": 1, "from": "value"}]}),
            "paramSources[0].param: user is an",
        ),
        (json!({"paramSources": []}), "params[0]: card is not used; write {{card}} into"),
        (json!({"returnsPage": "yes"}), "returnsPage: must be true or false"),
        (json!({"urlPattern": "x".repeat(241)}), "urlPattern: must be one line of at most 240"),
    ] {
        let told = with(change.clone());
        assert!(told.contains(message), "{change}: {told}");
    }
}

#[test]
fn what_looks_like_a_secret_is_warned_of() {
    let mut given = paying();
    given["steps"] = json!([
        {"action": "fill", "role": "textbox", "name": "Password", "value": "hunter2"},
        {"action": "fill", "role": "textbox", "name": "Password", "value": "{{card}}"},
        {"action": "click", "locator": "locator('.pay')"},
    ]);
    given["params"] = json!([{"name": "card", "type": "string"}]);
    given["paramSources"] = json!([]);
    let warnings = read(&given).unwrap().warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].starts_with("steps[0]: the value looks like a secret"));
    assert!(warnings[1].starts_with("steps[2]: the element is found by a CSS selector"));
}

/// The code without its literals; `None` when one of them does not end, or
/// ends in the middle of what was meant.
fn outside_of_literals(code: &str) -> Option<String> {
    let mut outside = String::new();
    let mut chars = code.chars();
    while let Some(char) = chars.next() {
        if char != '\'' {
            outside.push(char);
            continue;
        }
        loop {
            match chars.next()? {
                '\\' => drop(chars.next()?),
                '\'' => break,
                '\n' | '\r' | '\u{2028}' | '\u{2029}' => return None,
                _ => {}
            }
        }
        outside.push_str("''");
    }
    Some(outside)
}

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z ]{0,6}",
        "\\PC{0,4}",
        Just("'".to_owned()),
        Just("\\".to_owned()),
        Just("\\'".to_owned()),
        Just("`${x}`".to_owned()),
        Just("\"".to_owned()),
        Just("\n".to_owned()),
        Just("\u{2028}".to_owned()),
        Just("{{p}}".to_owned()),
        Just("{{o.f}}".to_owned()),
        Just("{{".to_owned()),
        Just("); evil(".to_owned()),
        Just("*/ // <!--".to_owned()),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

fn locator_text() -> impl Strategy<Value = String> {
    let quote = |text: String| crate::healing::candidates::quoted(&text, '"');
    prop_oneof![
        hostile(),
        hostile().prop_map(move |text| format!("getByText({})", quote(text))),
        hostile().prop_map(move |text| format!("getByRole('row', {{ name: {} }}).first()", quote(text))),
        hostile()
            .prop_map(move |text| format!("locator({}).filter({{ has: page.getByText('x') }})", quote(text))),
    ]
}

proptest! {
    #[test]
    fn nothing_leaves_its_literal(
        (name, id, value) in (hostile(), hostile(), hostile()), locator in locator_text(), url in hostile(), kind in 0..3_usize,
    ) {
        let given = json!({
            "name": "act", "kind": FunctionKind::WORDS[kind], "module": "./a",
            "params": [{"name": "p", "type": "string"}, {"name": "o", "type": "object"}],
            "steps": [
                {"action": "goto", "value": format!("/{url}{{{{p}}}}{{{{o.f}}}}")},
                {"action": "fill", "role": "textbox", "name": name, "value": value},
                {"action": "click", "testId": id, "role": "button"},
                {"action": "assertVisible", "locator": locator},
            ],
        });
        let Ok(function) = TestFunction::read(given.as_object().unwrap()) else { return Ok(()) };
        let code = function.code();
        let outside = outside_of_literals(&code);
        prop_assert!(outside.is_some(), "{code}");
        const WORDS: &[&str] = &[
            "", "export", "async", "function", "act", "page", "Page", "this", "p", "o", "f", "string", "Record", "Promise",
            "void", "await", "expect", "toBeVisible", "use", "goto", "fill", "click", "getByRole", "getByTestId", "getByText",
            "locator", "filter", "first", "name", "has",
        ];
        let outside = outside.unwrap();
        for word in outside.split(|char: char| " \n(){}<>:;,.+='".contains(char)) {
            prop_assert!(WORDS.contains(&word), "{word:?} in {code}");
        }
    }

    #[test]
    fn whatever_is_sent_is_told_about(fields in prop::collection::btree_map("[a-zA-Z]{1,12}|steps|params|name|module", any_json(), 0..6)) {
        let given: Map<String, Value> = fields.into_iter().collect();
        if let Err(faults) = TestFunction::read(&given) {
            prop_assert!(!faults.as_slice().is_empty() && !faults.field().is_empty());
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,9}".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("action|role|testId|value|name|type|fields|locator", inner, 0..4)
                .prop_map(|map| json!(map)),
        ]
    })
}

use proptest::prelude::*;

use super::template::Wording;
use super::*;

fn read(messages: &[&str]) -> Signature {
    read_with(messages, &[])
}

fn read_with(messages: &[&str], source: &[SourceText<'_>]) -> Signature {
    let errors: Vec<ErrorText<'_>> =
        messages.iter().map(|message| ErrorText { message, stack: None }).collect();
    signature(&errors, source).expect("there is an error")
}

const CLICK: &str = "TimeoutError: locator.click: Timeout 600ms exceeded.\nCall log:\n  - waiting for ";

fn fields(signature: &Signature) -> (Kind, &str, &str, &str, &str) {
    (signature.kind, &signature.api, &signature.target, &*signature.reason, &signature.class)
}

#[test]
fn an_action_is_known_by_its_locator_without_the_data_in_it() {
    let row = "getByRole('row', { name: 'Order 5069 Umbrella' }).getByRole('button', { name: 'Remove' })\n\n    at /home/ci/shop/tests/a.spec.ts:5:9";
    let read = read(&[&format!("{CLICK}{row}")]);
    let expected =
        (Kind::Timeout, "click", "role=row[<*>] >> role=button[Remove]", "not-found", "TimeoutError");
    assert_eq!(fields(&read), expected);
    assert_eq!(read.site.as_deref(), Some("/home/ci/shop/tests/a.spec.ts"));
    assert_eq!(
        read.title(),
        "Could not click getByRole('row').getByRole('button', { name: 'Remove' }): not found"
    );
}

#[test]
fn an_expectation_on_an_element_is_known_by_matcher_and_element_in_every_version() {
    let old = "Error: Timed out 400ms waiting for expect(locator).toHaveText(expected)\n\nLocator: getByTestId('total')\nExpected string: \"Total: $6.18\"\nReceived string: \"Total: $134.03\"\nCall log:\n  - expect.toHaveText with timeout 400ms\n  - waiting for getByTestId('total')\n  -   locator resolved to <p>Total: $134.03</p>";
    let new = "Error: expect(locator).toHaveText(expected) failed\n\nLocator:  getByTestId('total')\nExpected: \"Total: $1.00\"\nReceived: \"Total: $2\"\nTimeout:  700ms\n\nCall log:\n  - Expect \"toHaveText\" getByTestId('total') with timeout 700ms\n  - waiting for getByTestId('total')\n    4 × locator resolved to <p>Total: $2</p>";
    let (old, new) = (read(&[old]), read(&[new]));
    assert_eq!(fields(&old), (Kind::Assert, "toHaveText", "testid=total", "", ""));
    assert_eq!(old.fingerprint(), new.fingerprint());
    let other = read(&[
        "Error: expect(locator).not.toHaveText(expected) failed\n\nLocator: getByTestId('total')\nExpected: \"x\"\nReceived: \"x\"",
    ]);
    assert!(other.negated && other.fingerprint() != new.fingerprint());
}

#[test]
fn obstacles_of_one_button_are_different_causes() {
    let log = |line: &str| {
        read(&[&format!(
            "{CLICK}getByTestId('pay')\n    - locator resolved to <button>\n  - attempting click action\n      - {line}"
        )])
    };
    let reasons: Vec<Signature> = [
        "<div class=\"modal\">Cookie</div> intercepts pointer events",
        "element is not enabled",
        "element is not visible",
        "element is not stable",
        "scrolling into view if needed",
    ]
    .map(log)
    .into();
    let words: Vec<&str> = reasons.iter().map(|one| &*one.reason).collect();
    assert_eq!(words, ["intercepted", "disabled", "not-visible", "unstable", ""]);
    assert_eq!(reasons[0].title(), "Could not click getByTestId('pay'): covered by another element");
    let families: std::collections::BTreeSet<_> = reasons.iter().map(Signature::fingerprint).collect();
    assert_eq!(families.len(), 5);
}

#[test]
fn a_test_timeout_says_less_than_the_call_it_hit() {
    let call = "Error: locator.click: Test timeout of 1268ms exceeded.\nCall log:\n  - waiting for getByTestId('spinner-done')";
    let both = read(&["Test timeout of 1268ms exceeded.", call]);
    assert_eq!(fields(&both), (Kind::Timeout, "click", "testid=spinner-done", "not-found", ""));
    let alone = read(&["\u{1b}[31mTest timeout of 871ms exceeded.\u{1b}[39m"]);
    assert_eq!((alone.kind, alone.title().as_str()), (Kind::TestTimeout, "Test timed out"));
    let hook = read(&["Test timeout of 30000ms exceeded while running \"beforeEach\" hook.", call]);
    assert!(hook.in_hook && hook.fingerprint() != both.fingerprint());
    let after = read(&["\"afterEach\" hook timeout of 30ms exceeded.", "Error: no stock"]);
    assert_eq!((after.kind, after.template.as_str()), (Kind::App, "no stock"));
}

#[test]
fn a_timeout_that_names_no_call_is_still_a_timeout() {
    let bare = read(&["Error: Timeout 5000ms exceeded while waiting on the predicate"]);
    assert_eq!((fields(&bare), bare.template.as_str()), ((Kind::Timeout, "", "", "", ""), ""));
    assert_eq!(bare.error_type(), ErrorType::Timeout);
    let event = read(&["Error: Timeout 5000ms exceeded while waiting for event \"popup\""]);
    assert_eq!((event.kind, event.template.as_str()), (Kind::Timeout, "event \"popup\""));
    let own = read(&["Error: order 17 was not shipped: timeout of 5000ms exceeded"]);
    assert_eq!(own.kind, Kind::App, "what a person wrote tells causes apart");
}

#[test]
fn codes_tell_apart_what_texts_do_not() {
    let goto = read(&[
        "Error: page.goto: net::ERR_CONNECTION_REFUSED at http://127.0.0.1:313/p/b3053463?t=867310\nCall log:\n  - navigating to \"http://127.0.0.1:313/p\", waiting until \"load\"",
    ]);
    assert_eq!(fields(&goto), (Kind::Navigation, "goto", "", "", ""));
    assert_eq!(
        (goto.codes.clone(), goto.template.as_str()),
        (vec!["net::ERR_CONNECTION_REFUSED".to_owned()], "")
    );
    let status = |got: u16| {
        read(&[&format!(
            "Error: expect(received).toBe(expected) // Object.is equality\n\nExpected: 200\nReceived: {got}"
        )])
    };
    assert_eq!(status(401).codes, ["exp200", "got401"]);
    assert_eq!(status(401).title(), "expected 200, received 401");
    assert!(status(401).fingerprint() != status(500).fingerprint());
    assert!(status(140).codes.is_empty(), "a number is no status");
    let post = read(&[
        "Error: POST https://api.example.com/v1/orders/55028 failed with 503 Service Unavailable (req 43ca755349329a82)",
    ]);
    assert_eq!(
        (post.kind, post.codes.clone(), post.template.as_str()),
        (
            Kind::App,
            vec!["http503".to_owned()],
            "POST <URL>/<*>/orders/<*> failed with 503 Service Unavailable (req <HEX>)"
        )
    );
    let file = read(&["Error: ENOENT: no such file or directory, open '/tmp/run-1/fixtures/14.json'"]);
    assert_eq!(file.codes, ["ENOENT"]);
}

#[test]
fn errors_of_the_language_keep_the_name_they_are_about() {
    let read_price = read(&["TypeError: Cannot read properties of undefined (reading 'price')"]);
    assert_eq!(fields(&read_price), (Kind::Script, "", "", "", "TypeError"));
    assert_eq!(read_price.template, "Cannot read properties of undefined (reading 'price')");
    let in_page = read(&[
        "Error: page.evaluate: TypeError: Cannot read properties of undefined (reading 'dispatch')\n    at eval (eval at evaluate (:234:30), <anonymous>:1:20)",
    ]);
    assert_eq!(fields(&in_page), (Kind::Script, "evaluate", "", "", "TypeError"));
    let wordings = [&read_price, &in_page].map(|one| Wording::from_signature(one).expect("has words").bucket);
    assert_ne!(wordings[0], wordings[1]);
}

#[test]
fn several_elements_a_closed_page_and_waits_have_kinds_of_their_own() {
    let strict = "Error: locator.click: Error: strict mode violation: getByRole('button', { name: 'Edit' }) resolved to 10 elements:\n    1) <button>Edit</button> aka getByRole('row', { name: 'Order 2901' }).getByRole('button')";
    assert_eq!(fields(&read(&[strict])), (Kind::Strict, "click", "role=button[Edit]", "", ""));
    let closed = read(&["Error: locator.click: Target page, context or browser has been closed"]);
    assert_eq!((closed.kind, closed.error_type()), (Kind::Closed, ErrorType::Crash));
    let wait = "TimeoutError: page.waitForURL: Timeout 400ms exceeded.\n=========================== logs ===========================\nwaiting for navigation to \"**/done/269\" until \"load\"\n============================================================";
    let wait = read(&[wait]);
    assert_eq!((wait.kind, wait.api.as_str()), (Kind::Timeout, "waitForURL"));
    assert_eq!(wait.template, "navigation to \"**/done/<NUM>\" until \"load\"");
}

#[test]
fn an_expectation_on_a_value_is_known_by_its_line_and_its_own_words() {
    let error = "Error: expect(received).toBe(expected) // Object.is equality\n\nExpected: 4\nReceived: 5";
    let frame = |text: &'static str| [SourceText { text, first_line: 10, line: Some(11) }];
    let one = read_with(&[error], &frame("const n = 1;\n  expect(cart.count, 'x').toBe(4);"));
    let other = read_with(&[error], &frame("\n  expect( cart.count, \"y\" ).toBe(17);"));
    assert_eq!(one.template, "src:expect(cart.count).toBe()");
    assert_eq!(one.fingerprint(), other.fingerprint());
    let named =
        read(&[&format!("Error: job 1b156d91-008d-4b52-a964-1be57d813a5f to finish\n\n{}", &error[7..])]);
    assert_eq!((named.kind, named.template.as_str()), (Kind::Assert, "job <UUID> to finish"));
}

#[test]
fn texts_of_a_locator_are_data_only_where_the_source_computes_them() {
    let error = format!("{CLICK}getByText('Invoice for Globex')");
    let target = |text: &'static str| {
        read_with(&[&error], &[SourceText { text, first_line: 1, line: Some(1) }]).target
    };
    assert_eq!(target("await page.getByText(`Invoice for ${name}`).click();"), "text=Invoice for <*>");
    assert_eq!(target("await page.getByText(invoiceOf(name)).click();"), "text=<*>");
    assert_eq!(target("await page.getByText('Invoice for Globex').click();"), "text=Invoice for Globex");
    assert_eq!(target("await this.invoice.click(); page.getByRole(role)"), "text=Invoice for Globex");
}

#[test]
fn wordings_that_differ_in_a_few_words_share_a_template() {
    let words = |text: &str| Wording::from_signature(&read(&[text])).expect("has words");
    let (one, other) = (
        words("Error: user ada is already in group admins"),
        words("Error: user bob is already in group admins"),
    );
    assert_eq!(one.bucket, words("Error: user ada was put into group admins").bucket);
    assert_ne!(one.bucket, other.bucket, "the first two words stay as they are");
    let (one, other) =
        (words("Error: cannot lock order of ada today"), words("Error: cannot lock order of bob today"));
    assert_eq!(one.bucket, other.bucket);
    let found = other.find(std::slice::from_ref(&one.tokens)).expect("resembles");
    assert_eq!(Wording::joined(&found.generalised.expect("differs")), "cannot lock order of <*> today");
    let far = words("Error: cannot lock all the rows now");
    assert_eq!(far.find(std::slice::from_ref(&one.tokens)), None);
}

#[test]
fn calls_without_an_element_are_known_by_the_address_that_took_too_long() {
    let goto = |address: &str, until: &str| {
        read(&[&format!(
            "TimeoutError: page.goto: Timeout 30000ms exceeded.\nCall log:\n  - navigating to \"{address}\", waiting until \"{until}\"\n"
        )])
    };
    let login = goto("https://app.example/login?next=/cart", "load");
    assert_eq!(fields(&login), (Kind::Timeout, "goto", "", "", "TimeoutError"));
    assert_eq!(login.title(), "Loading /login timed out");
    assert_ne!(login.fingerprint(), goto("https://app.example/admin/reports", "load").fingerprint());
    let elsewhere = goto("http://127.0.0.1:4173/login", "networkidle");
    assert_eq!(login.fingerprint(), elsewhere.fingerprint(), "the host is where it ran");
    let order = |id: u32| goto(&format!("https://app.example/orders/{id}"), "load").fingerprint();
    assert_eq!(order(17), order(4711));

    let request = "Error: apiRequestContext.post: Timeout 500ms exceeded.";
    let new = read(&[&format!(
        "{request}\nCall log:\n  - → POST https://api.example/v1/orders/17?x=[1]\n    - user-agent: Playwright/1.51\n    - referer: https://app.example/cart"
    )]);
    let banner = "=".repeat(30);
    let old = read(&[&format!(
        "{request}\n=== logs ===\n→ POST https://api.example/v1/orders/99\n  accept: */*\n← 302 Found\n{banner}"
    )]);
    assert_eq!((new.api.as_str(), new.template.as_str()), ("post", "POST <URL>/<*>/orders/<*>"));
    assert_eq!(new.fingerprint(), old.fingerprint());
    let older = read(&[
        "Error: apiRequestContext.post: Request timed out after 500ms\nCall log:\n  - → POST http://127.0.0.1/v1/orders/3",
    ]);
    assert_eq!(new.fingerprint(), older.fingerprint());

    let bare =
        |api: &str| read(&[&format!("TimeoutError: page.{api}: Timeout 500ms exceeded.")]).fingerprint();
    assert_ne!(bare("waitForFunction"), bare("waitForURL"), "the call is all there is");
    let event = |name: &str| {
        read(&[&format!(
            "TimeoutError: page.waitForEvent: Timeout 5000ms exceeded while waiting for event \"{name}\"\nCall log:\n  - listening"
        )])
        .template
    };
    assert_eq!(event("download"), "event \"download\"");
}

#[test]
fn an_expectation_about_a_closed_page_is_no_crash() {
    for error in [
        "Error: expect(received).toContain(expected) // indexOf\n\nExpected substring: \"saved\"\nReceived string:    \"Target page, context or browser has been closed\"",
        "Error: expect(locator).toHaveText(expected) failed\n\nLocator:  getByRole('alert')\nExpected: \"The Target page has been closed\"\nReceived: \"\"",
        "Error: expect(received).toEqual(expected) // deep equality\n\n- Expected  - 1\n+ Received  + 1\n\n  Object {\n-   \"state\": \"open\",\n+   \"state\": \"Target page is closed\",",
        "Error: the popup page has been closed\n\nexpect(received).toBe(expected) // Object.is equality\n\nExpected: true\nReceived: false",
    ] {
        assert_eq!(read(&[error]).error_type(), ErrorType::Assertion, "{error}");
    }
    for error in [
        "Error: expect.toBeVisible: Target page, context or browser has been closed\nCall log:\n  - expect.toBeVisible with timeout 5000ms",
        "Error: expect(locator).toBeVisible: Target closed\n\nLocator: getByText('x')",
        "Error: Target page, context or browser has been closed",
        "Error: page.click: Page closed",
    ] {
        assert_eq!(read(&[error]).error_type(), ErrorType::Crash, "{error}");
    }
}

#[test]
fn failures_of_different_endpoints_are_different_causes() {
    let failed = |path: &str| read(&[&format!("Error: GET {path} failed with 500")]).fingerprint();
    assert_ne!(failed("/api/users/123"), failed("/api/orders/77"));
    assert_eq!(failed("/api/users/123"), failed("/api/users/9"));
    let few = read(&["Error: the cart is short:\nat least 3 items expected (got 2)"]);
    assert_eq!(few.template, "the cart is short: at least <NUM> items expected (got <NUM>)");
}

#[test]
fn an_action_that_an_element_cannot_take_is_known_by_the_element() {
    let check = |label: &str| {
        read(&[&format!(
            "Error: locator.check: Clicking the checkbox did not change its state\nCall log:\n  - waiting for getByLabel('{label}')\n    - locator resolved to <input/>"
        )])
    };
    assert_eq!((check("Express").kind, check("Express").target.as_str()), (Kind::App, "label=Express"));
    assert_eq!(
        check("Express").title(),
        "Could not check getByLabel('Express'): Clicking the checkbox did not change its state"
    );
    assert_ne!(check("Express").fingerprint(), check("Gift").fingerprint());
    assert_eq!(read(&["Error: page.evaluate: no stock"]).target, "");
}

#[test]
fn a_frame_that_is_drawn_around_a_text_is_no_part_of_it() {
    let text = "Error: browserContext.newPage: Executable doesn't exist at /ms/ffmpeg-1011/ffmpeg-linux";
    let framed = format!("{text}\n╔══════════╗\n║ Run this ║\n╚══════════╝");
    let plain = format!("{text}\n\n Run this \n");
    assert_eq!(read(&[&framed]).fingerprint(), read(&[&plain]).fingerprint());
    assert!(!read(&[&framed]).title().contains('═'));
}

#[test]
fn an_answer_that_is_not_ok_is_known_by_its_request_and_status() {
    let answer = |path: &str, status: &str| {
        let error = format!(
            "Error: expect(response).toBeOK() failed\n\nCall log:\n→ GET http://127.0.0.1:4871{path}?x=31\n  accept: */*\n← {status}\n  content-length: 40\n\nResponse text:\n{{\"trace\":0.607}}"
        );
        read_with(
            &[&error],
            &[SourceText { text: "await expect(res).toBeOK();", first_line: 1, line: Some(1) }],
        )
    };
    let forbidden = answer("/api/carts/7", "403 Forbidden");
    assert_eq!(
        (forbidden.template.as_str(), forbidden.codes.clone()),
        ("GET <URL>/api/carts/<*>", vec!["http403".to_owned()])
    );
    assert_eq!(forbidden.fingerprint(), answer("/api/carts/12", "403 Forbidden").fingerprint());
    assert_ne!(forbidden.fingerprint(), answer("/api/carts/7", "500 Internal Server Error").fingerprint());
    assert_ne!(forbidden.fingerprint(), answer("/api/users/7", "403 Forbidden").fingerprint());
}

#[test]
fn a_test_timeout_names_the_hook_or_fixture_that_used_it_up() {
    let read = |message: &str| read(&[message]).template;
    assert_eq!(
        read("Test timeout of 30000ms exceeded while running \"beforeEach\" hook."),
        "\"beforeEach\" hook"
    );
    assert_eq!(read("\"beforeAll\" hook timeout of 5000ms exceeded."), "\"beforeAll\" hook");
    assert_eq!(read("Fixture \"account\" timeout of 361ms exceeded during setup."), "\"account\" setup");
    assert_eq!(read("Test timeout of 5ms exceeded while setting up \"account\"."), "\"account\" setup");
    assert_eq!(read("Test timeout of 5ms exceeded while tearing down \"page\"."), "\"page\" teardown");
    assert_eq!(read("Tearing down \"page\" exceeded the test timeout of 5ms."), "\"page\" teardown");
    assert_eq!(read("Test timeout of 30000ms exceeded."), "");
}

#[test]
fn pages_and_pictures_are_told_apart_by_what_is_expected_of_them() {
    let error = |matcher: &str| format!("Error: expect(page).{matcher}(expected) failed\n\nTimeout: 250ms");
    let read = |matcher: &str, code: &str| {
        read_with(&[&error(matcher)], &[SourceText { text: code, first_line: 1, line: Some(1) }])
            .fingerprint()
    };
    let url = |code: &str| read("toHaveURL", code);
    assert_ne!(url("await expect(page).toHaveURL(/cart/);"), url("await expect(page).toHaveURL(/login/);"));
    assert_eq!(url("expect(page).toHaveURL('/orders/17');"), url("expect(page).toHaveURL('/orders/4711');"));
    let picture =
        |name: &str| read("toHaveScreenshot", &format!("await expect(page).toHaveScreenshot('{name}');"));
    assert_ne!(picture("cart.png"), picture("login.png"));
}

#[test]
fn names_that_code_gives_and_texts_in_quotes_keep_their_place_among_the_words() {
    let words = |text: &str| Wording::from_signature(&read(&[text])).expect("has words");
    let declined =
        |code: &str| words(&format!("Error: Payment of €5.10 for order #77 was declined (code: {code})"));
    assert_ne!(declined("do_not_honor").bucket, declined("expired_card").bucket);
    assert_ne!(declined("EXPIRED").bucket, declined("FRAUD").bucket);
    assert_eq!(declined("ann").bucket, declined("user_17").bucket, "data is no name");
    let file = |name: &str| words(&format!("Error: ENOENT: no such file or directory, open '/tmp/a/{name}'"));
    assert_ne!(file("users.json").bucket, file("orders.json").bucket);
    assert_eq!(file("1.json").bucket, file("2x.json").bucket);
    let product = |name: &str| words(&format!("Error: Could not put \"{name}\" into the customer's cart"));
    assert_eq!(product("Green tea 250").bucket, product("Lamp").bucket);
    assert!(product("Green tea").find(&[product("Lamp").tokens]).is_some());
    assert_eq!(
        product("Lamp").tokens,
        ["Could", "not", "put", "Lamp", "into", "the", "customer", "s", "cart"]
    );
}

#[test]
fn a_title_is_a_sentence() {
    let title = |error: &str, code: &str| {
        read_with(&[error], &[SourceText { text: code, first_line: 1, line: Some(1) }]).title()
    };
    let expected = |matcher: &str, rest: &str| {
        format!("Error: expect(locator).{matcher}(expected) failed\n\nLocator: getByTestId('total')\n{rest}")
    };
    for (error, code, sentence) in [
        (
            expected("toHaveText", "Expected: \"1\"\nReceived: \"2\""),
            "",
            "getByTestId('total') does not have the expected text",
        ),
        (
            expected("toBeVisible", "Error: element(s) not found"),
            "",
            "getByTestId('total') not found (toBeVisible)",
        ),
        (expected("not.toBeVisible", "Received: visible"), "", "getByTestId('total') is visible"),
        (
            expected("toHaveAttribute", "Expected: \"/a\"\nReceived: \"/b\""),
            "await expect(link).toHaveAttribute('href', '/a');",
            "getByTestId('total') does not have the expected attribute href",
        ),
        (
            "Error: expect(received).toBe(expected)\n\nExpected: 5\nReceived: 4".to_owned(),
            "expect(await cart.count()).toBe(5);",
            "cart.count() is not the expected value",
        ),
        (
            "Error: expect(received).toBe(expected)\n\nExpected: 200\nReceived: 503".to_owned(),
            "expect(res.status()).toBe(200);",
            "res.status(): expected 200, received 503",
        ),
        (
            "Error: expect(received).toBe(expected)\n\nExpected: \"a\"\nReceived: undefined".to_owned(),
            "expect(user.role).toBe('a');",
            "user.role is not the expected value: received undefined",
        ),
        (
            "Error: expect(page).toHaveURL(expected) failed\n\nExpected: \"a\"".to_owned(),
            "await expect(page).toHaveURL('https://shop/orders/7');",
            "page does not have the expected URL '/orders/…'",
        ),
        ("Error: GET /api/users/123 failed with 500".to_owned(), "", "GET /api/users/… failed with 500"),
        (
            "Error: locator.click: Error: strict mode violation: getByText('Save') resolved to 2 elements:"
                .to_owned(),
            "",
            "getByText('Save') matches several elements",
        ),
        (
            "TypeError: Cannot read properties of undefined (reading 'price')".to_owned(),
            "",
            "TypeError: Cannot read properties of undefined (reading 'price')",
        ),
        (
            "Test timeout of 5ms exceeded while running \"beforeEach\" hook.".to_owned(),
            "",
            "Test timed out in \"beforeEach\" hook",
        ),
        (
            "Error: page.goto: net::ERR_CONNECTION_REFUSED at http://a/b".to_owned(),
            "",
            "Page could not be loaded: net::ERR_CONNECTION_REFUSED",
        ),
    ] {
        assert_eq!(title(&error, code), sentence);
    }
}

#[test]
fn a_frame_is_one_target_however_a_version_writes_it() {
    let target = |locator: &str, code: &'static str| {
        let error = format!("{CLICK}{locator}");
        read_with(&[&error], &[SourceText { text: code, first_line: 1, line: Some(1) }]).target
    };
    for (old, new) in [
        (
            "frameLocator('#pay').getByRole('button', { name: 'Pay' })",
            "locator('#pay').contentFrame().getByRole('button', { name: 'Pay' })",
        ),
        (
            "frameLocator('#a').frameLocator('#b').getByText('x')",
            "locator('#a').contentFrame().locator('#b').contentFrame().getByText('x')",
        ),
        (
            "frameLocator('iframe').first().getByText('x')",
            "locator('iframe').first().contentFrame().getByText('x')",
        ),
    ] {
        assert_eq!(target(old, ""), target(new, ""), "{old}");
    }
    let code = "await page.frameLocator(`#pay-${id}`).getByText('x').click()";
    let of_run = target("frameLocator('#pay-17').getByText('x')", code);
    assert_eq!(of_run, "css=#pay-<*> >> frame >> text=x");
    assert_eq!(target("locator('#pay-4').contentFrame().getByText('x')", code), of_run);
}

#[test]
fn a_drag_is_known_by_the_element_it_waited_for_last() {
    let drag = |log: &str| {
        read(&[&format!(
            "TimeoutError: locator.dragTo: Timeout 600ms exceeded.\nCall log:\n  - waiting for getByText('Card')\n{log}"
        )])
    };
    let target = drag(
        "    - locator resolved to <li>Card</li>\n  - attempting move and down action\n  - waiting for getByTestId('basket')\n",
    );
    assert_eq!((target.target.as_str(), &*target.reason), ("testid=basket", "not-found"));
    let source = drag("");
    assert_eq!((source.target.as_str(), &*source.reason), ("text=Card", "not-found"));
    assert_eq!(source.title(), "Could not drag: waiting for getByText('Card'): not found");
}

#[test]
fn what_an_element_lacks_and_the_path_of_a_request_are_part_of_the_cause() {
    let attribute = |name: &str| {
        let error = "Error: expect(locator).toHaveAttribute(expected) failed\n\nLocator: getByRole('link')\nExpected: \"/a\"\nReceived: \"/b\"";
        let code = format!("await expect(link).toHaveAttribute('{name}', '/a');");
        read_with(&[error], &[SourceText { text: &code, first_line: 1, line: Some(1) }]).fingerprint()
    };
    assert_ne!(attribute("href"), attribute("target"));
    let words = |path: &str| {
        Wording::from_signature(&read(&[&format!("Error: GET {path} failed with 500")])).expect("has words")
    };
    assert_ne!(words("/api/users/12").bucket, words("/api/orders/12").bucket);
    assert_eq!(words("/api/users/12").bucket, words("/api/users/7?x=1").bucket);
    assert_ne!(words("https://shop/api/users/12").bucket, words("https://shop/api/orders/12").bucket);
}

fn error_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "Error: ",
        "TimeoutError: ",
        "locator.click: ",
        "Timeout 600ms exceeded.",
        "Test timeout of 5ms exceeded.",
        "expect(locator)",
        ".not",
        ".toBe(",
        "expected)",
        "Call log:",
        "  - waiting for ",
        "getByText('",
        "ab",
        "')",
        "\n",
        "\r\n",
        "    at f (/a/b.ts:1:2)",
        "=",
        "====================",
        "Locator: ",
        "→ GET ",
        "navigating to \"",
        "at least (",
        "„a b“ ",
        "it's ",
        "← 503 Service Unavailable",
        "expect(response).toBeOK",
        "C:\\a b\\c",
        "file:///x/",
        "Received: ",
        "12",
        "3.5 s",
        "http://a.b/c",
        "\u{e000}",
        "e\u{301}",
        "🦀",
        "<*>",
        "'",
        "\"",
        "/x/y/1.ts",
        "[cause]: ",
        "\n---\n",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic(text in prop_oneof![error_text(), any::<String>()], code in any::<String>()) {
        let source = [SourceText { text: &code, first_line: 1, line: Some(1) }];
        if let Some(read) = signature(&ErrorText::split(&text), &source) {
            prop_assert!(read.title().chars().count() <= 200);
            let _ = Wording::from_signature(&read);
        }
    }

    #[test]
    fn colours_and_line_ends_change_nothing(text in error_text(), places in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        // Separators between errors stay whole, as clients write them.
        let plain = text.replace("\r\n", "\n").replace("\n---\n", "\n");
        let mut coloured: Vec<char> = plain.chars().collect();
        for place in places {
            let at = place.index(coloured.len() + 1);
            // A combining mark stays with its letter.
            if coloured.get(at) != Some(&'\u{301}') && (at == 0 || coloured[at - 1] != '\u{1b}') {
                coloured.splice(at..at, "\u{1b}[2m".chars());
            }
        }
        let coloured: String = coloured.into_iter().collect::<String>().replace('\n', "\r\n");
        prop_assume!(crate::text::strip_ansi(&coloured).replace("\r\n", "\n") == plain);
        prop_assert_eq!(signature(&ErrorText::split(&plain), &[]), signature(&ErrorText::split(&coloured), &[]));
    }
}

/// Twice the text may not take more than a few times as long; a rule that went
/// back and forth would take four times as long again and again. Counted in
/// what is kept, not in time: text beyond the bound changes nothing.
#[test]
fn text_beyond_the_bound_is_not_read() {
    let start = format!("Error: no stock\n{}", "x".repeat(50_000));
    let long = format!("{start}{}end", "getByText(".repeat(200_000));
    let read = read(&[&long]);
    assert_eq!(
        read.fingerprint(),
        self::read(&[&format!("{start}{}end", "getByText(".repeat(100_000))]).fingerprint()
    );
}

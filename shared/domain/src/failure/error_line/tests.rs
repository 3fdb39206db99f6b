use proptest::prelude::*;

use super::error_line;
use crate::failure::{ErrorText, SourceText, signature};

/// An error as Playwright writes it, and the line that stands for it.
const LINES: &[(&str, &str)] = &[
    // Expectations of locators, as new and old versions write them.
    (
        "Error: \u{1b}[2mexpect(\u{1b}[22m\u{1b}[31mlocator\u{1b}[39m\u{1b}[2m).\u{1b}[22mtoHaveText\u{1b}[2m(\u{1b}[22m\u{1b}[32mexpected\u{1b}[39m\u{1b}[2m)\u{1b}[22m failed\n\nLocator:  getByTestId('total')\nExpected: \"Total: 12.00\"\nReceived: \"Total: 12.50\"\nTimeout:  600ms\n\nCall log:\n  - Expect \"toHaveText\" getByTestId('total') with timeout 600ms\n  - waiting for getByTestId('total')\n    4 × locator resolved to <p>Total: 12.50</p>\n      - unexpected value \"Total: 12.50\"\n",
        "expect(getByTestId('total')).toHaveText: expected \"Total: 12.00\", received \"Total: 12.50\"",
    ),
    (
        "Error: Timed out 400ms waiting for expect(locator).toBeVisible()\n\nLocator: getByTestId('login')\nExpected: visible\nReceived: <element(s) not found>\nCall log:\n  - expect.toBeVisible with timeout 400ms\n  - waiting for getByTestId('login')\n",
        "expect(getByTestId('login')).toBeVisible: element not found",
    ),
    (
        "Error: expect(locator).toBeVisible() failed\n\nLocator: getByTestId('login')\nExpected: visible\nTimeout: 700ms\nError: element(s) not found\n\nCall log:\n  - Expect \"toBeVisible\" getByTestId('login') with timeout 700ms\n  - waiting for getByTestId('login')\n",
        "expect(getByTestId('login')).toBeVisible: element not found",
    ),
    (
        "Error: expect(locator).toHaveText(expected) failed\n\nLocator: getByTestId('x')\nExpected: \"a\"\nTimeout: 700ms\nError: element(s) not found\n\nCall log:\n  - waiting for getByTestId('x')\n",
        "expect(getByTestId('x')).toHaveText: element not found, expected \"a\"",
    ),
    (
        "Error: Timed out 700ms waiting for expect(locator).not.toBeVisible()\n\nLocator: getByTestId('toast')\nExpected: not visible\nReceived: visible\nCall log:\n  - expect.not.toBeVisible with timeout 700ms\n  - waiting for getByTestId('toast')\n  -   locator resolved to <p>x</p>\n",
        "expect(getByTestId('toast')).not.toBeVisible: expected not visible, received visible",
    ),
    (
        "Error: Timed out 400ms waiting for expect(locator).toHaveCount(expected)\n\nLocator: locator('.card')\nExpected: 6\nReceived: 3\nCall log:\n  - expect.toHaveCount with timeout 400ms\n  - waiting for locator('.card')\n  -   locator resolved to 3 elements\n",
        "expect(locator('.card')).toHaveCount: expected 6, received 3",
    ),
    (
        "Error: Timed out 500ms waiting for expect(locator).toHaveClass(expected)\n\nLocator: getByTestId('row')\nExpected pattern: /active/\nReceived string:  \"row r-212e\"\nCall log:\n  - waiting for getByTestId('row')\n  -   locator resolved to <div></div>\n",
        "expect(getByTestId('row')).toHaveClass: expected pattern /active/, received \"row r-212e\"",
    ),
    (
        "Error: expect(page).toHaveURL(expected) failed\n\nExpected: \"http://shop/orders/1\"\nReceived: \"about:blank\"\nTimeout:  400ms\n\nCall log:\n  - Expect \"toHaveURL\" with timeout 400ms\n    - locator resolved to <html>…</html>\n",
        "expect(page).toHaveURL: expected \"http://shop/orders/1\", received \"about:blank\"",
    ),
    // Expectations of values.
    (
        "Error: expect(received).toBe(expected) // Object.is equality\n\nExpected: 200\nReceived: 401",
        "expect(value).toBe: expected 200, received 401",
    ),
    (
        "Error: feature flag must be on\n\nexpect(received).toBe(expected) // Object.is equality\n\nExpected: true\nReceived: false",
        "feature flag must be on — expect(value).toBe: expected true, received false",
    ),
    (
        "Error: expect(received).not.toBe(expected) // Object.is equality\n\nExpected: not 5",
        "expect(value).not.toBe: expected not 5",
    ),
    (
        "Error: expect(received).toContain(expected) // indexOf\n\nExpected substring: \"receipt\"\nReceived string:    \"invoice 156\"",
        "expect(value).toContain: expected substring \"receipt\", received \"invoice 156\"",
    ),
    (
        "Error: job to finish\n\njob to finish\n\nexpect(received).toBe(expected) // Object.is equality\n\nExpected: 36\nReceived: 2\n\nCall Log:\n- Timeout 400ms exceeded while waiting on the predicate",
        "job to finish — expect(value).toBe: expected 36, received 2 (polled for 400 ms)",
    ),
    (
        "Error: expect(received).toThrow(expected)\n\nExpected substring: \"denied\"\n\nReceived function did not throw",
        "expect(value).toThrow: expected substring \"denied\", received function did not throw",
    ),
    (
        "Error: expect(received).toMatchObject(expected)\n\n- Expected  - 1\n+ Received  + 1\n\n  Object {\n    \"id\": 7,\n    \"address\": Object {\n-     \"city\": \"Berlin\",\n+     \"city\": \"Paris\",\n    },\n  }",
        "expect(value).toMatchObject: address.city: expected \"Berlin\", received \"Paris\"",
    ),
    (
        "Error: expect(received).toEqual(expected) // deep equality\n\n- Expected  - 1\n+ Received  + 2\n\n  Array [\n-   \"frank\",\n+   \"carol\",\n    \"read\",\n+   \"write\",\n  ]",
        "expect(value).toEqual: expected \"frank\", received \"carol\"",
    ),
    (
        "Error: expect(received).toEqual(expected) // deep equality\n\n- Expected  - 2\n+ Received  + 0\n\n  Object {\n-   \"a\": 1,\n-   \"b\": 2,\n  }",
        "expect(value).toEqual: a: expected 1, which is missing (+1 more)",
    ),
    (
        "Error: expect(locator).toMatchAriaSnapshot(expected) failed\n\nLocator: locator('main')\n- Expected  - 1\n+ Received  + 1\n\n- - heading \"Cart\" [level=1]\n+ - heading \"Basket\" [level=1]\n\nCall log:\n  - waiting for locator('main')\n  - locator resolved to <main></main>\n",
        "expect(locator('main')).toMatchAriaSnapshot: expected - heading \"Cart\" [level=1], received - heading \"Basket\" [level=1]",
    ),
    (
        "Error: expect(page).toHaveScreenshot(expected) failed\n\n  1204 pixels (ratio 0.02 of all image pixels) are different.\n\n  Snapshot: home.png\n\nCall log:\n  - Expect \"toHaveScreenshot(home.png)\" with timeout 5000ms\n",
        "expect(page).toHaveScreenshot: 1204 pixels (ratio 0.02 of all image pixels) are different",
    ),
    (
        "Error: expect(response).toBeOK() failed\n\nCall log:\n  - → GET http://shop/api/orders/7\n  -   user-agent: x\n  - ← 503 Service Unavailable\n  -   date: x\n",
        "expect(response).toBeOK: GET http://shop/api/orders/7 → 503 Service Unavailable",
    ),
    // Strict mode.
    (
        "Error: locator.click: Error: strict mode violation: getByRole('button', { name: 'Edit' }) resolved to 10 elements:\n    1) <button>Edit</button> aka x\n\nCall log:\n  - waiting for getByRole('button', { name: 'Edit' })\n",
        "locator.click: strict mode violation: getByRole('button', { name: 'Edit' }) resolved to 10 elements",
    ),
    (
        "Error: expect(locator).toBeVisible() failed\n\nLocator: locator('.item')\nExpected: visible\nError: strict mode violation: locator('.item') resolved to 4 elements:\n    1) <li></li> aka x\n\nCall log:\n  - waiting for locator('.item')\n",
        "expect(locator('.item')).toBeVisible: strict mode violation: locator('.item') resolved to 4 elements",
    ),
    // Actions and waits.
    (
        "TimeoutError: locator.click: Timeout 400ms exceeded.\nCall log:\n  - waiting for getByTestId('cart')\n",
        "locator.click: Timeout 400ms exceeded — getByTestId('cart') not found",
    ),
    (
        "TimeoutError: locator.click: Timeout 700ms exceeded.\nCall log:\n  - waiting for getByTestId('pay')\n    - locator resolved to <button>Pay</button>\n  - attempting click action\n    2 × waiting for element to be visible, enabled and stable\n      - <div class=\"modal m64dc\">Cookie</div> intercepts pointer events\n",
        "locator.click: Timeout 700ms exceeded — getByTestId('pay') is covered by <div class=\"modal m64dc\">",
    ),
    (
        "TimeoutError: locator.click: Timeout 700ms exceeded.\nCall log:\n  - waiting for getByTestId('pay')\n    - locator resolved to <button disabled>Pay</button>\n  - attempting click action\n      - element is not enabled\n",
        "locator.click: Timeout 700ms exceeded — getByTestId('pay') is disabled",
    ),
    (
        "TimeoutError: page.waitForResponse: Timeout 500ms exceeded while waiting for event \"response\"\n=========================== logs ===========================\nwaiting for response \"**/api/orders/*\"\n============================================================",
        "page.waitForResponse: Timeout 500ms exceeded while waiting for event \"response\" — waiting for response \"**/api/orders/*\"",
    ),
    (
        "TimeoutError: page.waitForURL: Timeout 500ms exceeded.\n=========================== logs ===========================\nwaiting for navigation to \"**/done/398\" until \"load\"\n============================================================",
        "page.waitForURL: Timeout 500ms exceeded — waiting for navigation to \"**/done/398\" until \"load\"",
    ),
    (
        "TimeoutError: page.waitForEvent: Timeout 600ms exceeded while waiting for event \"download\"\n=========================== logs ===========================\nwaiting for event \"download\"\n============================================================",
        "page.waitForEvent: Timeout 600ms exceeded while waiting for event \"download\"",
    ),
    (
        "Error: page.goto: net::ERR_CONNECTION_REFUSED at http://127.0.0.1:562/p\nCall log:\n  - navigating to \"http://127.0.0.1:562/p\", waiting until \"load\"\n",
        "page.goto: net::ERR_CONNECTION_REFUSED at http://127.0.0.1:562/p",
    ),
    (
        "TimeoutError: page.goto: Timeout 3000ms exceeded.\nCall log:\n  - navigating to \"http://shop/slow\", waiting until \"load\"\n",
        "page.goto: Timeout 3000ms exceeded — navigating to \"http://shop/slow\"",
    ),
    (
        "Error: apiRequestContext.get: connect ECONNREFUSED 127.0.0.1:9\nCall log:\n  - → GET http://127.0.0.1:9/api\n  -   accept: */*\n",
        "apiRequestContext.get: connect ECONNREFUSED 127.0.0.1:9 — GET http://127.0.0.1:9/api",
    ),
    // The time of the test, of hooks and fixtures.
    ("\u{1b}[31mTest timeout of 766ms exceeded.\u{1b}[39m", "Test timeout of 766ms exceeded."),
    (
        "Test timeout of 1253ms exceeded.\n---\nError: locator.click: Test timeout of 1253ms exceeded.\nCall log:\n  - waiting for getByTestId('done')\n",
        "locator.click: Test timeout of 1253ms exceeded — getByTestId('done') not found",
    ),
    (
        "\"beforeEach\" hook timeout of 400ms exceeded.\n---\nError: locator.fill: Test timeout of 400ms exceeded.\nCall log:\n  - waiting for getByLabel('Email')\n",
        "locator.fill: Test timeout of 400ms exceeded — getByLabel('Email') not found (in \"beforeEach\" hook)",
    ),
    (
        "Fixture \"account\" timeout of 300ms exceeded during setup.",
        "Fixture \"account\" timeout of 300ms exceeded during setup.",
    ),
    // What people throw.
    (
        "Error: Order 7 not found after 7 attempts\n    at a.spec.ts:1:2",
        "Error: Order 7 not found after 7 attempts",
    ),
    (
        "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n\n1 !== 2\n",
        "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal: 1 !== 2",
    ),
    (
        "Error: cannot pay\n    at pay (a.spec.ts:3:9)\n  [cause]: Error: card declined\n      at a.spec.ts:2:2",
        "Error: cannot pay — caused by card declined",
    ),
    // Further kinds, as Playwright 1.65 writes them.
    (
        "Error: expect(received).not.toThrow()\n\nError name:    \"TypeError\"\nError message: \"card declined\"\n",
        "expect(value).not.toThrow: threw TypeError: card declined",
    ),
    (
        "Error: expect(received).resolves.toBe()\n\nReceived promise rejected instead of resolved\nRejected to value: [Error: gateway is down]",
        "expect(value).toBe: promise was rejected: [Error: gateway is down]",
    ),
    (
        "Error: expect(received).toHaveProperty(path, value)\n\nExpected path: \"customer.address.zip\"\nReceived path: \"customer.address\"\n\nExpected value: \"75001\"\nReceived value: {\"city\": \"Paris\"}",
        "expect(value).toHaveProperty: expected path \"customer.address.zip\", received path \"customer.address\"",
    ),
    (
        "Error: expect(received).toBeGreaterThan(expected)\n\nExpected: > 5\nReceived:   2",
        "expect(value).toBeGreaterThan: expected > 5, received 2",
    ),
    (
        "Error: expect(received).toBeInstanceOf(expected)\n\nExpected constructor: Map\nReceived constructor: Object",
        "expect(value).toBeInstanceOf: expected constructor Map, received constructor Object",
    ),
    (
        "Error: expect(received).toEqual(expected) // deep equality\n\n- Expected  - 2\n+ Received  + 6\n\n- ObjectContaining {\n-   \"id\": Any<String>,\n+ Object {\n+   \"customer\": Object {\n+     \"name\": \"Ann\",\n+   },\n+   \"id\": 7,\n  }",
        "expect(value).toEqual: id: expected Any<String>, received 7 (+1 more)",
    ),
    (
        "Error: expect(received).toStrictEqual(expected) // deep equality\n\n- Expected  - 1\n+ Received  + 1\n\n- Object {\n+ A {\n    \"x\": 1,\n  }",
        "expect(value).toStrictEqual: expected Object, received A",
    ),
    (
        "AssertionError [ERR_ASSERTION]: Expected values to be strictly deep-equal:\n+ actual - expected\n\n  {\n    a: 1,\n    b: {\n+     c: 2\n-     c: 3\n    }\n  }",
        "AssertionError [ERR_ASSERTION]: Expected values to be strictly deep-equal: expected c: 3, received c: 2",
    ),
    (
        "Error: checkout failed\n[cause]: Error: card declined\n[cause]: Error: ECONNRESET at bank",
        "Error: checkout failed — caused by card declined, caused by ECONNRESET at bank",
    ),
    (
        "TimeoutError: locator.dragTo: Timeout 600ms exceeded.\nCall log:\n  - waiting for getByText('Card')\n    - locator resolved to <li>Card</li>\n  - attempting move and down action\n  - waiting for getByTestId('basket')\n",
        "locator.dragTo: Timeout 600ms exceeded — getByTestId('basket') not found",
    ),
    ("Error: first\n---\nError: second\n---\nError: third", "Error: first (+2 more errors)"),
    ("\n\n", ""),
];

#[test]
fn a_line_carries_the_fact_that_matters() {
    for (text, line) in LINES {
        assert_eq!(error_line(text, &[], 300), *line);
    }
}

/// Where evidence is gone, the line is all that is left to read.
#[test]
fn a_line_is_of_the_same_kind_as_its_error() {
    let kind = |text: &str| signature(&ErrorText::split(text), &[]).map(|signature| signature.kind);
    for (text, line) in LINES {
        assert_eq!(kind(line), kind(text), "{line}");
    }
}

#[test]
fn the_source_says_what_a_plain_expectation_is_about() {
    let line = |error: &str, text: &str| {
        error_line(error, &[SourceText { text, first_line: 1, line: Some(1) }], 300)
    };
    let status =
        "Error: expect(received).toBe(expected) // Object.is equality\n\nExpected: 200\nReceived: 401";
    for (code, expected) in [
        ("  expect(res.status()).toBe(200);", "expect(res.status()).toBe: expected 200, received 401"),
        (
            "await expect.poll(async () => get('/a, b)'), { timeout: 1 }).toBe(200);",
            "expect(value).toBe: expected 200, received 401",
        ),
        ("expect(body['a, (b)'], 'must be there')", "expect(value).toBe: expected 200, received 401"),
        (
            "expect.soft(body['a, (b)'], 'must be').toBe(200)",
            "expect(body['a, (b)']).toBe: expected 200, received 401",
        ),
        // The line of another call says nothing.
        ("  await pay(cart);", "expect(value).toBe: expected 200, received 401"),
    ] {
        assert_eq!(line(status, code), expected);
    }
    assert_eq!(
        line(
            "Error: expect(locator).toHaveAttribute(expected) failed\n\nLocator: getByTestId('dl')\nExpected: \"/a\"\nReceived: \"/b\"\n",
            "await expect(page.getByTestId('dl')).toHaveAttribute('href', '/a');",
        ),
        "expect(getByTestId('dl')).toHaveAttribute('href'): expected \"/a\", received \"/b\""
    );
}

#[test]
fn long_values_are_cut_before_the_line_is() {
    let value = "x".repeat(500);
    let text = format!("Error: expect(received).toBe(expected)\n\nExpected: \"{value}\"\nReceived: \"y\"");
    let line = error_line(&text, &[], 300);
    assert!(line.ends_with(", received \"y\""), "{line}");
}

proptest! {
    #[test]
    fn every_text_has_one_short_line(text in ".{0,400}", max in 0_usize..320) {
        let line = error_line(&text, &[], max);
        prop_assert!(line.chars().count() <= max.max(" (+100 more errors)".len()));
        prop_assert!(!line.contains(char::is_control));
    }
}

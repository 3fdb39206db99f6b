//! What failing tests say: the shapes of errors that Playwright and the code
//! under test print, filled with ids, numbers and timings that differ from
//! one failure to the next.

use super::random::Random;

/// `{n}` a small number, `{ms}` a duration, `{id}` a record id, `{uuid}` a
/// UUID, `{port}` a port, `{word}` a word, `{at}` the place in the test.
const TEMPLATES: [&str; 30] = [
    "Error: expect(locator).toBeVisible() failed\n\nLocator: getByRole('button', { name: 'Pay' })\nExpected: visible\nTimeout: {ms}ms\nError: element(s) not found\n\nCall log:\n  - Expect \"toBeVisible\" with timeout {ms}ms\n  - waiting for getByRole('button', { name: 'Pay' })\n\n    at {at}",
    "Error: expect(locator).toHaveText(expected) failed\n\nLocator:  getByTestId('order-total')\nExpected: \"€ {n}.00\"\nReceived: \"€ {n}.90\"\nTimeout:  {ms}ms\n\nCall log:\n  - Expect \"toHaveText\" with timeout {ms}ms\n  - waiting for getByTestId('order-total')\n    14 × locator resolved to <span data-testid=\"order-total\">€ {n}.90</span>\n       - unexpected value \"€ {n}.90\"\n\n    at {at}",
    "Error: expect(locator).toHaveCount(expected) failed\n\nLocator:  locator('.cart-line')\nExpected: {n}\nReceived: {n}\nTimeout:  {ms}ms\n\n    at {at}",
    "Error: expect(page).toHaveURL(expected) failed\n\nExpected pattern: /\\/orders\\/\\d+/\nReceived string:  \"http://127.0.0.1:{port}/checkout?step={n}\"\nTimeout: {ms}ms\n\n    at {at}",
    "Error: expect(received).toBe(expected) // Object.is equality\n\nExpected: {n}\nReceived: {n}\n\n    at {at}",
    "Error: expect(received).toEqual(expected) // deep equality\n\n- Expected  - 1\n+ Received  + 1\n\n  Object {\n-   \"id\": \"{uuid}\",\n+   \"id\": \"{uuid}\",\n    \"state\": \"open\",\n  }\n\n    at {at}",
    "TimeoutError: locator.click: Timeout {ms}ms exceeded.\nCall log:\n  - waiting for getByRole('link', { name: 'Order {id}' })\n    - locator resolved to <a href=\"/orders/{id}\">Order {id}</a>\n  - attempting click action\n    2 × waiting for element to be visible, enabled and stable\n      - element is not stable\n    - retrying click action\n\n    at {at}",
    "TimeoutError: locator.fill: Timeout {ms}ms exceeded.\nCall log:\n  - waiting for getByLabel('E-mail')\n\n    at {at}",
    "TimeoutError: page.waitForResponse: Timeout {ms}ms exceeded while waiting for event \"response\"\n\n    at {at}",
    "TimeoutError: page.goto: Timeout {ms}ms exceeded.\nCall log:\n  - navigating to \"http://127.0.0.1:{port}/products/{id}\", waiting until \"load\"\n\n    at {at}",
    "Error: page.goto: net::ERR_CONNECTION_REFUSED at http://127.0.0.1:{port}/login\nCall log:\n  - navigating to \"http://127.0.0.1:{port}/login\", waiting until \"load\"\n\n    at {at}",
    "Error: page.goto: net::ERR_NAME_NOT_RESOLVED at http://shop-{n}.invalid/\n\n    at {at}",
    "Error: locator.click: Error: strict mode violation: getByText('Save') resolved to {n} elements:\n    1) <button id=\"save-{id}\">Save</button> aka getByRole('button', { name: 'Save' }).first()\n    2) <span>Saved {n} minutes ago</span> aka getByText('Saved {n} minutes ago')\n\n    at {at}",
    "Error: locator.click: Target page, context or browser has been closed\nCall log:\n  - waiting for locator('#row-{id}')\n\n    at {at}",
    "Error: page.evaluate: Execution context was destroyed, most likely because of a navigation\n\n    at {at}",
    "Error: page.evaluate: TypeError: Cannot read properties of undefined (reading '{word}')\n    at eval (eval at evaluate (:{n}:{n}), <anonymous>:{n}:{n})\n\n    at {at}",
    "Error: locator.selectOption: did not find some options\nCall log:\n  - waiting for getByLabel('Country')\n    - locator resolved to <select id=\"country-{id}\">…</select>\n\n    at {at}",
    "Error: apiRequestContext.post: connect ECONNREFUSED 127.0.0.1:{port}\nCall log:\n  - → POST http://127.0.0.1:{port}/api/orders\n    - x-request-id: {uuid}\n\n    at {at}",
    "Error: expect(response).toBeOK() failed: 500 Internal Server Error\nURL: http://127.0.0.1:{port}/api/orders/{id}\nResponse: {\"error\":\"deadlock detected\",\"requestId\":\"{uuid}\"}\n\n    at {at}",
    "Error: expected 200, got 503 for /api/carts/{uuid} after {ms} ms\n\n    at {at}",
    "Error: apiRequestContext.get: Request timed out after {ms}ms\nCall log:\n  - → GET http://127.0.0.1:{port}/api/users/{id}\n\n    at {at}",
    "Error: expect(page).toHaveScreenshot(expected) failed\n\n  {id} pixels (ratio 0.0{n} of all image pixels) are different.\n\n  Snapshot: {word}.png\n\nCall log:\n  - Expect \"toHaveScreenshot({word}.png)\" with timeout {ms}ms\n\n    at {at}",
    "Test timeout of {ms}ms exceeded while running \"beforeEach\" hook.\n\n    at {at}",
    "Test timeout of {ms}ms exceeded.",
    "Error: expect(locator).toBeEnabled() failed\n\nLocator: getByRole('button', { name: 'Continue to step {n}' })\nExpected: enabled\nReceived: disabled\nTimeout: {ms}ms\n\n    at {at}",
    "Error: expect(locator).toContainText(expected) failed\n\nLocator: locator('[data-order=\"{id}\"]')\nExpected substring: \"{word}\"\nReceived string: \"pending since {n} minutes\"\nTimeout: {ms}ms\n\n    at {at}",
    "Error: Cannot find module '../fixtures/{word}-{n}.json'\nRequire stack:\n- /home/ci/build/{id}/tests/shared/load.ts\n\n    at {at}",
    "ReferenceError: {word} is not defined\n\n    at {at}",
    "Error: frame.waitForFunction: Page crashed\n\n    at {at}",
    "AssertionError [ERR_ASSERTION]: order {id} has {n} lines, expected {n}\n    at checkOrder (/home/ci/build/{id}/tests/shared/orders.ts:{n}:{n})\n\n    at {at}",
];

const WORDS: [&str; 8] =
    ["basket", "invoice", "voucher", "profile", "shipment", "address", "refund", "session"];

/// The error of a failing test. Tests prefer one template, as real ones fail
/// for one reason most of the time. `at` is the place in the test's file.
#[must_use]
pub fn error(random: &mut Random, preferred: u64, at: &str) -> String {
    let count = TEMPLATES.len() as u64;
    let number = if random.chance(800) { preferred } else { random.next() };
    // The remainder is smaller than a length.
    let mut rest = TEMPLATES[usize::try_from(number % count).unwrap_or_default()];
    let mut text = String::with_capacity(rest.len() + 64);
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        match after.split_once('}') {
            Some((name, after)) if is_placeholder(name) => {
                text.push_str(&value(random, name, at));
                rest = after;
            }
            _ => {
                text.push('{');
                rest = after;
            }
        }
    }
    text.push_str(rest);
    text
}

fn is_placeholder(name: &str) -> bool {
    matches!(name, "n" | "ms" | "id" | "uuid" | "port" | "word" | "at")
}

fn value(random: &mut Random, name: &str, at: &str) -> String {
    match name {
        "n" => random.between(1, 60).to_string(),
        "ms" => (random.between(5, 30) * 1000).to_string(),
        "id" => random.between(1_000, 9_999_999).to_string(),
        "port" => random.between(20_000, 60_000).to_string(),
        "word" => (*random.pick(&WORDS)).to_owned(),
        "uuid" => {
            let (high, low) = (random.next(), random.next());
            let hex = format!("{high:016x}{low:016x}");
            format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
        }
        _ => at.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_filled_whole_and_differs_between_failures() {
        for template in 0..TEMPLATES.len() as u64 {
            let mut random = Random::new(7, template);
            let texts: Vec<String> =
                (0..20).map(|_| error(&mut random, template, "tests/a.spec.ts:3:5")).collect();
            for text in &texts {
                for name in ["{n}", "{ms}", "{id}", "{uuid}", "{port}", "{word}", "{at}"] {
                    assert!(!text.contains(name), "{text}");
                }
            }
            assert!(texts.iter().any(|text| *text != texts[0]));
        }
    }
}

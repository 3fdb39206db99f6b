//! What the rich payload tells about an execution beside its result: about
//! 5 KB of steps, requests, console lines, vitals and source.

use serde_json::{Map, Value, json};

use super::random::Random;
use super::suite::Test;

const ACTIONS: [(&str, &str); 8] = [
    ("page.goto(/products)", "navigation"),
    ("locator.click(getByRole('button', { name: 'Add to cart' }))", "action"),
    ("locator.fill(getByLabel('Quantity'))", "input"),
    ("expect.toBeVisible", "assertion"),
    ("expect.toHaveText", "assertion"),
    ("locator.selectOption(getByLabel('Country'))", "input"),
    ("page.waitForResponse", "wait"),
    ("fixture: shop", "fixture"),
];
const PATHS: [&str; 6] = [
    "/api/carts/{id}/lines",
    "/api/products?page={id}",
    "/api/users/{id}",
    "/assets/shop-{id}.js",
    "/api/prices",
    "/",
];
const CONSOLE: [&str; 4] = [
    "Download the developer tools for a better development experience",
    "[shop] price list {id} is stale, reloading",
    "Failed to load resource: the server responded with a status of 404 (Not Found)",
    "Warning: each child in a list should have a unique key; check the render of CartLine",
];

/// Adds evidence to an entry of `testCases`.
pub fn add(entry: &mut Map<String, Value>, random: &mut Random, test: &Test, failing: bool, started_ms: i64) {
    let steps = random.between(8, 30);
    let mut at = started_ms;
    let list: Vec<Value> = (0..steps)
        .map(|number| {
            let (title, category) = random.pick(&ACTIONS);
            let duration = random.between(2, 180);
            at += i64::try_from(duration).unwrap_or_default();
            let location = format!("/home/ci/build/{}:{}:11", test.file, test.line as u64 + number % 12);
            let mut step =
                json!({"title": title, "duration": duration, "category": category, "location": location, "startTime": at});
            if failing && number + 1 == steps {
                step["failed"] = json!(true);
                step["error"] = json!({"message": entry.get("error")});
            }
            step
        })
        .collect();
    let slowest = list.iter().max_by_key(|step| step["duration"].as_u64()).cloned().unwrap_or_default();
    entry.insert("slowestStep".to_owned(), slowest["title"].clone());
    entry.insert("slowestStepDuration".to_owned(), slowest["duration"].clone());
    entry.insert("steps".to_owned(), Value::Array(list));
    entry.insert("networkRequests".to_owned(), requests(random, started_ms));
    entry.insert("consoleLogs".to_owned(), console(random, started_ms));
    entry.insert("webVitals".to_owned(), vitals(random));
    entry.insert("testSource".to_owned(), Value::String(source(test)));
    entry.insert(
        "testSourceFrames".to_owned(),
        json!([{"file": "tests/shared/shop.ts", "line": random.between(10, 80), "snippet": source(test)}]),
    );
    if failing {
        entry.insert("ariaSnapshot".to_owned(), Value::String(aria(random)));
    }
}

fn with_id(random: &mut Random, text: &str) -> String {
    text.replace("{id}", &random.between(1, 99_999).to_string())
}

fn requests(random: &mut Random, started_ms: i64) -> Value {
    (0..random.between(0, 12))
        .map(|number| {
            let path = random.pick(&PATHS);
            let path = with_id(random, path);
            let status = if random.chance(40) { 404 } else { 200 };
            json!({
                "method": if number % 4 == 3 { "POST" } else { "GET" },
                "url": format!("http://127.0.0.1:8080{path}"),
                "status": status,
                "duration": random.between(3, 400),
                "startTime": started_ms + i64::try_from(number * 37).unwrap_or_default(),
                "resourceType": if path.ends_with(".js") { "other" } else { "fetch" },
                "contentType": "application/json",
            })
        })
        .collect()
}

fn console(random: &mut Random, started_ms: i64) -> Value {
    (0..random.between(0, 4))
        .map(|number| {
            let text = random.pick(&CONSOLE);
            json!({
                "type": "warning",
                "text": with_id(random, text),
                "timestamp": started_ms + i64::try_from(number * 91).unwrap_or_default(),
                "location": "http://127.0.0.1:8080/assets/shop.js:1:24417",
            })
        })
        .collect()
}

fn vitals(random: &mut Random) -> Value {
    let ttfb = random.between(5, 90);
    json!({
        "navigation": {
            "url": "http://127.0.0.1:8080/cart", "ttfb": ttfb, "domInteractive": ttfb + 60,
            "domContentLoaded": ttfb + 75, "loadComplete": ttfb + 140,
            "transferSize": random.between(9_000, 90_000), "encodedBodySize": 9_000, "decodedBodySize": 31_000,
        },
        "paint": {"firstPaint": ttfb + 40, "firstContentfulPaint": ttfb + 48},
        "vitals": {"lcp": ttfb + 80, "cls": 0.01, "inp": random.between(8, 120)},
    })
}

fn source(test: &Test) -> String {
    let mut text = String::new();
    for (offset, line) in [
        "test('…', async ({ page, shop }) => {",
        "  await page.goto('/products');",
        "  await shop.add(page, 2);",
        "  await page.getByRole('button', { name: 'Pay' }).click();",
        "  await expect(page.getByTestId('order-total')).toHaveText(/€/);",
        "});",
    ]
    .iter()
    .enumerate()
    {
        let marker = match offset {
            0 => "* ",
            4 => "> ",
            _ => "  ",
        };
        text.push_str(&format!("{marker}{:>4} | {line}\n", test.line + offset));
    }
    text
}

fn aria(random: &mut Random) -> String {
    let mut text = String::from("- banner:\n  - link \"Shop\"\n- main:\n");
    for _ in 0..random.between(10, 40) {
        text.push_str(&with_id(
            random,
            "  - listitem:\n    - link \"Product {id}\"\n    - button \"Add to cart\"\n",
        ));
    }
    text
}

//! The thirty faults: what breaks, where, how long the history around it is,
//! and what Playwright reports of it. Fixed before the ranking was written; a
//! change of the ranking changes nothing here.

use callboard_domain::evidence::{ConsoleEntry, Evidence, NetworkRequest, PageState, SourceFrame};

use super::shop::{action, capital, of_area};

/// How a fault breaks the shop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The label of a button has other words.
    Label,
    /// A test id has another name.
    TestId,
    /// A route of the server has another path.
    Route,
    /// A service asks for a column that is not there.
    Service,
    /// A field of an answer has another name.
    Field,
    /// Prices are formatted in another way.
    Format,
    /// A style hides a button.
    Style,
    /// The screen of the tests looks for the wrong class.
    Screen,
    /// A dependency behaves in another way.
    Dependency,
    /// A translated text has other words.
    Text,
    /// A function of a hook has another name.
    Hook,
    /// All buttons are disabled at first.
    Button,
    /// A page is served at another address.
    Address,
}

/// A fault and the seed of the history around it.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) kind: Kind,
    pub(super) area: &'static str,
    pub(super) seed: u64,
}

const fn fault(kind: Kind, area: &'static str, seed: u64) -> Fault {
    Fault { kind, area, seed }
}

/// All of them.
pub(super) const FAULTS: [Fault; 30] = [
    fault(Kind::Label, "cart", 11),
    fault(Kind::Label, "login", 23),
    fault(Kind::Label, "coupons", 37),
    fault(Kind::Label, "orders", 41),
    fault(Kind::TestId, "profile", 53),
    fault(Kind::TestId, "reviews", 67),
    fault(Kind::TestId, "checkout", 71),
    fault(Kind::Route, "search", 83),
    fault(Kind::Route, "wishlist", 97),
    fault(Kind::Route, "shipping", 101),
    fault(Kind::Service, "orders", 113),
    fault(Kind::Service, "cart", 127),
    fault(Kind::Service, "coupons", 131),
    fault(Kind::Field, "checkout", 149),
    fault(Kind::Field, "wishlist", 151),
    fault(Kind::Field, "reviews", 163),
    fault(Kind::Format, "cart", 173),
    fault(Kind::Format, "shipping", 181),
    fault(Kind::Style, "checkout", 193),
    fault(Kind::Style, "search", 199),
    fault(Kind::Screen, "profile", 211),
    fault(Kind::Screen, "coupons", 223),
    fault(Kind::Dependency, "orders", 227),
    fault(Kind::Dependency, "login", 239),
    fault(Kind::Text, "search", 251),
    fault(Kind::Text, "wishlist", 263),
    fault(Kind::Hook, "shipping", 271),
    fault(Kind::Hook, "login", 281),
    fault(Kind::Button, "reviews", 293),
    fault(Kind::Address, "orders", 307),
];

/// What a fault changes: in a file, a text for another one.
#[derive(Debug)]
pub(super) struct Edit {
    pub(super) path: String,
    pub(super) from: String,
    pub(super) to: String,
}

fn edit(path: String, from: &str, to: &str) -> Edit {
    Edit { path, from: from.to_owned(), to: to.to_owned() }
}

impl Fault {
    /// What the commit of the fault changes. Its message says nothing of it.
    pub(super) fn edits(&self) -> (Vec<Edit>, &'static str) {
        let (area, big, label) = (self.area, capital(self.area), action(self.area));
        let form = format!("web/src/components/{big}Form.tsx");
        match self.kind {
            Kind::Label => {
                let words = label.split(' ').next().unwrap_or(label);
                (vec![edit(form, &format!(">{label}<"), &format!(">{words} now<"))], "Shorten a label")
            }
            Kind::TestId => {
                let old = format!("data-testid=\"{area}-note\"");
                (vec![edit(form, &old, &format!("data-testid=\"{area}-comment\""))], "Tidy up attributes")
            }
            Kind::Route => {
                let path = format!("server/src/routes/{area}.ts");
                let old = format!("get('/api/{area}'");
                (vec![edit(path, &old, &format!("get('/api/v2/{area}'"))], "Prepare the second version")
            }
            Kind::Service => {
                let path = format!("server/src/services/{area}Service.ts");
                (vec![edit(path, "where user_id = $1", "where owner_id = $1")], "Name columns alike")
            }
            Kind::Field => {
                let path = format!("server/src/services/{area}Service.ts");
                (
                    vec![edit(path, "total: { amount: sum(rows)", "sum: { value: sum(rows)")],
                    "Simplify answers",
                )
            }
            Kind::Format => {
                let path = "web/src/lib/format.ts".to_owned();
                (
                    vec![edit(path, "€${amount.toFixed(2)}", "${amount.toFixed(2)} €")],
                    "Follow the style guide",
                )
            }
            Kind::Style => {
                let path = format!("web/src/styles/{area}.css");
                (vec![edit(path, "display: inline-flex;", "display: none;")], "Polish small screens")
            }
            Kind::Screen => {
                let path = format!("e2e/screens/{area}Screen.ts");
                (vec![edit(path, &format!("'.{area}-total'"), &format!("'.{area}-sum'"))], "Clean up screens")
            }
            Kind::Dependency => {
                let bump = |path: &str, old: &str, new: &str| edit(path.to_owned(), old, new);
                let edits = vec![
                    bump("package.json", "\"intl-format\": \"3.2.1\"", "\"intl-format\": \"4.0.0\""),
                    bump(
                        "package-lock.json",
                        "intl-format\": { \"version\": \"3.2.1\"",
                        "intl-format\": { \"version\": \"4.0.0\"",
                    ),
                ];
                (edits, "Update dependencies")
            }
            Kind::Text => {
                let path = "web/src/i18n/en.json".to_owned();
                (vec![edit(path, &format!("\"{big} overview\""), &format!("\"All {area}\""))], "Review texts")
            }
            Kind::Hook => {
                let path = format!("web/src/hooks/use{big}.ts");
                let old = format!("return {{ data, status, refresh{big} }}");
                let new = format!("return {{ data, status, reload: refresh{big} }}");
                (vec![edit(path, &old, &new)], "Make hooks alike")
            }
            Kind::Button => {
                let path = "web/src/components/Button.tsx".to_owned();
                (vec![edit(path, "disabled = false", "disabled = true")], "Guard against double clicks")
            }
            Kind::Address => {
                let path = "web/src/App.tsx".to_owned();
                let old = format!("path=\"/{area}\"");
                (vec![edit(path, &old, &format!("path=\"/account/{area}\""))], "Group pages")
            }
        }
    }

    /// The file of the failing test.
    pub(super) fn test_file(&self) -> String {
        format!("e2e/{}.spec.ts", self.area)
    }

    /// What the run says changed in its environment since it was green.
    pub(super) fn environment(&self) -> Vec<String> {
        match self.kind {
            Kind::Dependency => vec!["dependencies.intl-format".to_owned()],
            _ => Vec::new(),
        }
    }

    /// What Playwright reports.
    pub(super) fn evidence(&self) -> Evidence {
        let (area, big, label) = (self.area, capital(self.area), action(self.area));
        let spec = format!("    at /home/ci/shop/e2e/{area}.spec.ts:9:3");
        let screen =
            format!("    at {big}Screen.fillNote (/home/ci/shop/e2e/screens/{area}Screen.ts:10:5)\n{spec}");
        let button = format!("getByRole('button', {{ name: '{label}' }})");
        let heading = format!("getByRole('heading', {{ name: '{big} overview' }})");
        let waits = |locator: &str| format!("Call log:\n  - waiting for {locator}\n");
        let invisible = format!(
            "Error: expect(locator).toBeVisible() failed\n\nLocator: {heading}\nExpected: visible\n\
             Error: element(s) not found\n\n{}\n{spec}",
            waits(&heading)
        );
        let received = |locator: &str, received: &str| {
            format!(
                "Error: expect(locator).toHaveText(expected) failed\n\nLocator: {locator}\n\
                 Expected: \"€12.00\"\nReceived: \"{received}\"\n\n{}\n{spec}",
                waits(locator)
            )
        };
        let total = format!("locator('.{area}-total')");
        let request = |status| {
            let url = format!("http://localhost:3000/api/{area}");
            NetworkRequest {
                method: "GET".to_owned(),
                normalized_url: url.clone(),
                url,
                status,
                ..NetworkRequest::default()
            }
        };
        let page_error = |text: &str| ConsoleEntry {
            kind: "pageerror".to_owned(),
            text: text.to_owned(),
            ..ConsoleEntry::default()
        };
        let (error, requests, console) = match self.kind {
            Kind::Label => (
                format!("TimeoutError: locator.click: Timeout 30000ms exceeded.\n{}\n{spec}", waits(&button)),
                vec![],
                vec![],
            ),
            Kind::TestId => {
                let locator = format!("getByTestId('{area}-note')");
                let error = format!(
                    "TimeoutError: locator.fill: Timeout 30000ms exceeded.\n{}\n{screen}",
                    waits(&locator)
                );
                (error, vec![], vec![])
            }
            Kind::Route => (invisible, vec![request(404)], vec![page_error("Error: Request failed")]),
            Kind::Service => (invisible, vec![request(500)], vec![page_error("Error: Request failed")]),
            Kind::Field => {
                let text = "TypeError: Cannot read properties of undefined (reading 'amount')";
                (invisible, vec![], vec![page_error(text)])
            }
            Kind::Format => (received(&total, "12.00 €"), vec![], vec![]),
            Kind::Style => {
                let error = format!(
                    "TimeoutError: locator.click: Timeout 30000ms exceeded.\n{}    - locator resolved to \
                     <button type=\"submit\" class=\"button {area}-submit\">{label}</button>\n  - attempting click \
                     action\n    - element is not visible\n\n{spec}",
                    waits(&button)
                );
                (error, vec![], vec![])
            }
            Kind::Screen => {
                let lost = format!("locator('.{area}-sum')");
                let error = format!(
                    "Error: expect(locator).toHaveText(expected) failed\n\nLocator: {lost}\nExpected: \"€12.00\"\n\
                     Error: element(s) not found\n\n{}\n{spec}",
                    waits(&lost)
                );
                (error, vec![], vec![])
            }
            Kind::Dependency => (received(&total, "EUR 12.00"), vec![], vec![]),
            Kind::Text | Kind::Address => (invisible, vec![], vec![]),
            Kind::Hook => {
                let text = format!("TypeError: refresh{big} is not a function");
                let error = format!(
                    "TimeoutError: locator.click: Timeout 30000ms exceeded.\n{}\n{spec}",
                    waits(&button)
                );
                (error, vec![], vec![page_error(&text)])
            }
            Kind::Button => {
                let error = format!(
                    "TimeoutError: locator.click: Timeout 30000ms exceeded.\n{}    - locator resolved to <button \
                     disabled type=\"submit\" class=\"button {area}-submit\">{label}</button>\n  - attempting click \
                     action\n    - element is not enabled\n\n{spec}",
                    waits(&button)
                );
                (error, vec![], vec![])
            }
        };
        let source = of_area(area).into_iter().find(|(path, _)| *path == self.test_file());
        Evidence {
            error: Some(error),
            network_requests: requests,
            console_logs: console,
            page_state: Some(PageState {
                url: format!("http://localhost:3000/{area}"),
                ..PageState::default()
            }),
            test_source: source.map(|(_, text)| text),
            test_source_frames: vec![SourceFrame {
                file: self.test_file(),
                line: Some(9),
                snippet: format!("  await page.{button}.click();"),
            }],
            ..Evidence::default()
        }
    }
}

//! The files of the shop whose history the faults are hidden in: ten areas of
//! the same shape, and what they share.

/// What a person does in an area, by the label of its button.
pub(super) const AREAS: [(&str, &str); 10] = [
    ("cart", "Proceed to checkout"),
    ("checkout", "Place order"),
    ("login", "Sign in"),
    ("search", "Find products"),
    ("profile", "Save changes"),
    ("orders", "Cancel order"),
    ("reviews", "Post review"),
    ("wishlist", "Move to cart"),
    ("shipping", "Choose address"),
    ("coupons", "Apply coupon"),
];

/// The label of an area's button.
pub(super) fn action(area: &str) -> &'static str {
    AREAS.iter().find(|(name, _)| *name == area).map_or("", |(_, action)| action)
}

/// An area with a capital letter: `Cart`.
pub(super) fn capital(area: &str) -> String {
    let mut letters = area.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

fn filled(template: &str, area: &str) -> String {
    template.replace("{area}", area).replace("{Area}", &capital(area)).replace("{action}", action(area))
}

const PAGE: &str = r#"import { {Area}Summary } from '../components/{Area}Summary';
import { {Area}Form } from '../components/{Area}Form';
import { use{Area} } from '../hooks/use{Area}';
import '../styles/{area}.css';

export function {Area}Page() {
  const { data, status, refresh{Area} } = use{Area}();
  if (status === 'loading') return <p role="status">Loading {area}</p>;
  return (
    <main className="{area}-page">
      <h1>Your {area}</h1>
      <{Area}Summary items={data.items} total={data.total} />
      <{Area}Form onSubmit={refresh{Area}} />
    </main>
  );
}
"#;

const FORM: &str = r#"import { Button } from './Button';

export function {Area}Form({ onSubmit }) {
  return (
    <form className="{area}-form" onSubmit={onSubmit}>
      <label htmlFor="{area}-note">{Area} note</label>
      <input id="{area}-note" data-testid="{area}-note" />
      <Button type="submit" className="{area}-submit">{action}</Button>
    </form>
  );
}
"#;

const SUMMARY: &str = r#"import { formatPrice } from '../lib/format';
import texts from '../i18n/en.json';

export function {Area}Summary({ items, total }) {
  return (
    <section data-testid="{area}-summary">
      <h2>{texts.{area}.heading}</h2>
      <ul>{items.map((item) => <li key={item.id}>{item.name}</li>)}</ul>
      <p className="{area}-total">{formatPrice(total.amount)}</p>
    </section>
  );
}
"#;

const HOOK: &str = r#"import { invalidate, useQuery } from '../lib/query';
import { request } from '../lib/api';

export function use{Area}() {
  const { data, status } = useQuery('{area}', () => request('/api/{area}'));
  const refresh{Area} = () => invalidate('{area}');
  return { data, status, refresh{Area} };
}
"#;

const STYLE: &str = r#".{area}-page {
  display: grid;
  gap: 1rem;
}
.{area}-form {
  display: flex;
}
.{area}-submit {
  display: inline-flex;
}
.{area}-total {
  font-weight: 600;
}
"#;

const ROUTE: &str = r#"import { Router } from 'express';
import { {area}Service } from '../services/{area}Service';

export const {area}Router = Router();

{area}Router.get('/api/{area}', async (req, res) => {
  res.json(await {area}Service.list(req.user));
});
{area}Router.post('/api/{area}/items', async (req, res) => {
  res.status(201).json(await {area}Service.add(req.user, req.body));
});
"#;

const SERVICE: &str = r#"import { db } from '../db';
import { sum } from '../lib/numbers';

export const {area}Service = {
  async list(user) {
    const rows = await db.query('select * from {area}_items where user_id = $1', [user.id]);
    return { items: rows, total: { amount: sum(rows), currency: 'EUR' } };
  },
  async add(user, item) {
    return db.insert('{area}_items', { user_id: user.id, name: item.name });
  },
};
"#;

const SPEC: &str = r#"import { test, expect } from './fixtures';
import { {Area}Screen } from './screens/{area}Screen';

test('{area}: {action}', async ({ page }) => {
  const screen = new {Area}Screen(page);
  await screen.open();
  await expect(page.getByRole('heading', { name: '{Area} overview' })).toBeVisible();
  await screen.fillNote('hello');
  await page.getByRole('button', { name: '{action}' }).click();
  await expect(screen.total).toHaveText('€12.00');
});
"#;

const SCREEN: &str = r#"export class {Area}Screen {
  constructor(page) {
    this.page = page;
    this.total = page.locator('.{area}-total');
  }
  async open() {
    await this.page.goto('/{area}');
  }
  async fillNote(text) {
    await this.page.getByTestId('{area}-note').fill(text);
  }
}
"#;

const DOCUMENT: &str =
    "# {Area}\n\nPeople choose *{action}* on the page `/{area}`.\nThe request `/api/{area}` fills it.\n";

/// Paths of an area's files, with what they hold.
const AREA_FILES: [(&str, &str); 10] = [
    ("web/src/pages/{Area}Page.tsx", PAGE),
    ("web/src/components/{Area}Form.tsx", FORM),
    ("web/src/components/{Area}Summary.tsx", SUMMARY),
    ("web/src/hooks/use{Area}.ts", HOOK),
    ("web/src/styles/{area}.css", STYLE),
    ("server/src/routes/{area}.ts", ROUTE),
    ("server/src/services/{area}Service.ts", SERVICE),
    ("e2e/{area}.spec.ts", SPEC),
    ("e2e/screens/{area}Screen.ts", SCREEN),
    ("docs/{area}.md", DOCUMENT),
];

const FORMAT: &str = r#"export function formatPrice(amount) {
  return `€${amount.toFixed(2)}`;
}
export function formatDate(date) {
  return date.toISOString().slice(0, 10);
}
"#;

const API: &str = r#"export async function request(path, options) {
  const response = await fetch(path, options);
  if (!response.ok) throw new Error(`Request failed: ${path}`);
  return response.json();
}
"#;

const BUTTON: &str = r#"export function Button({ disabled = false, className, children, ...rest }) {
  return (
    <button disabled={disabled} className={`button ${className}`} {...rest}>
      {children}
    </button>
  );
}
"#;

const QUERY: &str = r#"const entries = new Map();
export function useQuery(key, read) {
  return entries.get(key) ?? start(key, read);
}
export function invalidate(key) {
  entries.delete(key);
}
"#;

const FIXTURES: &str = r#"import { test as base, expect } from '@playwright/test';

export const test = base.extend({
  locale: 'en-GB',
});
export { expect };
"#;

const CONFIG: &str = r#"import { defineConfig } from '@playwright/test';

export default defineConfig({
  testDir: 'e2e',
  timeout: 30_000,
  use: { baseURL: 'http://localhost:3000' },
});
"#;

const MANIFEST: &str = r#"{
  "name": "shop",
  "dependencies": {
    "express": "5.1.0",
    "react": "19.2.0",
    "react-router": "7.9.1",
    "intl-format": "3.2.1"
  }
}
"#;

const LOCK: &str = r#"{
  "packages": {
    "node_modules/express": { "version": "5.1.0" },
    "node_modules/intl-format": { "version": "3.2.1" },
    "node_modules/react": { "version": "19.2.0" },
    "node_modules/react-router": { "version": "7.9.1" }
  }
}
"#;

fn app() -> String {
    let imports: String = AREAS
        .iter()
        .map(|(area, _)| filled("import { {Area}Page } from './pages/{Area}Page';\n", area))
        .collect();
    let routes: String = AREAS
        .iter()
        .map(|(area, _)| filled("      <Route path=\"/{area}\" element={<{Area}Page />} />\n", area))
        .collect();
    format!(
        "{imports}\nexport function App() {{\n  return (\n    <Routes>\n{routes}    </Routes>\n  );\n}}\n"
    )
}

fn texts() -> String {
    let lines: Vec<String> = AREAS
        .iter()
        .map(|(area, _)| filled("  \"{area}\": { \"heading\": \"{Area} overview\" }", area))
        .collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

fn server() -> String {
    let lines: String = AREAS
        .iter()
        .map(|(area, _)| {
            filled("import { {area}Router } from './routes/{area}';\napp.use({area}Router);\n", area)
        })
        .collect();
    format!("import express from 'express';\nconst app = express();\n{lines}app.listen(3000);\n")
}

/// Files of an area.
pub(super) fn of_area(area: &str) -> Vec<(String, String)> {
    AREA_FILES.iter().map(|(path, text)| (filled(path, area), filled(text, area))).collect()
}

/// Files that all areas share.
pub(super) fn shared() -> Vec<(String, String)> {
    let fixed = [
        ("web/src/lib/format.ts", FORMAT),
        ("web/src/lib/api.ts", API),
        ("web/src/lib/query.ts", QUERY),
        ("web/src/components/Button.tsx", BUTTON),
        ("e2e/fixtures.ts", FIXTURES),
        ("playwright.config.ts", CONFIG),
        ("package.json", MANIFEST),
        ("package-lock.json", LOCK),
    ];
    let made =
        [("web/src/App.tsx", app()), ("web/src/i18n/en.json", texts()), ("server/src/app.ts", server())];
    let fixed = fixed.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned()));
    fixed.chain(made.into_iter().map(|(path, text)| (path.to_owned(), text))).collect()
}

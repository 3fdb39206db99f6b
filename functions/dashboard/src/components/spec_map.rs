//! A tree map of pass rates: folders, and within them their files where those
//! are known. The area is the number of executions, the colour the pass rate.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_query::performance::SpecHealth;

use crate::components::{Area, squarified};
use crate::text::{grouped, percent};

/// Shapes of the map, on a wide screen and on a phone; heights are in pixels,
/// widths are stretched.
const SHAPES: [Area; 2] = [
    Area { x: 0.0, y: 0.0, width: 1_120.0, height: 340.0 },
    Area { x: 0.0, y: 0.0, width: 330.0, height: 520.0 },
];
/// What the name of a folder takes above its files, and its edge around them.
const HEAD: f64 = 26.0;
const EDGE: f64 = 3.0;
/// What a folder needs to show its files.
const LEAST: Area = Area { x: 0.0, y: 0.0, width: 40.0, height: 60.0 };

/// A folder or a file.
pub(crate) struct MapPlace {
    /// What stands on it.
    pub name: String,
    /// What it leads to.
    pub href: String,
    /// How its tests have been doing.
    pub health: SpecHealth,
    /// Its files.
    pub parts: Vec<MapPlace>,
}

/// A rectangle of each shape, as properties of a style: horizontally parts of a
/// hundred of the width, vertically pixels.
struct Tile {
    style: String,
    class: &'static str,
    name: String,
    rate: String,
    spoken: String,
    href: String,
}

/// Inputs of `components/spec_map.html`.
#[derive(Template)]
#[template(path = "components/spec_map.html")]
pub(crate) struct SpecMap {
    /// What is drawn.
    label: &'static str,
    tiles: Vec<Tile>,
}

impl HtmlSafe for SpecMap {}

impl SpecMap {
    /// The map of folders, with their files where those are known. What all
    /// their names begin with tells none from another.
    pub(crate) fn of_folders(mut folders: Vec<MapPlace>) -> Self {
        let root = folders.first().and_then(|folder| Some(format!("{}/", folder.name.split_once('/')?.0)));
        if let Some(root) = root.filter(|root| folders.iter().all(|folder| folder.name.starts_with(root))) {
            folders.iter_mut().for_each(|folder| folder.name = folder.name.split_off(root.len()));
        }
        let has_files = folders.iter().any(|folder| !folder.parts.is_empty());
        Self::new(if has_files { "Folders and their files" } else { "Folders" }, folders)
    }

    /// The map of the files of one folder.
    pub(crate) fn of_files(files: Vec<MapPlace>) -> Self {
        Self::new("Files", files)
    }

    fn new(label: &'static str, places: Vec<MapPlace>) -> Self {
        let mut tiles = Vec::new();
        draw(places, SHAPES, &mut tiles);
        Self { label, tiles }
    }
}

fn draw(mut places: Vec<MapPlace>, areas: [Area; 2], tiles: &mut Vec<Tile>) {
    places.retain(|place| place.health.execution_count > 0);
    places.sort_by_key(|place| std::cmp::Reverse(place.health.execution_count));
    #[expect(clippy::cast_precision_loss, reason = "counts of executions are far below 2^52")]
    let sizes: Vec<f64> = places.iter().map(|place| place.health.execution_count as f64).collect();
    let [wide, narrow] = areas.map(|area| squarified(&sizes, area));
    for (place, areas) in places.into_iter().zip(wide.into_iter().zip(narrow)) {
        let areas: [Area; 2] = areas.into();
        let has_room = areas.iter().all(|area| area.width >= LEAST.width && area.height >= LEAST.height);
        let parts = if has_room { place.parts } else { Vec::new() };
        let class = if parts.is_empty() { band(place.health.pass_rate) } else { "health-folder" };
        let rate = place.health.pass_rate.map_or_else(|| "–".to_owned(), percent);
        tiles.push(Tile {
            style: style(&areas),
            class,
            name: place.name,
            spoken: format!(
                "{}: {rate} passed of {} executions",
                place.health.prefix,
                grouped(place.health.execution_count)
            ),
            href: place.href,
            rate,
        });
        let inside = areas.map(|area| Area {
            x: area.x + EDGE,
            y: area.y + HEAD,
            width: area.width - 2.0 * EDGE,
            height: area.height - HEAD - EDGE,
        });
        draw(parts, inside, tiles);
    }
}

/// The place of a tile, for both shapes; `health.css` reads it.
fn style(areas: &[Area; 2]) -> String {
    let one = |name: &str, area: &Area, shape: &Area| {
        let share = |length: f64| length / shape.width * 100.0;
        format!(
            "--{name}x:{:.2};--{name}y:{:.0};--{name}w:{:.2};--{name}h:{:.0}",
            share(area.x),
            area.y,
            share(area.width),
            area.height
        )
    };
    let [wide, narrow] = areas;
    format!("{};{}", one("", wide, &SHAPES[0]), one("n", narrow, &SHAPES[1]))
}

/// Bands of pass rates: what is read at a glance is whether a place is worth a
/// look, not its exact rate, which stands on the tile.
fn band(rate: Option<f64>) -> &'static str {
    match rate {
        None => "health-none",
        Some(rate) if rate >= 0.995 => "health-best",
        Some(rate) if rate >= 0.97 => "health-good",
        Some(rate) if rate >= 0.9 => "health-fair",
        Some(_) => "health-poor",
    }
}

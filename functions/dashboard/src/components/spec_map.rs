//! A tree map of pass rates: folders, and within them their files where those
//! are known. The area is the number of executions, the colour the pass rate.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_query::performance::SpecHealth;

use crate::components::{Area, squarified};
use crate::text::{grouped, percent};

/// Shape of the map; its height is in pixels, its width is stretched.
const MAP: Area = Area { x: 0.0, y: 0.0, width: 1_120.0, height: 340.0 };
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

/// A rectangle, horizontally in percent of the width, vertically in pixels.
struct Tile {
    x: String,
    y: String,
    width: String,
    height: String,
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
    /// The map of folders, with their files where those are known.
    pub(crate) fn of_folders(folders: Vec<MapPlace>) -> Self {
        let has_files = folders.iter().any(|folder| !folder.parts.is_empty());
        Self::of(if has_files { "Folders and their files" } else { "Folders" }, folders)
    }

    /// The map of the files of one folder.
    pub(crate) fn of_files(files: Vec<MapPlace>) -> Self {
        Self::of("Files", files)
    }

    fn of(label: &'static str, places: Vec<MapPlace>) -> Self {
        let mut tiles = Vec::new();
        draw(places, MAP, &mut tiles);
        Self { label, tiles }
    }
}

fn draw(mut places: Vec<MapPlace>, area: Area, tiles: &mut Vec<Tile>) {
    places.retain(|place| place.health.execution_count > 0);
    places.sort_by_key(|place| std::cmp::Reverse(place.health.execution_count));
    #[expect(clippy::cast_precision_loss, reason = "counts of executions are far below 2^52")]
    let sizes: Vec<f64> = places.iter().map(|place| place.health.execution_count as f64).collect();
    for (place, area) in places.into_iter().zip(squarified(&sizes, area)) {
        let parts =
            if area.width < LEAST.width || area.height < LEAST.height { Vec::new() } else { place.parts };
        let class = if parts.is_empty() { band(place.health.pass_rate) } else { "health-folder" };
        let rate = place.health.pass_rate.map_or_else(|| "–".to_owned(), percent);
        tiles.push(Tile {
            x: format!("{:.3}", area.x / MAP.width * 100.0),
            y: format!("{:.1}", area.y),
            width: format!("{:.3}", area.width / MAP.width * 100.0),
            height: format!("{:.1}", area.height),
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
        let inside = Area {
            x: area.x + EDGE,
            y: area.y + HEAD,
            width: area.width - 2.0 * EDGE,
            height: area.height - HEAD - EDGE,
        };
        draw(parts, inside, tiles);
    }
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

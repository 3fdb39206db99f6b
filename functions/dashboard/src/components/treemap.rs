//! Parts of a whole as rectangles whose areas are their sizes; squarified
//! (Bruls, Huizing and van Wijk: Squarified Treemaps, 2000), so that they are
//! easy to compare and to hit.

/// A rectangle in the units of the drawing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Area {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

impl Area {
    const fn shorter(&self) -> f64 {
        self.width.min(self.height)
    }
}

/// Divides an area among positive sizes, given in falling order.
pub(crate) fn squarified(sizes: &[f64], whole: Area) -> Vec<Area> {
    let total: f64 = sizes.iter().sum();
    if total <= 0.0 {
        return Vec::new();
    }
    let scale = whole.width * whole.height / total;
    let areas: Vec<f64> = sizes.iter().map(|size| size * scale).collect();
    let mut placed = Vec::with_capacity(areas.len());
    let mut free = whole;
    let mut rest = areas.as_slice();
    while !rest.is_empty() {
        let side = free.shorter();
        let mut count = 1;
        while count < rest.len() && worst(&rest[..=count], side) <= worst(&rest[..count], side) {
            count += 1;
        }
        let (row, after) = rest.split_at(count);
        free = lay(row, free, &mut placed);
        rest = after;
    }
    placed
}

/// The least square rectangle of a row along a side.
fn worst(row: &[f64], side: f64) -> f64 {
    let sum: f64 = row.iter().sum();
    let ratio = |area: &f64| {
        let (one, other) = (side * side * area / (sum * sum), sum * sum / (side * side * area));
        one.max(other)
    };
    row.iter().map(ratio).fold(0.0, f64::max)
}

/// Places a row along the shorter side of what is free; answers what is left.
fn lay(row: &[f64], free: Area, placed: &mut Vec<Area>) -> Area {
    let sum: f64 = row.iter().sum();
    if free.width >= free.height {
        let width = (sum / free.height).min(free.width);
        let mut y = free.y;
        for area in row {
            let height = area / width;
            placed.push(Area { x: free.x, y, width, height });
            y += height;
        }
        Area { x: free.x + width, width: free.width - width, ..free }
    } else {
        let height = (sum / free.width).min(free.height);
        let mut x = free.x;
        for area in row {
            let width = area / height;
            placed.push(Area { x, y: free.y, width, height });
            x += width;
        }
        Area { y: free.y + height, height: free.height - height, ..free }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WHOLE: Area = Area { x: 0.0, y: 0.0, width: 600.0, height: 400.0 };

    proptest! {
        #[test]
        fn areas_are_in_proportion_and_inside(mut sizes in prop::collection::vec(1.0_f64..1_000.0, 1..40)) {
            sizes.sort_by(|one, other| other.total_cmp(one));
            let total: f64 = sizes.iter().sum();
            let areas = squarified(&sizes, WHOLE);
            prop_assert_eq!(areas.len(), sizes.len());
            for (area, size) in areas.iter().zip(&sizes) {
                let expected = size / total * WHOLE.width * WHOLE.height;
                prop_assert!((area.width * area.height - expected).abs() < expected * 1e-6 + 1e-6);
                prop_assert!(area.x >= -1e-6 && area.x + area.width <= WHOLE.width + 1e-6);
                prop_assert!(area.y >= -1e-6 && area.y + area.height <= WHOLE.height + 1e-6);
            }
        }
    }

    #[test]
    fn the_example_of_the_paper_comes_out_as_in_the_paper() {
        let areas =
            squarified(&[6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0], Area { width: 6.0, height: 4.0, ..WHOLE });
        assert_eq!(areas[0], Area { x: 0.0, y: 0.0, width: 3.0, height: 2.0 });
        assert_eq!(areas[1], Area { x: 0.0, y: 2.0, width: 3.0, height: 2.0 });
    }
}

//! The values from which parameters are drawn.
//!
//! The fact that constrains it: they must be those that the data holds, so whatever the generator's crate knows comes from it;
//! only the words of query 13, which the data's comments hold by chance, stand here.

use tpchgen::distribution::Distributions;

/// The first and the second word of query 13.
pub(super) const WORDS: [[&str; 4]; 2] =
    [["special", "pending", "unusual", "express"], ["packages", "requests", "accounts", "deposits"]];

/// A nation and its region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nation {
    pub(super) name: &'static str,
    pub(super) region: &'static str,
}

/// The nation with this key, 0 to 24.
pub(super) fn nation(key: usize) -> Nation {
    // What the crate calls the weight of a nation is the key of its region.
    let nations = Distributions::static_default().nations();
    Nation { name: nations.get_values()[key], region: regions()[nations.get_weight(key) as usize] }
}

/// How many nations there are.
pub(super) fn nations() -> usize {
    Distributions::static_default().nations().size()
}

/// Region names, in the order of their keys.
pub(super) fn regions() -> &'static [&'static str] {
    Distributions::static_default().regions().get_values()
}

/// Part types: three words each.
pub(super) fn part_types() -> &'static [&'static str] {
    Distributions::static_default().part_types().get_values()
}

/// Part containers: two words each.
pub(super) fn containers() -> &'static [&'static str] {
    Distributions::static_default().part_containers().get_values()
}

/// The words of part names.
pub(super) fn colors() -> &'static [&'static str] {
    Distributions::static_default().part_colors().get_values()
}

/// Market segments.
pub(super) fn segments() -> &'static [&'static str] {
    Distributions::static_default().market_segments().get_values()
}

/// Ship modes.
pub(super) fn ship_modes() -> &'static [&'static str] {
    Distributions::static_default().ship_modes().get_values()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_values_as_the_specification_has() {
        let lengths = [part_types(), containers(), colors(), segments(), ship_modes(), regions()].map(<[_]>::len);
        assert_eq!(lengths, [150, 40, 92, 5, 7, 5]);
        assert_eq!(nations(), 25);
    }

    #[test]
    fn a_nation_has_its_region() {
        let of = |name| (0..nations()).map(nation).find(|nation| nation.name == name);
        let find = |name| of(name).map(|nation| nation.region);
        assert_eq!(find("BRAZIL"), Some("AMERICA"));
        assert_eq!(find("GERMANY"), Some("EUROPE"));
        assert_eq!(find("SAUDI ARABIA"), Some("MIDDLE EAST"));
        assert_eq!(find("CHINA"), Some("ASIA"));
        assert_eq!(find("KENYA"), Some("AFRICA"));
    }
}

//! Negotiation of the protocol version between the keeper and a peer.

/// The range of versions that one end supports, inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Versions {
    pub(crate) min: u16,
    pub(crate) max: u16,
}

/// The newest version that both support.
pub(crate) fn common(ours: Versions, theirs: Versions) -> Option<u16> {
    let newest = ours.max.min(theirs.max);
    (newest >= ours.min && newest >= theirs.min).then_some(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed(ours: (u16, u16), theirs: (u16, u16)) -> Option<u16> {
        common(Versions { min: ours.0, max: ours.1 }, Versions { min: theirs.0, max: theirs.1 })
    }

    #[test]
    fn the_newest_common_version_is_spoken() {
        assert_eq!(agreed((1, 1), (1, 1)), Some(1));
        assert_eq!(agreed((1, 1), (1, 3)), Some(1), "a daemon two versions newer that still knows us");
        assert_eq!(agreed((1, 3), (1, 1)), Some(1), "an old daemon and a newer keeper");
        assert_eq!(agreed((2, 5), (3, 4)), Some(4));
    }

    #[test]
    fn a_gap_between_the_versions_is_said_and_not_bridged() {
        assert_eq!(agreed((1, 1), (2, 3)), None);
        assert_eq!(agreed((3, 5), (1, 2)), None);
        assert_eq!(agreed((1, 1), (3, 0)), None, "an empty range");
    }
}

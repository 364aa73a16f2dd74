//! Checks how many files, terminals and processes are left. The daemon counts them, because it starts the agents.

use std::path::Path;

use agency_api::view::LimitedResource;

use super::finding::{About, Finding};

/// The number of agents that should still fit without a warning.
const SOON: u64 = 10;

/// Without /dev/ptmx the daemon cannot count terminals, so check it here.
pub(super) fn check() -> Option<Finding> {
    let terminals = Path::new("/dev/ptmx").exists();
    (!terminals).then(|| {
        About::Limits
            .broken("/dev/ptmx does not exist: Agency cannot create terminals", "mount devpts on /dev/pts")
    })
}

pub(super) fn limit_finding(bounded: &LimitedResource) -> Finding {
    let LimitedResource { what, figure, needed, hint } = bounded;
    let words = format!("{what}: {} of {} in use", figure.used, figure.limit);
    match (figure.lacks(*needed), figure.lacks(needed * SOON)) {
        (true, _) => About::Limits.broken(words, hint),
        (false, true) => About::Limits.warning(words, hint),
        (false, false) => About::Limits.fine(words),
    }
}

#[cfg(test)]
mod tests {
    use agency_api::view::ResourceUse;

    use super::super::finding::Level;
    use super::*;

    #[test]
    fn what_is_left_decides() {
        let level = |used| {
            let (what, hint) = ("terminals".to_owned(), "more".to_owned());
            limit_finding(&LimitedResource {
                what,
                figure: ResourceUse { used, limit: 100 },
                needed: 2,
                hint,
            })
            .level
        };
        assert_eq!(
            [level(5), level(81), level(99), level(120)],
            [Level::Fine, Level::Warning, Level::Broken, Level::Broken]
        );
    }
}

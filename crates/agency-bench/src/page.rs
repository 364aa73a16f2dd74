//! A page with a place for figures: what stands between two marks is replaced, the rest is people's own.

const BEGIN: &str = "<!-- figures: written by `make bench-doc` -->";
const END: &str = "<!-- end of figures -->";

/// The page with these figures in their place.
pub fn with_figures(page: &str, figures: &str) -> Result<String, String> {
    let (before, rest) = page.split_once(BEGIN).ok_or_else(|| format!("the page has no line {BEGIN}"))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| format!("the page has no line {END}"))?;
    Ok(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", figures.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_marks_changes() {
        let page = format!("# Page\n{BEGIN}\nold\n{END}\n## Causes\n");
        let once = with_figures(&page, "new\n").unwrap();
        assert_eq!(once, format!("# Page\n{BEGIN}\n\nnew\n\n{END}\n## Causes\n"));
        assert_eq!(with_figures(&once, "new").unwrap(), once);
        assert!(with_figures("# Page", "new").is_err());
    }
}

//! A page with figures between two marks. The program replaces these; people write the rest.

const END: &str = "<!-- end of figures -->";

/// The page with these figures between its marks. The first mark names the target of `make` that writes them.
pub fn with_figures(page: &str, target: &str, figures: &str) -> Result<String, String> {
    let begin = format!("<!-- figures: written by `make {target}` -->");
    let (before, rest) = page.split_once(&begin).ok_or_else(|| format!("the page has no line {begin}"))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| format!("the page has no line {END}"))?;
    Ok(format!("{before}{begin}\n\n{}\n\n{END}{after}", figures.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_between_the_marks_changes() {
        let begin = "<!-- figures: written by `make it` -->";
        let page = format!("# Page\n{begin}\nold\n{END}\n## Causes\n");
        let once = with_figures(&page, "it", "new\n").unwrap();
        assert_eq!(once, format!("# Page\n{begin}\n\nnew\n\n{END}\n## Causes\n"));
        assert_eq!(with_figures(&once, "it", "new").unwrap(), once);
        assert!(with_figures("# Page", "it", "new").is_err());
    }
}

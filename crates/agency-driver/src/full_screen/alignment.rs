//! Finds the lines of one picture in the next one: the longest common subsequence, without blank lines.

/// For each old row, its row in the new picture. Blank rows have none, because each looks like every other.
pub(super) fn align(old: &[&str], new: &[String]) -> Vec<Option<usize>> {
    let old_rows: Vec<usize> = (0..old.len()).filter(|row| !old[*row].is_empty()).collect();
    let new_rows: Vec<usize> = (0..new.len()).filter(|row| !new[*row].is_empty()).collect();
    let is_same = |(a, b): (usize, usize)| old[old_rows[a]] == new[new_rows[b]];
    let mut rows = vec![None; old.len()];
    let shorter = old_rows.len().min(new_rows.len());
    let head = (0..shorter).take_while(|at| is_same((*at, *at))).count();
    let from_end = |at: usize| (old_rows.len() - 1 - at, new_rows.len() - 1 - at);
    let tail = (0..shorter - head).take_while(|at| is_same(from_end(*at))).count();
    let ends = (0..head).map(|at| (at, at)).chain((0..tail).map(from_end));
    let middle = common(head..old_rows.len() - tail, head..new_rows.len() - tail, is_same);
    for (a, b) in ends.chain(middle) {
        rows[old_rows[a]] = Some(new_rows[b]);
    }
    rows
}

/// The pairs of a longest common subsequence of two ranges.
fn common(
    old: std::ops::Range<usize>,
    new: std::ops::Range<usize>,
    is_same: impl Fn((usize, usize)) -> bool,
) -> Vec<(usize, usize)> {
    let (height, width) = (old.len(), new.len());
    // The length of the longest common subsequence of the rest, from each pair on.
    let mut lengths = vec![0u32; (height + 1) * (width + 1)];
    let at = |a: usize, b: usize| a * (width + 1) + b;
    for a in (0..height).rev() {
        for b in (0..width).rev() {
            lengths[at(a, b)] = match is_same((old.start + a, new.start + b)) {
                true => lengths[at(a + 1, b + 1)] + 1,
                false => lengths[at(a + 1, b)].max(lengths[at(a, b + 1)]),
            };
        }
    }
    let (mut a, mut b, mut pairs) = (0, 0, Vec::new());
    while a < height && b < width {
        if is_same((old.start + a, new.start + b)) {
            pairs.push((old.start + a, new.start + b));
            (a, b) = (a + 1, b + 1);
        } else if lengths[at(a + 1, b)] >= lengths[at(a, b + 1)] {
            a += 1;
        } else {
            b += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aligned(old: &str, new: &str) -> Vec<Option<usize>> {
        let old: Vec<&str> = old.split('/').collect();
        let new: Vec<String> = new.split('/').map(str::to_owned).collect();
        align(&old, &new)
    }

    #[test]
    fn rows_are_found_where_they_moved() {
        assert_eq!(aligned("a/b/c/box", "c/d/e/box"), [None, None, Some(0), Some(3)]);
        assert_eq!(aligned("a//b", "/a/b"), [Some(1), None, Some(2)]);
        assert_eq!(aligned("a/b", "x/y"), [None, None]);
        assert_eq!(aligned("a/x/b/x", "a/b/x"), [Some(0), None, Some(1), Some(2)]);
        assert_eq!(aligned("", "a"), [None]);
    }
}

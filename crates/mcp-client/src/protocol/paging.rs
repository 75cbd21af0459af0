//! Following a list from page to page, without ever looping.

use super::json::Object;
use super::schema::{Item, Listing, Page, Problem, ProblemCode};

/// How far a list is followed. What lies beyond is left out, with a problem that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListLimits {
    /// Pages. Default 100.
    pub pages: usize,
    /// Entries over all pages. Default 10,000.
    pub items: usize,
    /// Bytes of JSON over all pages. Default 64 MiB.
    pub bytes: usize,
}

impl Default for ListLimits {
    fn default() -> Self {
        Self { pages: 100, items: 10_000, bytes: 64 << 20 }
    }
}

/// A list on its way.
///
/// Cursors are opaque, so nothing follows from one that repeats; the list ends at its limits, or when a page repeats
/// the cursor and the entries of the page before it.
#[derive(Debug)]
pub(crate) struct Paging<T> {
    limits: ListLimits,
    listing: Listing<T>,
    keys: std::collections::BTreeSet<String>,
    pages: usize,
    bytes: usize,
    cursor: Option<String>,
    last_page: Vec<String>,
}

impl<T: Item> Paging<T> {
    pub(crate) fn new(limits: ListLimits) -> Self {
        Self {
            limits,
            listing: Listing::default(),
            keys: std::collections::BTreeSet::new(),
            pages: 0,
            bytes: 0,
            cursor: None,
            last_page: Vec::new(),
        }
    }

    /// The parameters of the next request.
    pub(crate) fn params(&self) -> Object {
        let mut params = Object::new();
        if let Some(cursor) = &self.cursor {
            params.insert("cursor".to_owned(), cursor.as_str().into());
        }
        params
    }

    /// How many pages were read.
    pub(crate) fn pages(&self) -> usize {
        self.pages
    }

    /// How many entries came so far.
    pub(crate) fn len(&self) -> usize {
        self.listing.items.len()
    }

    /// Takes a page; returns whether there is another one to ask for.
    pub(crate) fn feed(&mut self, page: Page<T>) -> bool {
        self.pages += 1;
        self.bytes = self.bytes.saturating_add(page.bytes);
        self.listing.problems.extend(page.problems);
        let keys: Vec<String> = page.items.iter().map(|item| item.key().to_owned()).collect();
        if self.cursor.is_some() && page.next_cursor == self.cursor && keys == self.last_page {
            let message =
                format!("page {} is the same as the one before it; the list was ended there", self.pages);
            self.listing.problems.push(Problem::new(ProblemCode::PageRepeated, message));
            return false;
        }
        for item in page.items {
            if self.listing.items.len() >= self.limits.items {
                return self.too_long(&format!("{} entries", self.limits.items));
            }
            if self.keys.insert(item.key().to_owned()) {
                self.listing.items.push(item);
            } else {
                let message = format!("a second {} \"{}\" was left out", T::KIND, short(item.key()));
                self.listing.problems.push(Problem::new(ProblemCode::Duplicate, message));
            }
        }
        self.last_page = keys;
        self.cursor = page.next_cursor;
        if self.cursor.is_none() {
            return false;
        }
        if self.pages >= self.limits.pages {
            return self.too_long(&format!("{} pages", self.limits.pages));
        }
        if self.bytes >= self.limits.bytes {
            return self.too_long(&format!("{} bytes", self.limits.bytes));
        }
        true
    }

    /// A page could not be had: what was read is kept.
    pub(crate) fn fail(&mut self, reason: &str) {
        let message =
            format!("page {} could not be had, the pages before it were kept: {reason}", self.pages + 1);
        self.listing.problems.push(Problem::new(ProblemCode::PageFailed, message));
    }

    pub(crate) fn finish(self) -> Listing<T> {
        self.listing
    }

    fn too_long(&mut self, limit: &str) -> bool {
        let message = format!("the list of {}s was ended at its limit of {limit}", T::KIND);
        self.listing.problems.push(Problem::new(ProblemCode::ListTooLong, message));
        false
    }
}

/// A name for a message.
fn short(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::super::schema::ToolInfo;
    use super::*;

    fn page(names: &[&str], next: Option<&str>) -> Page<ToolInfo> {
        let items = names.iter().map(|name| ToolInfo::new(*name, serde_json::json!({}))).collect();
        Page { items, problems: Vec::new(), next_cursor: next.map(str::to_owned), bytes: 10 }
    }

    fn names(paging: Paging<ToolInfo>) -> (Vec<String>, Vec<ProblemCode>) {
        let listing = paging.finish();
        let codes = listing.problems.iter().map(|problem| problem.code).collect();
        (listing.items.into_iter().map(|tool| tool.name).collect(), codes)
    }

    #[test]
    fn pages_are_joined_in_order_and_an_empty_cursor_is_a_cursor() {
        let mut paging = Paging::new(ListLimits::default());
        assert!(paging.params().is_empty());
        assert!(paging.feed(page(&["a"], Some(""))));
        assert_eq!(paging.params()["cursor"], "");
        assert!(paging.feed(page(&["b"], Some("p3"))));
        assert!(!paging.feed(page(&["c"], None)));
        assert_eq!(names(paging), (vec!["a".into(), "b".into(), "c".into()], vec![]));
    }

    #[test]
    fn a_page_that_repeats_cursor_and_entries_ends_the_list_and_one_that_repeats_the_cursor_only_does_not() {
        let mut paging = Paging::new(ListLimits::default());
        assert!(paging.feed(page(&["a"], Some("x"))));
        assert!(paging.feed(page(&["b"], Some("x"))));
        assert!(paging.feed(page(&["c"], Some("x"))));
        assert!(!paging.feed(page(&["c"], Some("x"))));
        assert_eq!(
            names(paging),
            (vec!["a".into(), "b".into(), "c".into()], vec![ProblemCode::PageRepeated])
        );
    }

    #[test]
    fn a_list_without_end_stops_at_each_of_its_limits() {
        let mut limits = ListLimits { pages: 3, ..ListLimits::default() };
        for (limits, wanted) in [
            (limits, 3),
            (
                {
                    limits.pages = 100;
                    limits.items = 5;
                    limits
                },
                5,
            ),
            (
                {
                    limits.items = 100;
                    limits.bytes = 20;
                    limits
                },
                2,
            ),
        ] {
            let mut paging = Paging::new(limits);
            let mut rounds = 0;
            while paging.feed(page(&[&format!("t{rounds}")], Some(&format!("c{rounds}")))) {
                rounds += 1;
                assert!(rounds < 50, "it never ends");
            }
            let (items, codes) = names(paging);
            assert_eq!((items.len(), codes), (wanted, vec![ProblemCode::ListTooLong]));
        }
    }

    #[test]
    fn of_two_entries_of_one_name_the_first_is_kept() {
        let mut paging = Paging::new(ListLimits::default());
        paging.feed(page(&["dup", "dup", "x"], None));
        assert_eq!(names(paging), (vec!["dup".into(), "x".into()], vec![ProblemCode::Duplicate]));
    }
}

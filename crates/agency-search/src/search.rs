//! A search for words in the index, and its hits as callers see them.

use std::collections::HashMap;

use agency_api::search::{Found, Hit, HitKind, SearchParams};
use agency_api::{Failure, FailureCode};
use agency_core::ids::TaskKey;
use agency_run::blocking::blocking;

use crate::index_file::{IndexError, Match, Scope, find};
use crate::query::expression;
use crate::{Index, IndexedTask};

/// One screen.
const USUAL_HITS: u64 = 20;
const MOST_HITS: u64 = 1000;

/// A search, limited to some tasks.
#[derive(Debug)]
pub struct Search {
    expression: String,
    scope: Scope,
    limit: u64,
}

impl Search {
    /// The search that a caller wants, in the tasks of `scope`.
    pub fn new(params: &SearchParams, scope: Scope) -> Result<Search, Failure> {
        let expression = expression(&params.words).ok_or_else(no_word)?;
        let limit = params.limit.unwrap_or(USUAL_HITS).clamp(1, MOST_HITS);
        Ok(Search { expression, scope, limit })
    }

    /// Searches. If the file of the index is damaged, builds it again once.
    pub async fn run(self, index: &Index, names: HashMap<TaskKey, IndexedTask>) -> Result<Found, Failure> {
        let mut unread = index.wait_until_read().await;
        let mut outcome = self.read(index).await?;
        if outcome.as_ref().is_err_and(IndexError::is_damaged) {
            index.rebuild();
            unread = index.wait_until_read().await;
            outcome = self.read(index).await?;
        }
        let mut matches = outcome.map_err(|err| {
            Failure::new("the index of conversations cannot be read")
                .caused_by(&err)
                .code(FailureCode::IoError)
                .hint(format!("delete it, and the daemon builds it again: rm {}", index.path().display()))
        })?;
        let more = matches.len() as u64 > self.limit;
        matches.truncate(self.limit as usize);
        Ok(Found { hits: matches.into_iter().filter_map(|found| hit(found, &names)).collect(), more, unread })
    }

    async fn read(&self, index: &Index) -> Result<Result<Vec<Match>, IndexError>, Failure> {
        let (path, expression, scope) =
            (index.path().to_path_buf(), self.expression.clone(), self.scope.clone());
        let limit = self.limit + 1;
        blocking(move || Ok(find(&path, &expression, &scope, limit))).await
    }
}

fn no_word() -> Failure {
    Failure::new("there is no word to search for")
        .code(FailureCode::InvalidArgument)
        .hint("letters or digits are needed: agency search login")
}

/// `None` if the task has been removed meanwhile.
fn hit(found: Match, names: &HashMap<TaskKey, IndexedTask>) -> Option<Hit> {
    let task = names.get(&found.key)?;
    let time = found.at_ms.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    Some(Hit {
        task: found.key.task.0,
        slug: task.slug.clone(),
        project: task.root.clone(),
        number: (found.number > 0 && found.kind != HitKind::Output).then_some(found.number),
        kind: found.kind,
        time: time.map(|time| time.to_string()),
        snippet: found.snippet,
    })
}

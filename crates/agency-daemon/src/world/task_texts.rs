//! The text and the slug of a task: shows and replaces the text, and changes the slug.
//!
//! Not here: the first text, which a new task brings (see `new_tasks`), and messages to a running agent (see `sends`).

use agency_api::method::{self, TaskEditParams, TaskTextView};
use agency_api::{Bytes, Failure, FailureCode, view};
use agency_core::ids::TaskKey;

use super::World;
use super::router::Router;
use super::tasks::store_failure;

pub(super) fn register(router: &mut Router) {
    router.on(method::TaskText, World::text_of_task);
    router.on(method::TaskEdit, World::edit_text);
}

impl World {
    fn text_of_task(&mut self, key: TaskKey) -> Result<TaskTextView, Failure> {
        let text = self.store.file(&key).map_err(store_failure)?.body().to_vec();
        Ok(TaskTextView { task: self.view(&key)?, text: Bytes(text) })
    }

    fn edit_text(&mut self, (key, params): (TaskKey, TaskEditParams)) -> Result<view::Task, Failure> {
        let name = self.name_of(&key);
        if params.text.0.iter().all(u8::is_ascii_whitespace) {
            return Err(Failure::new(format!("the text of {name} is unchanged"))
                .code(FailureCode::InvalidArgument)
                .because("the new text is empty"));
        }
        let current = self.store.file(&key).map_err(store_failure)?.body();
        if params.replaces.is_some_and(|seen| seen.0 != current) {
            return Err(Failure::new(format!("the text of {name} is unchanged"))
                .code(FailureCode::ChangedMeanwhile)
                .because("somebody else has changed it meanwhile")
                .hint(format!("look at it and edit it again: agency edit {name}")));
        }
        self.store.set_text(&key, params.text.0).map_err(store_failure)?;
        self.view(&key)
    }
}

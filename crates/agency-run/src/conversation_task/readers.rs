//! Callers that read the conversation and may wait for something new.

use std::time::Duration;

use agency_store::clock;

use super::ConversationTask;
use crate::command::ChatRequest;
use crate::conversation;
use crate::reply::send_reply;

/// After the first new text a reader waits this long for more, so that a growing text does not come letter by letter.
const GATHERED_FOR: Duration = Duration::from_millis(40);

/// A reader gets an answer by then even if nothing is new.
const ANSWERED_WITHIN: Duration = Duration::from_secs(20);

/// A caller that waits for something new.
pub(super) struct WaitingReader {
    request: ChatRequest,
    pub(super) due: Duration,
}

impl ConversationTask {
    pub(super) fn read(&mut self, request: ChatRequest) {
        let revision = self.fold.run.conversation().revision();
        let is_news = request.page.since.is_none_or(|since| since < revision);
        if is_news || !request.wait || self.follower.over.is_some() {
            return self.serve(request);
        }
        self.readers.push(WaitingReader { request, due: clock::now() + ANSWERED_WITHIN });
    }

    pub(super) fn serve_readers(&mut self) {
        let (now, revision) = (clock::now(), self.fold.run.conversation().revision());
        for mut reader in std::mem::take(&mut self.readers) {
            if reader.request.page.since.is_some_and(|since| since < revision) {
                reader.due = reader.due.min(now + GATHERED_FOR);
            }
            if reader.request.answer.is_closed() {
                continue;
            }
            match reader.due <= now || self.follower.over.is_some() {
                true => self.serve(reader.request),
                false => self.readers.push(reader),
            }
        }
    }

    fn serve(&self, request: ChatRequest) {
        let is_live = self.follower.over.is_none();
        send_reply(request.answer, conversation::chat(&self.fold.run, request.page, is_live));
    }
}

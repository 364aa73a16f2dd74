//! `remark.add`, `remark.list`, `remark.drop` and `remark.send`: the user's remarks about the work of a task.
//!
//! Not here: how a remark follows its line (`agency_core::remark`), and where lines are read
//! (`agency_work::remark_lines`).

use agency_api::method::{self, Method, RemarkAdd, RemarkSend};
use agency_api::remark::{
    self as api, DiffSide, RemarkAddParams, RemarkDropParams, RemarkSendParams, RemarkState, Remarks,
    RemarksSent,
};
use agency_api::{Bytes, Failure, FailureCode};
use agency_core::ids::TaskKey;
use agency_core::remark::{Delivery, PlacedRemark, Remark, Side, format_message};
use agency_run::blocking::blocking;
use agency_server::RequestLoop;
use agency_store::clock;
use agency_store::remarks::{self, SavedRemarks};
use agency_work::remark_lines::{AnchoredRemark, LineSource};

use super::World;
use super::router::{Later, Router};

/// No agent works through more remarks. Beyond it, the oldest sent remarks go.
const MOST_REMARKS: usize = 500;

/// A keeper takes at most 1 MiB at once, including the bytes that mark a paste.
const LONGEST_MESSAGE: usize = (1 << 20) - 1024;

pub(super) fn register(router: &mut Router) {
    router.on(method::RemarkAdd, World::add_remarks);
    router.on(method::RemarkList, World::list_remarks);
    router.on(method::RemarkDrop, World::drop_remark);
    router.on(method::RemarkSend, World::send_remarks);
}

impl World {
    fn add_remarks(&mut self, (key, params): (TaskKey, RemarkAddParams)) -> Result<Later<Remarks>, Failure> {
        if params.remarks.iter().any(|remark| remark.text.trim().is_empty()) {
            return Err(Failure::new("a remark needs a text").code(FailureCode::InvalidArgument));
        }
        let (source, reporter) = (self.line_source(&key)?, self.context.reporter.clone());
        Ok(Later::new(async move {
            let anchored = blocking(move || source.anchor(params.remarks)).await?;
            let keep = move |world: &mut World, reply: agency_server::Reply<Remarks>| {
                reply.send(world.keep_remarks(&key, anchored));
            };
            reporter.request(RemarkAdd::NAME, keep).await
        }))
    }

    fn keep_remarks(&mut self, key: &TaskKey, added: Vec<AnchoredRemark>) -> Result<Remarks, Failure> {
        let mut saved = self.saved_remarks(key)?;
        make_room(&mut saved.remarks, added.len())?;
        let (before, time) = (saved.remarks.len(), clock::timestamp());
        for AnchoredRemark { file, anchor, text } in added {
            let (id, time) = (saved.next_id(), time.clone());
            saved.remarks.push(Remark { id, file, anchor, text, time, delivery: Delivery::Open });
        }
        self.write_remarks(key, &saved)?;
        let placed = saved.remarks.into_iter().skip(before).map(|remark| remark.place(None));
        Ok(Remarks { remarks: placed.map(view).collect() })
    }

    fn list_remarks(&mut self, key: TaskKey) -> Result<Later<Remarks>, Failure> {
        let (source, saved) = (self.line_source(&key)?, self.saved_remarks(&key)?);
        Ok(Later::new(blocking(move || {
            Ok(Remarks { remarks: source.place(saved.remarks).into_iter().map(view).collect() })
        })))
    }

    fn drop_remark(&mut self, (key, params): (TaskKey, RemarkDropParams)) -> Result<Remarks, Failure> {
        let mut saved = self.saved_remarks(&key)?;
        let Some(at) = saved.remarks.iter().position(|remark| remark.id == params.id) else {
            return Err(Failure::new(format!("task {} has no remark {}", key.task, params.id))
                .code(FailureCode::NotFound)
                .hint(format!("agency remarks {}", key.task)));
        };
        let dropped = saved.remarks.remove(at);
        self.write_remarks(&key, &saved)?;
        Ok(Remarks { remarks: vec![view(dropped.place(None))] })
    }

    fn send_remarks(
        &mut self,
        (key, params): (TaskKey, RemarkSendParams),
    ) -> Result<Later<RemarksSent>, Failure> {
        let (source, saved) = (self.line_source(&key)?, self.saved_remarks(&key)?);
        let reporter = self.context.reporter.clone();
        Ok(Later::new(async move {
            let placed = blocking(move || Ok(source.place(saved.remarks))).await?;
            let send = move |world: &mut World, reply: agency_server::Reply<RemarksSent>| {
                reply.send(world.queue_remarks(&key, placed, &params.outdated));
            };
            reporter.request(RemarkSend::NAME, send).await
        }))
    }

    /// Queues the remarks as one message. They are marked before and after it: a daemon that is killed between finds by the
    /// number of the message whether it was queued.
    fn queue_remarks(
        &mut self,
        key: &TaskKey,
        placed: Vec<PlacedRemark>,
        even_outdated: &[u64],
    ) -> Result<RemarksSent, Failure> {
        let mut saved = self.saved_remarks(key)?;
        let is_open =
            |id: u64| saved.remarks.iter().any(|remark| remark.id == id && remark.delivery == Delivery::Open);
        let is_meant = |placed: &PlacedRemark| {
            let id = placed.remark.id;
            is_open(id) && (!placed.is_outdated || even_outdated.contains(&id))
        };
        let mut sent: Vec<PlacedRemark> = placed.into_iter().filter(is_meant).collect();
        let text = Bytes::from(format_message(&sent));
        check_message(key, &sent, &text)?;
        self.mark_remarks(key, &mut saved, &sent, &Delivery::Leaving(self.queue.next_id()))?;
        let receipt = match self.queue_text(key, text) {
            Ok(receipt) => receipt,
            Err(failure) => {
                self.mark_remarks(key, &mut saved, &sent, &Delivery::Open)?;
                return Err(failure);
            }
        };
        let delivery = Delivery::Sent(clock::timestamp());
        self.mark_remarks(key, &mut saved, &sent, &delivery)?;
        sent.iter_mut().for_each(|sent| sent.remark.delivery = delivery.clone());
        Ok(RemarksSent { remarks: sent.into_iter().map(view).collect(), why: receipt.why })
    }

    /// Marks these remarks, with the numbers of their lines at this moment.
    fn mark_remarks(
        &self,
        key: &TaskKey,
        saved: &mut SavedRemarks,
        marked: &[PlacedRemark],
        delivery: &Delivery,
    ) -> Result<(), Failure> {
        for remark in &mut saved.remarks {
            let Some(placed) = marked.iter().find(|placed| placed.remark.id == remark.id) else { continue };
            remark.delivery = delivery.clone();
            if let (Some(anchor), Some(line)) = (&mut remark.anchor, placed.line) {
                anchor.line = line;
            }
        }
        self.write_remarks(key, saved)
    }

    fn line_source(&self, key: &TaskKey) -> Result<LineSource, Failure> {
        Ok(LineSource::new(self.workspace_to_enter(key), self.diff_request(key, None, false)?))
    }

    /// The remarks of a task that exists. A daemon that was killed may have queued some without marking them as sent.
    fn saved_remarks(&self, key: &TaskKey) -> Result<SavedRemarks, Failure> {
        self.workspace_of(key)?;
        let directory = self.workspaces.records.directory(key);
        let mut saved = remarks::read(&directory).map_err(|cause| {
            Failure::new(format!("cannot read the remarks of task {}", key.task))
                .code(FailureCode::IoError)
                .caused_by(&cause)
                .hint(format!("mend or remove {}", remarks::path(&directory).display()))
        })?;
        for remark in &mut saved.remarks {
            if let Delivery::Leaving(message) = remark.delivery {
                remark.delivery = match message < self.queue.next_id() {
                    true => Delivery::Sent(remark.time.clone()),
                    false => Delivery::Open,
                };
            }
        }
        Ok(saved)
    }

    fn write_remarks(&self, key: &TaskKey, saved: &SavedRemarks) -> Result<(), Failure> {
        remarks::write(&self.workspaces.records.directory(key), saved).map_err(|cause| {
            Failure::new(format!("cannot write the remarks of task {}", key.task))
                .code(FailureCode::IoError)
                .caused_by(&cause)
        })
    }
}

fn make_room(kept: &mut Vec<Remark>, added: usize) -> Result<(), Failure> {
    while kept.len() + added > MOST_REMARKS {
        let Some(oldest) = kept.iter().position(|remark| matches!(remark.delivery, Delivery::Sent(_))) else {
            return Err(Failure::new("the task has too many remarks")
                .code(FailureCode::InvalidArgument)
                .because(format!("{MOST_REMARKS} is the limit"))
                .hint("send or drop some first: agency remark TASK --send"));
        };
        kept.remove(oldest);
    }
    Ok(())
}

fn check_message(key: &TaskKey, sent: &[PlacedRemark], text: &Bytes) -> Result<(), Failure> {
    if sent.is_empty() {
        return Err(Failure::new(format!("task {} has no open remarks", key.task))
            .code(FailureCode::NotFound)
            .hint(format!("`agency remarks {}` lists all; `agency remark` adds one", key.task)));
    }
    match text.0.len() <= LONGEST_MESSAGE {
        true => Ok(()),
        false => {
            Err(Failure::new(format!("the remarks are too long for one message ({} bytes)", text.0.len()))
                .code(FailureCode::InvalidArgument)
                .because("a terminal takes at most 1 MiB at once")
                .hint(format!("drop some: agency remark {} --drop ID", key.task)))
        }
    }
}

fn view(placed: PlacedRemark) -> api::Remark {
    let PlacedRemark { remark, line, is_outdated } = placed;
    let (state, sent_at) = match remark.delivery {
        Delivery::Sent(time) => (RemarkState::Sent, Some(time)),
        _ if is_outdated => (RemarkState::Outdated, None),
        Delivery::Open | Delivery::Leaving(_) => (RemarkState::Open, None),
    };
    let side = match remark.anchor.as_ref().map(|anchor| anchor.side) {
        Some(Side::Old) => DiffSide::Old,
        Some(Side::New) | None => DiffSide::New,
    };
    let quote = remark.anchor.map(|anchor| anchor.text);
    let (id, file, text, time) = (remark.id, remark.file, remark.text, remark.time);
    api::Remark { id, state, file, line, side, quote, text, time, sent_at }
}

//! Every delivered text arrived exactly once, no text twice, and every listening agent can be reached.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use super::wait_until_none;
use crate::agent::heard_file;
use crate::site::ACP_HEARD;
use crate::subject::{Ends, Listens, Receipt, tokens_in};
use crate::world::{PATIENCE, World};

/// How often each token was heard, and the lines that are not exactly one token.
#[derive(Default)]
struct Heard {
    times: BTreeMap<String, u64>,
    joined: Vec<String>,
}

pub fn check(world: &mut World) {
    let probes = probe(world);
    let expected: Vec<usize> = (0..world.texts.len())
        .filter(|index| {
            let text = &world.texts[*index];
            probes.contains(index) || (text.receipt == Receipt::Delivered && !text.is_excused)
        })
        .collect();
    let missing = wait_until_none(PATIENCE / 3, || {
        let heard = listen(world);
        let missing = expected.iter().filter(|index| !heard.times.contains_key(&world.texts[**index].token));
        missing
            .map(|index| format!("{} ({:?})", world.texts[*index].token, world.texts[*index].receipt))
            .collect()
    });
    if !missing.is_empty() {
        world.violate("every delivered text and every probe arrives at its agent", missing.join(", "));
    }
    judge(world);
}

fn judge(world: &mut World) {
    let heard = listen(world);
    let known: BTreeMap<&str, usize> =
        world.texts.iter().enumerate().map(|(index, text)| (text.token.as_str(), index)).collect();
    let unknown: Vec<String> =
        heard.times.keys().filter(|token| !known.contains_key(token.as_str())).cloned().collect();
    let doubled: Vec<String> = heard
        .times
        .iter()
        .filter(|(_, times)| **times > 1)
        .map(|(token, times)| format!("{token} {times} times"))
        .collect();
    world.figures.set("texts heard", heard.times.len() as u64);
    world.figures.set("texts that joined another", heard.joined.len() as u64);
    if !doubled.is_empty() {
        world.violate("no text arrives twice", doubled.join(", "));
    }
    let is_counted = world.enabled.contains("joined-sends");
    let torn: Vec<String> = heard.joined.into_iter().chain(unknown).collect();
    if is_counted && !torn.is_empty() {
        world.violate("no line consists of two texts", torn.join(", "));
    }
}

/// Reads everything that agents wrote down.
fn listen(world: &World) -> Heard {
    let mut heard = Heard::default();
    for (slug, listens) in listeners(world) {
        let text = fs::read(heard_file(&world.site.truth(), &slug)).unwrap_or_default();
        for line in String::from_utf8_lossy(&text).lines() {
            let (tokens, is_pure) = tokens_in(line);
            if listens == Listens::Lines && (tokens.len() > 1 || !is_pure) {
                heard.joined.push(line.to_owned());
            }
            // A torn token contains the beginning of another one: take its whole end.
            let whole = tokens.iter().map(|token| token.rfind('<').map_or(*token, |at| &token[at..]));
            whole.for_each(|token| *heard.times.entry(token.to_owned()).or_default() += 1);
        }
    }
    heard
}

/// The files to read, by the name in them.
fn listeners(world: &World) -> Vec<(String, Listens)> {
    let own = world.subjects.iter().filter(|subject| subject.kind.listens != Listens::No);
    let own = own.filter(|subject| subject.kind.driver != "acp");
    let own = own.map(|subject| (subject.slug.clone(), subject.kind.listens));
    own.chain([(ACP_HEARD.to_owned(), Listens::Messages)]).collect()
}

/// Sends a text to every live agent that listens; returns those that must arrive.
fn probe(world: &mut World) -> Vec<usize> {
    let listens = world.which(|subject| {
        subject.is_free()
            && subject.agent.is_some()
            && subject.kind.listens != Listens::No
            && subject.kind.ends == Ends::Never
    });
    let mut probes = Vec::new();
    for index in listens {
        drop_queue(world, index);
        probes.extend(probe_one(world, index));
    }
    probes
}

/// An uncertain message blocks the ones behind it until the user decides.
fn drop_queue(world: &mut World, index: usize) {
    let (project, slug) = (world.subjects[index].project, world.subjects[index].slug.clone());
    world.ask(project, &["queue", "drop", &slug]);
}

/// A refusal is an answer for a while: a turn may be in progress. A text that an earlier, interrupted send left at the
/// prompt is cleared with ctrl-u.
fn probe_one(world: &mut World, index: usize) -> Option<usize> {
    let (project, slug) = (world.subjects[index].project, world.subjects[index].slug.clone());
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE / 3 {
        let number = world.send(index, &[]);
        world.settle_all();
        match world.texts[number].receipt {
            Receipt::Delivered | Receipt::Typed | Receipt::Queued => return Some(number),
            Receipt::Refused | Receipt::Unknown if world.subjects[index].kind.listens == Listens::Lines => {
                world.ask(project, &["send", &slug, "--keys", "ctrl-u"]);
            }
            Receipt::Refused | Receipt::Unknown => {}
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    world.violate(
        format!("{slug} can be reached by `agency send`"),
        "every send failed for a minute, see steps.log",
    );
    None
}

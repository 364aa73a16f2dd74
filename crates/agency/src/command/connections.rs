//! `agency connections` and `agency reconnect`: show and restart shared agent processes (ACP connections).

use std::process::ExitCode;

use agency_api::connection::{Connection, ConnectionRef};
use agency_api::method::{ConnectionList, ConnectionReconnect, ConnectionSessions, Nothing};

use crate::cli::{Connections, Reconnect};
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::output::{self, cell, column, flexible};

pub(super) async fn connections(context: &Context, args: Connections) -> CommandResult {
    if let Some(name) = args.sessions {
        return sessions(context, name, args.json).await;
    }
    let listed = context.daemon().await?.call(ConnectionList, Nothing {}).await?;
    match args.json {
        true => output::json(&listed)?,
        false if listed.connections.is_empty() => output::note("no shared agent process is running"),
        false => output::line(&table(&listed.connections))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn table(connections: &[Connection]) -> String {
    let columns = [
        flexible("CONNECTION", 8),
        column("STATUS"),
        column("TASKS"),
        flexible("AGENT", 8),
        flexible("ERROR", 20),
    ];
    let row = |connection: &Connection| {
        vec![
            cell(connection.name.clone()),
            cell(status(connection)),
            cell(connection.sessions.to_string()),
            cell(connection.version.clone().unwrap_or_else(|| connection.display_name.clone())),
            cell(connection.error.clone().unwrap_or_default()),
        ]
    };
    output::table(&columns, &connections.iter().map(row).collect::<Vec<_>>())
}

fn status(connection: &Connection) -> String {
    match (connection.retry_in_ms, connection.attempt) {
        (Some(ms), Some(attempt)) => {
            format!("{}, attempt {attempt} in {} s", connection.status.as_str(), ms.div_ceil(1000))
        }
        _ => connection.status.as_str().to_owned(),
    }
}

async fn sessions(context: &Context, name: String, json: bool) -> CommandResult {
    let listed = context.daemon().await?.call(ConnectionSessions, ConnectionRef { name }).await?;
    if json {
        output::json(&listed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = |value: &serde_json::Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let row = |session: &serde_json::Value| {
        vec![
            cell(text(session, "sessionId")),
            cell(text(session, "updatedAt")),
            cell(text(session, "cwd")),
            cell(text(session, "title")),
        ]
    };
    let columns = [column("SESSION"), column("UPDATED"), flexible("DIRECTORY", 12), flexible("TITLE", 12)];
    match listed.sessions.is_empty() {
        true => output::note("the agent lists no sessions"),
        false => {
            output::line(&output::table(&columns, &listed.sessions.iter().map(row).collect::<Vec<_>>()))?
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn reconnect(context: &Context, args: Reconnect) -> CommandResult {
    let connection =
        context.daemon().await?.call(ConnectionReconnect, ConnectionRef { name: args.name }).await?;
    output::note(&format!("{} is {}", connection.name, connection.status.as_str()));
    Ok(ExitCode::SUCCESS)
}

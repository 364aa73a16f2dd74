//! The machine and the time of a run: figures mean nothing without them.

use std::fs;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    pub date: String,
    pub cpu: String,
    pub cores: usize,
    pub kernel: String,
    pub memory: String,
    /// Before the run and after it.
    pub load_averages: Vec<String>,
}

impl Machine {
    pub fn read() -> Machine {
        Machine {
            date: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: read_line("/proc/sys/kernel/osrelease"),
            memory: field("/proc/meminfo", "MemTotal").map_or_else(|| "unknown".to_owned(), gigabytes),
            load_averages: vec![load_average()],
        }
    }

    pub fn add_load_average(&mut self) {
        self.load_averages.push(load_average());
    }
}

fn load_average() -> String {
    let text = read_line("/proc/loadavg");
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn read_line(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// The first line `NAME : value` of a file in procfs.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn gigabytes(kilobytes: String) -> String {
    let number = kilobytes.split(' ').next().and_then(|number| number.parse::<f64>().ok());
    number.map_or(kilobytes, |number| format!("{:.1} GB", number / 1024.0 / 1024.0))
}

//! What the system says about this machine and about processes on it: figures
//! mean nothing without how busy the machine was. Linux only; elsewhere the
//! figures are missing, never made up.

use std::fs;
use std::time::Duration;

/// Processor, number of cores and memory.
#[must_use]
pub fn description() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = field(&cpu, "model name").unwrap_or("unknown processor").to_owned();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = kibibytes(&memory, "MemTotal").unwrap_or_default() / (1024 * 1024);
    format!("{model}, {cores} cores, {memory} GiB; load {}", load_average())
}

/// Load averages over 1, 5 and 15 minutes.
#[must_use]
pub fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let averages: Vec<&str> = text.split_whitespace().take(3).collect();
    if averages.is_empty() { "unknown".to_owned() } else { averages.join(" ") }
}

/// The process of a binary that this process started; the newest one when
/// there are several.
#[must_use]
pub fn child(name: &str) -> Option<u32> {
    let own = std::process::id().to_string();
    let processes = fs::read_dir("/proc").ok()?;
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let status = status(*pid);
            field(&status, "PPid") == Some(own.as_str()) && field(&status, "Name") == Some(name)
        })
        .max()
}

/// Resident memory now, in bytes.
#[must_use]
pub fn resident_bytes(pid: u32) -> Option<u64> {
    Some(kibibytes(&status(pid), "VmRSS")? * 1024)
}

/// Highest resident memory since [`forget_peak`] or the start, in bytes.
#[must_use]
pub fn peak_bytes(pid: u32) -> Option<u64> {
    Some(kibibytes(&status(pid), "VmHWM")? * 1024)
}

/// Starts over with the highest resident memory; where the system refuses,
/// the peak stays that of the whole life of the process.
pub fn forget_peak(pid: u32) {
    let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
}

/// Processor time a process has used, all its threads together.
#[must_use]
pub fn processor_time(pid: u32) -> Option<Duration> {
    // Ticks of 10 ms on every Linux; user and system time are the 12th and
    // 13th field after the name, which may hold blanks itself.
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after) = text.rsplit_once(')')?;
    let ticks: u64 =
        after.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(ticks * 10))
}

fn status(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default()
}

fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

fn kibibytes(text: &str, name: &str) -> Option<u64> {
    field(text, name)?.trim_end_matches("kB").trim().parse().ok()
}

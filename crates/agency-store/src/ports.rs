//! Chooses the ports of a workspace: consecutive, free now, and of no other workspace.
//!
//! Agency does not hold the ports open. It reserves them by giving them to no other workspace.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::ops::RangeInclusive;

use agency_core::tokens::Ports;

/// The usual range for outgoing connections, for systems that do not report theirs.
const USUAL_EPHEMERAL: RangeInclusive<u16> = 32_768..=60_999;

/// Returns the first `count` consecutive ports from `base` on that are free, belong to no other workspace, and are
/// outside the range that the system uses for outgoing connections.
pub fn choose(
    base: u32,
    count: u32,
    taken: &[Ports],
    ephemeral: &RangeInclusive<u16>,
    is_free: impl Fn(u16) -> bool,
) -> Option<Ports> {
    let count = u16::try_from(count).ok().filter(|count| *count > 0)?;
    let mut first = u16::try_from(base.max(1)).ok()?;
    loop {
        let last = first.checked_add(count - 1)?;
        let overlap = taken.iter().filter(|other| other.first <= last && end_of(other) >= first);
        let overlap = overlap.map(end_of).max();
        let reserved = (*ephemeral.start() <= last && *ephemeral.end() >= first).then_some(*ephemeral.end());
        first = match overlap.max(reserved) {
            Some(end) => end.checked_add(1)?,
            // Skip a whole range, so that the first port stays easy to remember.
            None if (first..=last).any(|port| !is_free(port)) => last.checked_add(1)?,
            None => return Some(Ports { first, count }),
        };
    }
}

fn end_of(ports: &Ports) -> u16 {
    ports.first.saturating_add(ports.count.saturating_sub(1))
}

/// Returns the ports that the kernel uses for outgoing connections.
pub fn ephemeral() -> RangeInclusive<u16> {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut numbers = range.split_whitespace().map(str::parse::<u16>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(first)), Some(Ok(last))) => first..=last,
        _ => USUAL_EPHEMERAL,
    }
}

/// Whether a server could listen on this port now.
pub fn is_free(port: u16) -> bool {
    let binds = |address: IpAddr| match TcpListener::bind((address, port)) {
        Ok(_) => true,
        // Count any other error as free: a system without IPv6 has no server there, and a daemon without file
        // descriptors cannot find out.
        Err(err) => !matches!(err.kind(), ErrorKind::AddrInUse | ErrorKind::PermissionDenied),
    };
    binds(Ipv4Addr::LOCALHOST.into()) && binds(Ipv6Addr::LOCALHOST.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(base: u32, count: u32, taken: &[(u16, u16)], used: &[u16]) -> Option<u16> {
        let taken: Vec<Ports> =
            taken.iter().map(|(first, count)| Ports { first: *first, count: *count }).collect();
        let ports = choose(base, count, &taken, &(32_768..=60_999), |port| !used.contains(&port));
        ports.map(|ports| ports.first)
    }

    #[test]
    fn ranges_follow_each_other_and_never_share_a_port() {
        assert_eq!(chosen(20_000, 10, &[], &[]), Some(20_000));
        assert_eq!(chosen(20_000, 10, &[(20_000, 10)], &[]), Some(20_010));
        assert_eq!(
            chosen(20_000, 10, &[(20_000, 10), (20_020, 10)], &[]),
            Some(20_010),
            "a gap is used again"
        );
        assert_eq!(chosen(20_000, 10, &[(20_005, 3)], &[]), Some(20_008));
        assert_eq!(chosen(20_000, 1, &[(20_000, 1)], &[]), Some(20_001));
    }

    #[test]
    fn a_range_with_a_port_in_use_is_skipped() {
        assert_eq!(chosen(20_000, 10, &[], &[20_000]), Some(20_010));
        assert_eq!(chosen(20_000, 10, &[(20_010, 10)], &[20_009]), Some(20_020));
    }

    #[test]
    fn the_ephemeral_range_is_skipped() {
        assert_eq!(chosen(32_760, 10, &[], &[]), Some(61_000));
        assert_eq!(chosen(40_000, 10, &[(61_000, 10)], &[]), Some(61_010));
    }

    #[test]
    fn there_is_no_range_beyond_the_last_port() {
        assert_eq!(chosen(65_530, 10, &[], &[]), None);
        assert_eq!(chosen(65_526, 10, &[], &[]), Some(65_526));
        assert_eq!(chosen(20_000, 0, &[], &[]), None);
        assert_eq!(chosen(70_000, 10, &[], &[]), None);
        assert_eq!(chosen(1, 70_000, &[], &[]), None);
        assert_eq!(chosen(0, 10, &[], &[]), Some(1));
    }

    #[test]
    fn a_port_with_a_server_is_not_free() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        assert!(!is_free(port));
        let range = ephemeral();
        assert!(range.start() < range.end());
    }
}

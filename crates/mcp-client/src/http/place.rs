//! Where a host's name or number leads, as far as it says so itself: the one judge for servers, and for whatever else is
//! asked on their behalf.
//!
//! Names are not looked up. Numbers are public only if the registries of IANA call them globally reachable; what carries
//! another number inside (mapped, translated, tunnelled) is no better than that one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where an address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// This machine.
    Loopback,
    /// Anywhere that is not the public internet: private networks, the link, ranges that are reserved.
    Private,
    /// The public internet, or a name.
    Public,
}

impl Place {
    /// Where the host of an address leads: a name, an IPv4 number, an IPv6 number in brackets.
    pub(crate) fn of_host(host: &str) -> Self {
        if let Some(inner) = host.strip_prefix('[') {
            // What is in brackets and no plain number has a zone, or is of the future: neither is on the internet.
            let number = inner.strip_suffix(']').and_then(|number| number.parse().ok());
            return number.map_or(Self::Private, Self::of_v6);
        }
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        match host.parse() {
            Ok(IpAddr::V4(ip)) => Self::of_v4(ip),
            Ok(IpAddr::V6(ip)) => Self::of_v6(ip),
            Err(_) if host == "localhost" || host.ends_with(".localhost") => Self::Loopback,
            // 0x7f.1, 2130706433 and the like: resolvers read them as IPv4 numbers, and nobody writes them in good faith.
            Err(_) if host.rsplit('.').next().is_some_and(is_numeric) => Self::Private,
            Err(_) => Self::Public,
        }
    }

    fn of_v4(ip: Ipv4Addr) -> Self {
        let [a, b, c, _] = ip.octets();
        match (a, b, c) {
            (127, ..) => Self::Loopback,
            // This network, RFC 791; private, RFC 1918; shared, RFC 6598; link-local, RFC 3927.
            (0 | 10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) | (169, 254, _)
            // Protocol assignments, RFC 6890; documentation, RFC 5737; relays of 6to4, RFC 7526; benchmarks, RFC 2544.
            | (192, 0, 0 | 2) | (198, 51, 100) | (203, 0, 113) | (192, 88, 99) | (198, 18 | 19, _)
            // Multicast, RFC 5771; reserved and broadcast, RFC 1112.
            | (224.., ..) => Self::Private,
            _ => Self::Public,
        }
    }

    fn of_v6(ip: Ipv6Addr) -> Self {
        if ip.is_loopback() {
            return Self::Loopback;
        }
        // ::ffff:a.b.c.d is that number, for every socket.
        if let Some(inner) = ip.to_ipv4_mapped() {
            return Self::of_v4(inner);
        }
        match ip.segments() {
            // NAT64, RFC 6052: leads to the number inside, as the translator sees it, whose own machine is not this one.
            [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
                let [.., a, b, c, d] = ip.octets();
                match Self::of_v4(Ipv4Addr::new(a, b, c, d)) {
                    Self::Public => Self::Public,
                    Self::Private | Self::Loopback => Self::Private,
                }
            }
            // Protocol assignments with Teredo, RFC 2928; documentation, RFC 3849 and 9637; 6to4, RFC 3056.
            [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] | [0x2002, ..] => Self::Private,
            // Global unicast, RFC 4291. Outside of it: IPv4-compatible, local, link, site, multicast, discard, and more.
            [0x2000..=0x3fff, ..] => Self::Public,
            _ => Self::Private,
        }
    }
}

fn is_numeric(label: &str) -> bool {
    label.starts_with("0x") || (!label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::Place::{self, Loopback, Private, Public};

    #[test]
    fn every_form_of_an_address_is_judged_by_where_it_leads() {
        let table: [(Place, &str); 6] = [
            (
                Loopback,
                "127.0.0.1 127.255.255.254 [::1] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] \
                localhost LocalHost. a.localhost",
            ),
            (
                Public,
                "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 128.0.0.1 172.15.0.1 172.32.0.1 \
                192.0.1.1 192.167.1.1 198.17.0.1 198.20.0.1 223.255.255.255 [2606:4700::1111] \
                [2001:4860:4860::8888] [2001:200::1] [::ffff:1.1.1.1] [64:ff9b::1.1.1.1] [3ffe::1] \
                example.com localhost.example.com 0x.example 1.example",
            ),
            // IPv4 that is not on the internet, first and last of each range.
            (
                Private,
                "0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 169.254.0.0 \
                169.254.169.254 172.16.0.0 172.31.255.255 192.0.0.0 192.0.0.255 192.0.2.1 192.88.99.1 \
                192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255 198.51.100.1 203.0.113.255 224.0.0.1 \
                239.255.255.255 240.0.0.1 255.255.255.255",
            ),
            // IPv4 in disguise.
            (Private, "2130706433 0x7f.1 0x7f000001 0177.0.0.1 127.1 10.1 017700000001 1.2.3.4.5"),
            // IPv4 inside of IPv6: compatible, mapped, translated, tunnelled.
            (
                Private,
                "[::10.0.0.1] [::127.0.0.1] [::1.1.1.1] [::2] [::ffff:10.0.0.1] [::ffff:a9fe:a9fe] \
                [::ffff:0.0.0.0] [::ffff:0:10.0.0.1] [64:ff9b::10.0.0.1] [64:ff9b::169.254.169.254] \
                [64:ff9b::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b::] [64:ff9b:1::1.1.1.1] \
                [64:ff9b:0:1::1.1.1.1] [2002:a00:1::] [2002:7f00:1::1] [2002:101:101::1] [2001::1] \
                [2001:0:4136:e378::]",
            ),
            // IPv6 that is not on the internet.
            (
                Private,
                "[::] [fc00::1] [fd12:3456::1] [fe80::1] [febf::1] [fec0::1] [ff02::1] [2001:db8::1] \
                [2001:1ff::1] [3fff::1] [3fff:fff::1] [100::1] [5f00::1] [4000::1] [fe80::1%25eth0] [v1.x] \
                [::1 []",
            ),
        ];
        for (place, hosts) in table {
            for host in hosts.split_whitespace() {
                assert_eq!(Place::of_host(host), place, "{host}");
            }
        }
    }
}

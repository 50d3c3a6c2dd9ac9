//! Which machines perform what depends on a device: this one, or the nodes of a cluster, as an address says it.
//!
//! It does not know whether anybody answers there.

/// How an executor is written, for hints.
pub const EXAMPLES: &str = "write `ray://HOST:PORT`, the port of Ray's client server, which is 10001 where nobody says otherwise; `auto` on a node of the cluster; or `local` for this machine";

/// Which machines perform what depends on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Executor {
    /// This one.
    Local,
    /// The nodes of the cluster at this address.
    Cluster(String),
}

impl Executor {
    /// Returns the executor that is written `text`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let port = text.strip_prefix("ray://").and_then(|rest| rest.rsplit_once(':'));
        let is_host = |host: &str| !host.is_empty() && !host.contains(char::is_whitespace);
        let is_whole = port.is_some_and(|(host, port)| is_host(host) && port.parse::<u16>().is_ok());
        match text {
            "local" => Some(Self::Local),
            _ if is_whole || text == "auto" => Some(Self::Cluster(text.to_owned())),
            _ => None,
        }
    }

    /// Returns the address of the cluster that counts: of what is `named`, if something is, else of what is `declared`; None for this machine, which an empty name is, too. Fails with
    /// what is named where that is none.
    pub fn address<'a>(named: Option<&'a str>, declared: Option<&'a Self>) -> Result<Option<&'a str>, &'a str> {
        match named {
            None => Ok(declared.and_then(Self::cluster)),
            Some("") => Ok(None),
            Some(text) => match Self::parse(text).ok_or(text)? {
                Self::Local => Ok(None),
                Self::Cluster(_) => Ok(Some(text)),
            },
        }
    }

    /// Returns the address of the cluster; None for this machine.
    #[must_use]
    pub fn cluster(&self) -> Option<&str> {
        match self {
            Self::Local => None,
            Self::Cluster(address) => Some(address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_executor_is_this_machine_or_the_address_of_a_cluster() {
        assert_eq!(Executor::parse("local"), Some(Executor::Local));
        for address in ["auto", "ray://head:10001", "ray://[::1]:10001"] {
            assert_eq!(Executor::parse(address).unwrap().cluster(), Some(address));
        }
        for text in ["", "head", "ray://head", "ray://:1", "ray://head:port", "ray://head:70000", "ray://a b:1", "Auto"]
        {
            assert_eq!(Executor::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_named_counts_before_what_is_declared() {
        let declared = Executor::Cluster("auto".to_owned());
        assert_eq!(Executor::address(None, None), Ok(None));
        assert_eq!(Executor::address(None, Some(&declared)), Ok(Some("auto")));
        for here in ["", "local"] {
            assert_eq!(Executor::address(Some(here), Some(&declared)), Ok(None));
        }
        assert_eq!(Executor::address(Some("ray://head:10001"), Some(&declared)), Ok(Some("ray://head:10001")));
        assert_eq!(Executor::address(Some("head"), Some(&declared)), Err("head"));
    }
}

//! How a child ended, and whose fault that is.
//!
//! It does not know what the function was for: whether a reply is good news is for its reader to say.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

const SIGBUS: i32 = 7;
const SIGKILL: i32 = 9;

/// How a child ended. Exactly one holds for every request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The function returned this, and the child ended by itself.
    Reply(Value),
    /// The function raised.
    Raised {
        /// The exception's type, as `RuntimeError` or `torch.OutOfMemoryError`.
        kind: String,
        /// `str()` of the exception.
        message: String,
        /// Python's own text, ends with the exception.
        traceback: String,
    },
    /// The child left by `sys.exit` or `os._exit`. A silent `os._exit(0)` is [`End::NoReply`].
    Exit(i32),
    /// A signal that the worker did not send.
    Signal(i32),
    /// The deadline passed.
    Timeout,
    /// The CPU seconds were used up.
    CpuLimit,
    /// The memory limit was passed; says how that is known.
    Memory(String),
    /// More was printed than [`crate::Limits::output_bytes`].
    OutputLimit,
    /// The child ended as if all were well, and said nothing.
    NoReply,
    /// What the child said is no reply; says why.
    BadReply(String),
    /// The child could not be started, or not set up: its work never began.
    Refused(String),
    /// t2t asked for the end.
    Cancelled,
}

/// Whose fault an end is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The kernel's: the same end is expected next time.
    Kernel(FaultClass),
    /// The machine's, or t2t's own: says nothing about the kernel. The reason is for people.
    Machine(String),
}

/// The classes of kernel faults that the way a process ends can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultClass {
    /// Left with an exit code.
    Exit,
    /// Left without a usable reply.
    NoReply,
    /// Died by a signal.
    Crash,
    /// Ran out of wall or CPU time.
    Timeout,
    /// Ran out of memory.
    Memory,
    /// Printed too much.
    OutputFlood,
}

impl FaultClass {
    /// Returns the word that evidence and logs use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::NoReply => "no-reply",
            Self::Crash => "crash",
            Self::Timeout => "timeout",
            Self::Memory => "memory",
            Self::OutputFlood => "output-flood",
        }
    }
}

impl fmt::Display for FaultClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl End {
    /// Says whose fault the end is; `None` for a reply, whose content decides.
    ///
    /// A signal is the kernel's fault because a child that dies before its work began ends as [`End::Refused`]. SIGKILL
    /// and SIGBUS come from outside (an administrator, the OOM killer, a full disk under a mapping): the worker says
    /// [`End::Memory`] where it has proof.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        Some(match self {
            Self::Reply(_) => return None,
            Self::Raised { kind, message, .. } => raised(kind, message),
            Self::Exit(_) => Fault::Kernel(FaultClass::Exit),
            Self::Signal(number @ (SIGKILL | SIGBUS)) => {
                Fault::Machine(format!("the child was ended by {}", signal_name(*number)))
            }
            Self::Signal(_) => Fault::Kernel(FaultClass::Crash),
            Self::Timeout | Self::CpuLimit => Fault::Kernel(FaultClass::Timeout),
            Self::Memory(_) => Fault::Kernel(FaultClass::Memory),
            Self::OutputLimit => Fault::Kernel(FaultClass::OutputFlood),
            Self::NoReply | Self::BadReply(_) => Fault::Kernel(FaultClass::NoReply),
            Self::Refused(reason) => Fault::Machine(reason.clone()),
            Self::Cancelled => Fault::Machine("cancelled".to_owned()),
        })
    }
}

/// A function of the harness that raises has failed as the machine's fault, unless host memory ran out in it.
fn raised(kind: &str, message: &str) -> Fault {
    let torch_allocator = message.contains("DefaultCPUAllocator: can't allocate memory");
    if kind == "MemoryError" || torch_allocator {
        return Fault::Kernel(FaultClass::Memory);
    }
    Fault::Machine(format!("{kind}: {message}"))
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reply(_) => f.write_str("replied"),
            Self::Raised { kind, message, .. } => write!(f, "raised {kind}: {message}"),
            Self::Exit(code) => write!(f, "left with exit code {code}"),
            Self::Signal(number) => write!(f, "died by {}", signal_name(*number)),
            Self::Timeout => f.write_str("passed its deadline"),
            Self::CpuLimit => f.write_str("used up its CPU time"),
            Self::Memory(how) => write!(f, "used up its memory ({how})"),
            Self::OutputLimit => f.write_str("printed more than its limit"),
            Self::NoReply => f.write_str("left without a reply"),
            Self::BadReply(reason) => write!(f, "gave no usable reply ({reason})"),
            Self::Refused(reason) => write!(f, "could not start: {reason}"),
            Self::Cancelled => f.write_str("was cancelled"),
        }
    }
}

fn signal_name(number: i32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        SIGBUS => "SIGBUS",
        8 => "SIGFPE",
        SIGKILL => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}

/// What was kept of one output stream: its first and its last bytes, as text (bytes that are no UTF-8 are replaced).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The first bytes.
    pub head: String,
    /// The last bytes, where the head does not reach them.
    pub tail: String,
    /// How many bytes were written.
    pub total: u64,
    /// How many bytes lie between head and tail and were dropped.
    pub dropped: u64,
}

impl Output {
    /// Returns the text with a line where something was dropped.
    #[must_use]
    pub fn text(&self) -> String {
        if self.dropped == 0 {
            return format!("{}{}", self.head, self.tail);
        }
        format!("{}\n[{} bytes left out]\n{}", self.head, self.dropped, self.tail)
    }
}

/// What a child used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Milliseconds from the fork until the child had ended.
    pub wall_ms: u64,
    /// Milliseconds of CPU time of the child and of the descendants it waited for.
    pub cpu_ms: u64,
    /// The child's largest resident set, with what it shares with the server.
    pub max_rss_kib: u64,
    /// The most memory that the action was seen to hold over what it inherited; sampled, so 0 for a short one.
    pub grown_kib: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_the_fault_that_the_decisions_name() {
        let kernel = |class| Some(Fault::Kernel(class));
        let table = [
            (End::Reply(Value::Null), None),
            (End::Exit(3), kernel(FaultClass::Exit)),
            (End::Signal(11), kernel(FaultClass::Crash)),
            (End::Signal(6), kernel(FaultClass::Crash)),
            (End::Timeout, kernel(FaultClass::Timeout)),
            (End::CpuLimit, kernel(FaultClass::Timeout)),
            (End::Memory(String::new()), kernel(FaultClass::Memory)),
            (End::OutputLimit, kernel(FaultClass::OutputFlood)),
            (End::NoReply, kernel(FaultClass::NoReply)),
            (End::BadReply(String::new()), kernel(FaultClass::NoReply)),
            (End::Signal(SIGKILL), Some(Fault::Machine("the child was ended by SIGKILL".into()))),
            (End::Signal(SIGBUS), Some(Fault::Machine("the child was ended by SIGBUS".into()))),
            (End::Refused("no memory".into()), Some(Fault::Machine("no memory".into()))),
        ];
        for (end, fault) in table {
            assert_eq!(end.fault(), fault, "{end}");
        }
    }

    #[test]
    fn an_exception_is_the_machines_fault_unless_memory_ran_out() {
        let raised = |kind: &str, message: &str| End::Raised {
            kind: kind.into(),
            message: message.into(),
            traceback: String::new(),
        };
        let memory = Some(Fault::Kernel(FaultClass::Memory));
        assert_eq!(raised("MemoryError", "").fault(), memory);
        assert_eq!(
            raised("RuntimeError", "[enforce] DefaultCPUAllocator: can't allocate memory: you …").fault(),
            memory
        );
        assert_eq!(raised("KeyError", "'op'").fault(), Some(Fault::Machine("KeyError: 'op'".into())));
    }

    #[test]
    fn a_cut_output_says_how_much_is_missing() {
        let output = Output { head: "a".into(), tail: "z".into(), total: 26, dropped: 24 };
        assert_eq!(output.text(), "a\n[24 bytes left out]\nz");
    }
}

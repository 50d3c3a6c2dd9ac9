//! How a child ended, from what it answered and what the kernel says of it.
//!
//! It does not know the child itself.

use t2t_protocol::End;

use crate::{
    channel::{Answer, Heard},
    kin::{self, Reaped, Status},
};

/// Says how a child ended. A child that answered and exited in time counts as answered, even if it was being killed. Otherwise the reason of a kill comes
/// before the signal.
pub(super) fn end(
    reaped: Option<Reaped>,
    stopped: Option<End>,
    heard: &mut Heard,
    oom_kills_before: u64,
    cpu_ms: Option<u64>,
) -> End {
    let Some(Reaped { status, .. }) = reaped else {
        return End::Refused("the child cannot be waited for".to_owned());
    };
    let answer = heard.answer.take();
    if matches!(answer, Some(Answer::Reply(_))) && matches!(status, Status::Exited(0)) && heard.spoiled.is_none() {
        return end_of_answer(answer);
    }
    if let Some(end) = stopped {
        return end;
    }
    match status {
        Status::Signaled(libc::SIGKILL) if kin::oom_kills() > oom_kills_before => {
            End::Memory("killed by the kernel, out of memory".to_owned())
        }
        Status::Signaled(libc::SIGXCPU) if cpu_ms.is_some() => End::CpuLimit,
        Status::Signaled(signal) if heard.began => End::Signal(signal),
        Status::Signaled(signal) => End::Refused(format!("signal {signal} before the work began")),
        Status::Exited(_) if heard.spoiled.is_some() => End::BadReply(heard.spoiled.take().unwrap_or_default()),
        Status::Exited(_) if answer.is_some() => end_of_answer(answer),
        Status::Exited(code) if !heard.began => End::Refused(format!("exit code {code} before the work began")),
        Status::Exited(0) => End::NoReply,
        Status::Exited(code) => End::Exit(code),
    }
}

/// Says how a child ended by what it answered alone.
pub(super) fn end_of_answer(answer: Option<Answer>) -> End {
    match answer {
        Some(Answer::Reply(value)) => End::Reply(value),
        Some(Answer::Raised { kind, message, traceback }) => End::Raised { kind, message, traceback },
        Some(Answer::Exit(code)) => End::Exit(code),
        Some(Answer::Bad(reason)) => End::BadReply(reason),
        Some(Answer::Refused(reason)) => End::Refused(reason),
        None => End::NoReply,
    }
}

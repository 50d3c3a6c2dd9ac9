//! What is launched at a measured size and in no case of a check, in words, and who judges it.

use t2t_protocol::Missed;

use crate::render::sizes;

/// What a reader asks next: whether to act.
const LATER: &str = "; a device judges an output of each size that it measures";

/// Returns one entry of `missed`, of the document `verdict`, as a sentence without a stop.
#[must_use]
pub fn missed(entry: &Missed) -> String {
    let or = |text: &str, instead: &str| if text.is_empty() { instead.to_owned() } else { text.to_owned() };
    let size = sizes::title(&or(&entry.size, "a measured size"));
    let reason = or(&entry.reason, "no reason is told");
    let Some(kernel) = &entry.kernel else {
        return format!("what it launches at {size} was not reached by a case: {reason}{LATER}");
    };
    let constants = entry.constants.iter().flatten();
    let constants: Vec<String> = constants.map(|(name, value)| format!("{name}={value}")).collect();
    let constants = if constants.is_empty() { String::new() } else { format!(" ({})", constants.join(", ")) };
    format!("at {size} it launches `{kernel}`{constants}, which no case reached here: {reason}{LATER}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use t2t_protocol::read::leniently;

    use super::*;

    #[test]
    fn a_kernel_that_no_case_reaches_is_named_with_its_constants() {
        let read = |entry| missed(&leniently(&entry).unwrap());
        let entry = json!({"size": "large", "kernel": "k_long", "constants": {"BLOCK": 4096}, "reason": "too large"});
        assert_eq!(
            read(entry),
            "at Large it launches `k_long` (BLOCK=4096), which no case reached here: too large; a device judges an output of each size that it measures"
        );
        let entry = json!({"size": "large", "kernel": null, "constants": null, "reason": "cannot be told"});
        assert_eq!(
            read(entry),
            "what it launches at Large was not reached by a case: cannot be told; a device judges an output of each size that it measures"
        );
    }
}

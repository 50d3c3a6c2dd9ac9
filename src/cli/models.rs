//! Builds for several models of devices, one after another: `--as-device a,b`.
//!
//! It does not know what a build does.

use t2t_host::interrupt::INTERRUPTED;

use super::error::CliError;
use super::{BuildArguments, Common};

/// The exit codes, the worst first.
const WORST: [u8; 4] = [INTERRUPTED, 2, 3, 1];

/// Has `build` build for each model that is named; where one or none is, once. What stops one does not stop the others, but for an interruption. Returns the worst of the exit
/// codes.
pub(crate) fn each(
    common: &Common,
    arguments: &BuildArguments,
    mut build: impl FnMut(&Common) -> Result<u8, CliError>,
) -> Result<u8, CliError> {
    let named = common.as_device.as_deref().unwrap_or_default();
    let models: Vec<&str> = named.split(',').map(str::trim).collect();
    if models.len() == 1 {
        return build(common);
    }
    if let Some(empty) = models.iter().position(|model| model.is_empty()) {
        let message = format!("`--as-device {named}` names no model in place {}", empty + 1);
        return Err(CliError::misuse(
            message,
            "write models with commas between them, as in `nvidia-h200,nvidia-a100`",
        ));
    }
    let files = [("--trace", &arguments.trace), ("--events", &arguments.events), ("--junit", &arguments.junit)];
    if let Some((option, _)) = files.iter().find(|(_, file)| file.is_some()) {
        let message = format!("`{option}` is of a build for one model, and {} are named", models.len());
        return Err(CliError::misuse(message, "build for one model after the other, each with a file of its own"));
    }
    let mut worst = 0;
    for model in models {
        let common = Common { as_device: Some(model.to_owned()), ..common.clone() };
        let code = build(&common).unwrap_or_else(|error| {
            error.print();
            error.code()
        });
        worst = worse(worst, code);
        if code == CliError::Interrupted.code() {
            break;
        }
    }
    Ok(worst)
}

/// Returns the worse of two exit codes.
fn worse(one: u8, other: u8) -> u8 {
    let rank = |code: u8| WORST.iter().position(|worse| *worse == code).unwrap_or(WORST.len());
    if rank(other) < rank(one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_exit_codes_the_worse_is_the_one_that_says_more_was_in_the_way() {
        for (one, other, expected) in [(0, 1, 1), (1, 3, 3), (3, 2, 2), (2, 130, 130), (0, 0, 0)] {
            assert_eq!((worse(one, other), worse(other, one)), (expected, expected));
        }
    }
}

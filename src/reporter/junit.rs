//! A file for CI services, in the form that `JUnit` made common: how the selected actions stand, as test cases. docs/reference/machine-readable.md has it in full.
//!
//! It does not know where cases come from, nor where the text goes.

use std::collections::BTreeMap;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};
use t2t_model::action::Target;
use t2t_model::foreign::xml;

use super::lines::gist;

/// An action as a test case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    /// The op, or `t2t`.
    pub(crate) suite: String,
    /// As in `v2_tiling:check`.
    pub(crate) name: String,
    /// How long it took when it ran, in seconds; 0 where it never did.
    pub(crate) seconds: f64,
    /// How it stands.
    pub(crate) verdict: Verdict,
    /// What its children printed, where that was kept.
    pub(crate) stdout: String,
    /// What they printed as errors.
    pub(crate) stderr: String,
}

/// How an action stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// It passed.
    Passed,
    /// The kernel was rejected.
    Failure {
        /// As in `mismatch`.
        class: String,
        /// One line.
        message: String,
        /// The whole text: place, line, values, hint.
        text: String,
    },
    /// There should be a result, and there is none.
    Error {
        /// `lost`, `missing` or `build`.
        kind: &'static str,
        /// What went wrong.
        message: String,
    },
    /// It was not reached.
    Skipped {
        /// Why.
        reason: String,
    },
}

impl Case {
    /// Returns the case of an action.
    #[must_use]
    pub(crate) fn of(target: &Target, verdict: Verdict) -> Self {
        let name = match target.variant_name() {
            Some(variant) => format!("{variant}:{}", target.phase),
            None => target.phase.to_string(),
        };
        Self { name, ..Self::of_build(if target.op.is_empty() { BUILD } else { &target.op }, verdict) }
    }

    /// Returns the one case of a build that stopped before it had results.
    #[must_use]
    pub(crate) fn of_stopped(message: &str) -> Self {
        Self::of_build(BUILD, Verdict::Error { kind: "build", message: message.to_owned() })
    }

    fn of_build(suite: &str, verdict: Verdict) -> Self {
        let (stdout, stderr) = (String::new(), String::new());
        Self { suite: suite.to_owned(), name: "build".to_owned(), seconds: 0.0, verdict, stdout, stderr }
    }
}

/// The suite for actions that belong to no op.
const BUILD: &str = "t2t";

/// Returns the file for `cases` on a device of class `device`, where that is known: a suite for each op, sorted by name.
#[must_use]
pub(crate) fn junit(device: Option<&str>, cases: &[Case]) -> String {
    let mut suites: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in cases {
        suites.entry(&case.suite).or_default().push(case);
    }
    let mut report = Report::new(BUILD);
    report.set_time(time(cases.iter().map(|case| case.seconds).sum()));
    report.add_test_suites(suites.iter().map(|(name, cases)| suite(name, device, cases)));
    report.to_string().expect("memory takes what is written")
}

fn suite(name: &str, device: Option<&str>, cases: &[&Case]) -> TestSuite {
    let mut suite = TestSuite::new(xml(name));
    suite.set_time(time(cases.iter().map(|case| case.seconds).sum()));
    suite.add_properties(device.map(|device| Property::new("device", xml(device))));
    suite.add_test_cases(cases.iter().map(|case| test_case(case)));
    suite
}

fn test_case(case: &Case) -> TestCase {
    let mut test = TestCase::new(xml(&case.name), status(&case.verdict));
    test.set_classname(xml(&case.suite)).set_time(time(case.seconds));
    if !case.stdout.is_empty() {
        test.set_system_out(xml(&case.stdout));
    }
    if !case.stderr.is_empty() {
        test.set_system_err(xml(&case.stderr));
    }
    test
}

fn status(verdict: &Verdict) -> TestCaseStatus {
    match verdict {
        Verdict::Passed => TestCaseStatus::success(),
        Verdict::Failure { class, message, text } => problem(NonSuccessKind::Failure, class, message, text),
        Verdict::Error { kind, message } => problem(NonSuccessKind::Error, kind, gist(message), message),
        Verdict::Skipped { reason } => {
            let mut skipped = TestCaseStatus::skipped();
            skipped.set_message(xml(reason));
            skipped
        }
    }
}

fn problem(kind: NonSuccessKind, class: &str, message: &str, text: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(xml(class)).set_message(xml(message)).set_description(xml(text));
    status
}

fn time(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use quick_xml::Reader;
    use quick_xml::events::Event;
    use t2t_model::action::Phase;

    use super::*;

    fn case(variant: &str, verdict: Verdict) -> Case {
        Case { seconds: 1.5, ..Case::of(&Target::of_variant("softmax", variant, Phase::Check), verdict) }
    }

    /// Returns the names and texts that a reader finds; it refuses what is not well formed.
    fn read(text: &str) -> Vec<String> {
        let mut reader = Reader::from_str(text);
        reader.config_mut().check_end_names = true;
        let mut found = Vec::new();
        loop {
            match reader.read_event().unwrap_or_else(|error| panic!("{error}: {text}")) {
                Event::Eof => return found,
                Event::Start(start) | Event::Empty(start) => {
                    found.push(start.name().as_ref().to_owned());
                    for attribute in start.attributes() {
                        attribute.unwrap();
                    }
                }
                _ => {}
            }
        }
    }

    #[test]
    fn cases_are_counted_and_told_with_their_texts() {
        let failure = Verdict::Failure {
            class: "mismatch".to_owned(),
            message: "3 of 256 elements differ".to_owned(),
            text: "error: kernels/softmax/v3.py:12:5: 3 of 256 elements differ (mismatch)\n  |\n12 | x".to_owned(),
        };
        let cases = [
            case("v1", Verdict::Passed),
            Case { stdout: "seen\n".to_owned(), ..case("v3", failure) },
            case("v4", Verdict::Skipped { reason: "after softmax/v3:check".to_owned() }),
            Case::of(&Target::calibrate(), Verdict::Error { kind: "lost", message: "no memory\nat all".to_owned() }),
        ];
        let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="t2t" tests="4" skipped="1" failures="1" errors="1" time="4.500">
    <testsuite name="softmax" tests="3" skipped="1" errors="0" failures="1" time="4.500">
        <properties>
            <property name="device" value="interpreter"/>
        </properties>
        <testcase name="v1:check" classname="softmax" time="1.500"/>
        <testcase name="v3:check" classname="softmax" time="1.500">
            <failure message="3 of 256 elements differ" type="mismatch">error: kernels/softmax/v3.py:12:5: 3 of 256 elements differ (mismatch)
  |
12 | x</failure>
            <system-out>seen
</system-out>
        </testcase>
        <testcase name="v4:check" classname="softmax" time="1.500">
            <skipped message="after softmax/v3:check"/>
        </testcase>
    </testsuite>
    <testsuite name="t2t" tests="1" skipped="0" errors="1" failures="0" time="0.000">
        <properties>
            <property name="device" value="interpreter"/>
        </properties>
        <testcase name="calibrate" classname="t2t" time="0.000">
            <error message="no memory" type="lost">no memory
at all</error>
        </testcase>
    </testsuite>
</testsuites>
"#;
        assert_eq!(junit(Some("interpreter"), &cases), expected);
    }

    #[test]
    fn any_character_leaves_a_valid_file() {
        let all: String = (0..0x2_0000).filter_map(char::from_u32).collect();
        let markup = "]]> </failure><!-- & &amp; &#0; <![CDATA[ \"'";
        let failure =
            Verdict::Failure { class: all.clone(), message: markup.to_owned() + &all, text: all.clone() + markup };
        let cases = [
            Case { stdout: all.clone(), stderr: markup.to_owned(), ..case(&all, failure) },
            case("v2", Verdict::Skipped { reason: all.clone() }),
            Case::of_stopped(&all),
        ];
        let text = junit(Some(markup), &cases);
        let may_be = |letter: char| matches!(letter, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
        assert_eq!(text.chars().find(|letter| !may_be(*letter)), None);
        let tests = read(&text).into_iter().filter(|name| name == "testcase").count();
        assert_eq!(tests, 3);
    }

    #[test]
    fn a_build_without_cases_has_a_file_too() {
        assert_eq!(read(&junit(None, &[])), ["testsuites"]);
    }
}

//! A file for CI services, in the form that `JUnit` made common: how the selected actions stand, as test cases. docs/reference/machine-readable.md has it in full.
//!
//! It does not know where cases come from, nor where the text goes.

use std::collections::BTreeMap;
use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use t2t_model::action::Target;
use t2t_model::foreign::xml;

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
        let name = match &target.variant {
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

/// The suite of what belongs to no op.
const BUILD: &str = "t2t";

/// Returns the file for `cases` on a device of class `device`, where that is known: a suite for each op, sorted by name.
#[must_use]
pub(crate) fn junit(device: Option<&str>, cases: &[Case]) -> String {
    let mut suites: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in cases {
        suites.entry(&case.suite).or_default().push(case);
    }
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    written(&mut writer, device, cases, &suites).expect("memory takes what is written");
    String::from_utf8(writer.into_inner()).expect("text was written") + "\n"
}

type Out = Writer<Vec<u8>>;

fn written(
    writer: &mut Out,
    device: Option<&str>,
    all: &[Case],
    suites: &BTreeMap<&str, Vec<&Case>>,
) -> io::Result<()> {
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let counts = counts(&all.iter().collect::<Vec<_>>());
    let whole = writer
        .create_element("testsuites")
        .with_attribute(("name", BUILD))
        .with_attributes(counts.iter().map(|(name, count)| (*name, count.as_str())));
    whole
        .write_inner_content(|writer| suites.iter().try_for_each(|(name, cases)| suite(writer, name, device, cases)))?;
    Ok(())
}

fn suite(writer: &mut Out, name: &str, device: Option<&str>, cases: &[&Case]) -> io::Result<()> {
    let (name, counts) = (xml(name), counts(cases));
    let suite = writer
        .create_element("testsuite")
        .with_attribute(("name", &*name))
        .with_attributes(counts.iter().map(|(name, count)| (*name, count.as_str())));
    suite.write_inner_content(|writer| {
        if let Some(device) = device {
            writer.create_element("properties").write_inner_content(|writer| {
                let property = writer.create_element("property").with_attribute(("name", "device"));
                property.with_attribute(("value", &*xml(device))).write_empty().map(drop)
            })?;
        }
        cases.iter().try_for_each(|case| write_case(writer, case))
    })?;
    Ok(())
}

fn write_case(writer: &mut Out, case: &Case) -> io::Result<()> {
    let element = writer
        .create_element("testcase")
        .with_attribute(("classname", &*xml(&case.suite)))
        .with_attribute(("name", &*xml(&case.name)))
        .with_attribute(("time", &*seconds(case.seconds)));
    let printed = [("system-out", &case.stdout), ("system-err", &case.stderr)];
    if case.verdict == Verdict::Passed && printed.iter().all(|(_, text)| text.is_empty()) {
        return element.write_empty().map(drop);
    }
    element.write_inner_content(|writer| {
        match &case.verdict {
            Verdict::Passed => {}
            Verdict::Failure { class, message, text } => problem(writer, "failure", class, message, text)?,
            Verdict::Error { kind, message } => {
                problem(writer, "error", kind, message.lines().next().unwrap_or_default(), message)?;
            }
            Verdict::Skipped { reason } => {
                let skipped = writer.create_element("skipped");
                skipped.with_attribute(("message", &*xml(reason))).write_empty()?;
            }
        }
        for (name, text) in printed.iter().filter(|(_, text)| !text.is_empty()) {
            writer.create_element(*name).write_text_content(BytesText::new(&xml(text)))?;
        }
        Ok(())
    })?;
    Ok(())
}

fn problem(writer: &mut Out, name: &str, kind: &str, message: &str, text: &str) -> io::Result<()> {
    let element = writer.create_element(name).with_attribute(("type", &*xml(kind)));
    element.with_attribute(("message", &*xml(message))).write_text_content(BytesText::new(&xml(text)))?;
    Ok(())
}

/// Returns the attributes that count cases.
fn counts(cases: &[&Case]) -> [(&'static str, String); 5] {
    let number = |which: fn(&Verdict) -> bool| cases.iter().filter(|case| which(&case.verdict)).count().to_string();
    [
        ("tests", cases.len().to_string()),
        ("failures", number(|verdict| matches!(verdict, Verdict::Failure { .. }))),
        ("errors", number(|verdict| matches!(verdict, Verdict::Error { .. }))),
        ("skipped", number(|verdict| matches!(verdict, Verdict::Skipped { .. }))),
        ("time", seconds(cases.iter().map(|case| case.seconds).sum())),
    ]
}

fn seconds(value: f64) -> String {
    format!("{value:.3}")
}

#[cfg(test)]
mod tests {
    use quick_xml::Reader;
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
<testsuites name="t2t" tests="4" failures="1" errors="1" skipped="1" time="4.500">
  <testsuite name="softmax" tests="3" failures="1" errors="0" skipped="1" time="4.500">
    <properties>
      <property name="device" value="interpreter"/>
    </properties>
    <testcase classname="softmax" name="v1:check" time="1.500"/>
    <testcase classname="softmax" name="v3:check" time="1.500">
      <failure type="mismatch" message="3 of 256 elements differ">error: kernels/softmax/v3.py:12:5: 3 of 256 elements differ (mismatch)
  |
12 | x</failure>
      <system-out>seen
</system-out>
    </testcase>
    <testcase classname="softmax" name="v4:check" time="1.500">
      <skipped message="after softmax/v3:check"/>
    </testcase>
  </testsuite>
  <testsuite name="t2t" tests="1" failures="0" errors="1" skipped="0" time="0.000">
    <properties>
      <property name="device" value="interpreter"/>
    </properties>
    <testcase classname="t2t" name="calibrate" time="0.000">
      <error type="lost" message="no memory">no memory
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

//! Annotations: what GitHub shows beside the lines of a change, as workflow commands in a build's output.
//!
//! It does not know where they are printed, nor whether anybody reads them.

use std::collections::BTreeSet;

use t2t_model::event::{Event, Fault};
use t2t_model::foreign::printable;
use t2t_model::problem::Problem;

/// The annotations of a build so far: one for each rejection and each action that the machine failed.
#[derive(Debug)]
pub(crate) struct Annotations {
    /// The workspace's folder in the repository, with a `/` at its end, or empty.
    prefix: String,
    lines: Vec<String>,
    known: BTreeSet<String>,
}

impl Annotations {
    /// Returns the annotations of a build that has not begun, in a workspace at `folder` of its repository; empty where it is the whole.
    #[must_use]
    pub(crate) fn new(folder: &str) -> Self {
        let prefix = if folder.is_empty() { String::new() } else { format!("{}/", folder.trim_end_matches('/')) };
        Self { prefix, lines: Vec::new(), known: BTreeSet::new() }
    }

    /// Takes an event.
    pub(crate) fn take(&mut self, event: &Event) {
        match event {
            Event::Failure { target, fault, .. } => self.reject(&target.to_string(), fault),
            Event::ActionLost { target, reason, .. } => {
                self.add(&[("title", format!("{target}: lost"))], reason);
            }
            _ => {}
        }
    }

    /// Takes what is wrong with a file that is no kernel's.
    pub(crate) fn fault(&mut self, problem: &Problem) {
        let mut properties = self.place(Some(&problem.file), problem.line, problem.column);
        properties.push(("title", problem.file.clone()));
        self.add(&properties, &told(&problem.message, None, problem.hint.as_ref()));
    }

    /// Returns the lines, each with its end.
    #[must_use]
    pub(crate) fn text(&self) -> String {
        self.lines.concat()
    }

    fn reject(&mut self, target: &str, fault: &Fault) {
        let mut properties = self.place(fault.file.as_ref(), fault.line, fault.column);
        properties.push(("title", format!("{target}: {}", fault.class)));
        self.add(&properties, &told(&fault.message, fault.case.as_ref(), fault.hint.as_ref()));
    }

    fn place(&self, file: Option<&String>, line: Option<u32>, column: Option<u32>) -> Vec<(&'static str, String)> {
        let file = file.map(|file| ("file", format!("{}{file}", self.prefix)));
        let line = line.map(|line| ("line", line.to_string()));
        let column = column.map(|column| ("col", column.to_string()));
        [file, line, column].into_iter().flatten().collect()
    }

    fn add(&mut self, properties: &[(&str, String)], message: &str) {
        let properties: Vec<String> =
            properties.iter().map(|(name, value)| format!("{name}={}", property(value))).collect();
        let line = format!("::error {}::{}\n", properties.join(","), data(message));
        if self.known.insert(line.clone()) {
            self.lines.push(line);
        }
    }
}

fn told(message: &str, case: Option<&String>, hint: Option<&String>) -> String {
    let case = case.map(|case| format!("\ncase {case}")).unwrap_or_default();
    let hint = hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    format!("{message}{case}{hint}")
}

/// Returns text as a workflow command's message has it.
fn data(text: &str) -> String {
    printable(&text.replace('\r', "")).replace('%', "%25").replace('\n', "%0A")
}

/// Returns text as a workflow command's property has it.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use t2t_model::action::{Phase, Target};

    use super::*;

    fn failure(phase: Phase, file: &str, line: Option<u32>, message: &str) -> Event {
        let fault = Fault {
            class: "mismatch".to_owned(),
            case: Some("small/float32/0".to_owned()),
            message: message.to_owned(),
            file: Some(file.to_owned()),
            line,
            column: line.map(|_| 5),
            hint: Some("see the log".to_owned()),
            ..Fault::default()
        };
        Event::Failure { target: Target::of_variant("softmax", "v3", phase), text: String::new(), fault }
    }

    #[test]
    fn a_rejection_stands_at_its_line_and_one_without_at_its_file() {
        let mut annotations = Annotations::new("");
        let kernel = "kernels/softmax/v3.py";
        annotations.take(&failure(Phase::Check, kernel, Some(12), "3 of 256 elements differ"));
        annotations.take(&failure(Phase::Check, kernel, Some(12), "3 of 256 elements differ"));
        annotations.take(&failure(Phase::Bench, kernel, None, "too slow"));
        annotations.take(&Event::ActionLost { target: Target::summary(), lane: None, reason: "disk full".to_owned() });
        annotations.take(&Event::Warning { text: "unseen".to_owned() });
        assert_eq!(
            annotations.text(),
            "::error file=kernels/softmax/v3.py,line=12,col=5,title=softmax/v3%3Acheck%3A mismatch::3 of 256 elements differ%0A\
             case small/float32/0%0Ahint: see the log\n\
             ::error file=kernels/softmax/v3.py,title=softmax/v3%3Abench%3A mismatch::too slow%0Acase small/float32/0%0Ahint: see the log\n\
             ::error title=summary%3A lost::disk full\n"
        );
    }

    #[test]
    fn nothing_in_a_message_or_a_name_ends_the_command_early() {
        let mut annotations = Annotations::new("ml/kernels/");
        annotations.take(&failure(Phase::Check, "kernels/a,b:c%.py", None, "100 %\r\n::error::\u{1b}[31mno"));
        let text = annotations.text();
        assert_eq!(
            text,
            "::error file=ml/kernels/kernels/a%2Cb%3Ac%25.py,title=softmax/v3%3Acheck%3A mismatch::100 %25%0A::error::\\u{1b}[31mno%0A\
             case small/float32/0%0Ahint: see the log\n"
        );
    }

    #[test]
    fn a_fault_of_ops_yaml_stands_at_its_line() {
        let mut annotations = Annotations::new("");
        let problem = Problem { line: Some(3), column: Some(1), ..Problem::of_file("ops.yaml", "no such field") };
        annotations.fault(&problem.with_hint("drop it"));
        assert_eq!(
            annotations.text(),
            "::error file=ops.yaml,line=3,col=1,title=ops.yaml::no such field%0Ahint: drop it\n"
        );
    }
}

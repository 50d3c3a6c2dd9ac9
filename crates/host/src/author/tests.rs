//! Small scripts, asked.

use super::*;

fn question(script: &str) -> Question {
    Question {
        command: ["sh", "-c", script].map(str::to_owned).into(),
        file: "v1.py".to_owned(),
        prompt: "Write it.\n".to_owned(),
        request: "{}\n".to_owned(),
        timeout: Duration::from_mins(2),
        ..Question::default()
    }
}

fn answer(script: &str) -> Answer {
    ask(&question(script), &|| false).answer
}

#[test]
fn the_kernel_is_the_file_or_else_the_block() {
    assert_eq!(answer("test -s request.json && cat > $T2T_FILE"), Answer::Kernel("Write it.\n".to_owned()));
    assert_eq!(answer("printf '```python\\nx = 1\\n```\\n'"), Answer::Kernel("x = 1\n".to_owned()));
    assert_eq!(answer("echo x > v1.py; exit 3"), Answer::Kernel("x\n".to_owned()), "an answer is an answer");
}

#[test]
fn what_is_no_kernel_says_why() {
    for (script, why) in [
        ("true", "no fenced Python block"),
        (": > v1.py", "is empty"),
        ("printf '\\377' > v1.py", "is not UTF-8"),
        ("mkfifo v1.py", "it is no file"),
        ("head -c 2000000 /dev/zero > v1.py", "longer than"),
    ] {
        assert!(matches!(answer(script), Answer::NoKernel(said) if said.contains(why)), "{script}");
    }
    assert!(matches!(answer("exit 3"), Answer::Failed(said) if said.contains("exit status: 3")));
    let nobody = Question { command: vec!["no-such-author".to_owned()], ..question("") };
    assert!(matches!(ask(&nobody, &|| false).answer, Answer::Failed(said) if said.contains("no-such-author")));
}

#[test]
fn nothing_outlives_the_author() {
    let asked = ask(&question("sleep 600 & echo $!"), &|| false);
    let place = format!("/proc/{}/stat", asked.printed.trim());
    let runs = || std::fs::read_to_string(&place).is_ok_and(|state| !state.contains(") Z "));
    while runs() {
        thread::sleep(LOOK);
    }
    assert_eq!(ask(&question("sleep 600"), &|| true).answer, Answer::Stopped);
    let hasty = Question { timeout: Duration::from_millis(50), ..question("trap '' TERM; sleep 600 & wait") };
    assert_eq!(ask(&hasty, &|| false).answer, Answer::TimedOut);
}

//! Judges that follow a candidate on a device, and what they judged of one that ran again.
//!
//! It does not know how they judge: the interpreter for tests notes that they were called.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{build, machine, on, uuid};
use crate::project::Project;

/// Returns the attempts that judges were told of, by action and function, in order.
fn attempts(project: &Project) -> BTreeMap<(String, String), Vec<u64>> {
    let mut attempts: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
    for line in project.read("../python/bin/judges.log").lines() {
        let call: Value = serde_json::from_str(line).unwrap();
        let of = |name: &str| call[name].as_str().unwrap().to_owned();
        assert_eq!(of("device"), uuid(0), "{call}");
        attempts.entry((of("target"), of("function"))).or_default().push(call["attempt"].as_u64().unwrap());
    }
    attempts
}

/// Returns which attempt of a variant of softmax was followed, and which one was judged.
fn of_softmax(project: &Project, variant: &str) -> (u64, u64) {
    let attempts = attempts(project);
    let one = |function: &str| {
        let told = &attempts[&(format!("softmax/{variant}:check"), format!("judge:{function}"))];
        assert_eq!(told.len(), 1, "{attempts:?}");
        told[0]
    };
    (one("follow"), one("judge"))
}

#[test]
fn a_judge_follows_each_candidate_on_a_device_and_judges_what_it_followed() {
    let project = machine(1);
    build(&project, "");
    let called = attempts(&project).into_keys().collect::<Vec<_>>();
    let checks = ["gelu", "relu", "softmax"]
        .into_iter()
        .flat_map(|op| ["v1_baseline", "v2_tiling"].map(|variant| format!("{op}/{variant}:check")));
    let expected: Vec<(String, String)> = checks
        .flat_map(|check| ["judge:follow", "judge:judge"].map(|function| (check.clone(), function.to_owned())))
        .collect();
    assert_eq!(called, expected);
    let (followed, judged) = of_softmax(&project, "v2_tiling");
    assert_eq!(followed, judged);
}

#[test]
fn nothing_counts_that_was_judged_of_a_candidate_which_ran_again_with_all_queues() {
    let project = machine(1);
    project.kernel("softmax", "v2_tiling", "STREAMS");
    build(&project, "");
    let (followed, judged) = of_softmax(&project, "v2_tiling");
    assert!(followed < judged, "{followed} {judged}");
    let (followed, judged) = of_softmax(&project, "v1_baseline");
    assert_eq!(followed, judged);
}

#[test]
fn a_judge_that_followed_a_candidate_to_its_end_judges_it_and_is_asked_once() {
    let project = machine(1);
    project.kernel("softmax", "v1_baseline", "FOLLOWED; REJECT mismatch");
    project.kernel("softmax", "v2_tiling", "FOLLOWED");
    let ran = project.run(&mut on(&project, &project, "build")).exits(1);
    ran.says("rejected (mismatch)").says("bench softmax/v2_tiling … passed");
    let attempts = attempts(&project);
    for variant in ["v1_baseline", "v2_tiling"] {
        let called = |function: &str| attempts.get(&(format!("softmax/{variant}:check"), format!("judge:{function}")));
        assert_eq!((called("follow").map(Vec::len), called("judge")), (Some(1), None), "{attempts:?}");
    }
}

//! Signed results: what a forger can do to a publication and to a remote cache, who is told of it, and what `--require-signed` takes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};
use ssh_key::private::{Ed25519Keypair, KeypairData};
use ssh_key::{LineEnding, PrivateKey};
use t2t_model::digest::Digest;
use t2t_model::manifest::{Fact, Manifest, canonical_json};

use crate::project::{Project, Ran, copy_folder};
use crate::remote_servers::Server;

mod keys;
mod entries;

const FOLDER: &str = "assets/results/interpreter";
const GATE: &str = "build --require-cached --as-device interpreter";
const SIGNED: &str = "build --require-cached --require-signed --as-device interpreter";
const KERNEL: &str = "kernels/softmax/v2_tiling.py";
const ADA: u8 = 1;
const BOB: u8 = 2;

/// Returns a key of nobody else, of the name that its file and its holder have here.
fn key(seed: u8) -> PrivateKey {
    let name = if seed == ADA { "ada" } else { "bob" };
    let pair = KeypairData::Ed25519(Ed25519Keypair::from_seed(&[seed; 32]));
    PrivateKey::new(pair, format!("{name}@example.org")).unwrap()
}

fn private(seed: u8) -> String {
    key(seed).to_openssh(LineEnding::LF).unwrap().to_string()
}

fn public(seed: u8) -> String {
    key(seed).public_key().to_openssh().unwrap()
}

/// Has ops.yaml trust Ada, and puts both keys beside the workspace.
fn trusting(project: &Project) {
    project.edit("ops.yaml", "version: 1\n", &format!("version: 1\ntrust:\n  - {}\n", public(ADA)));
    project.write("../ada", private(ADA));
    project.write("../bob", private(BOB));
}

// Publications.

/// A workspace that trusts Ada, with results that Ada signed, and an empty store.
fn signed() -> Project {
    let project = Project::new();
    trusting(&project);
    project.build().exits(0);
    project.t2t("publish --sign ../ada").exits(0).says("signed by ada@example.org (SHA256:");
    project.t2t("clean --cache").exits(0);
    project
}

fn file(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

fn records(project: &Project, op: &str) -> Value {
    serde_json::from_str(&project.read(&file(&format!("records/{op}.json")))).unwrap()
}

/// Edits a kernel, and rewrites the published records that stood on it so that they speak of it: what it means, the key, the checksum. Nothing runs.
fn forge(project: &Project) {
    project.edit(KERNEL, "+ 1", "+ 2");
    let told = project.run_raw(GATE);
    assert!(told.contains(&format!("missing   softmax/v2_tiling:check  code of `{KERNEL}` changed")), "{told}");
    let mut file_of_op = records(project, "softmax");
    let fact = format!("source.{KERNEL}");
    let meaning = meaning(project);
    let mut forged = 0;
    for entry in file_of_op["records"].as_array_mut().unwrap() {
        if entry["facts"][&fact].is_null() {
            continue;
        }
        entry["facts"][&fact] = meaning.clone();
        rewrite(entry);
        forged += 1;
    }
    assert_eq!(forged, 3);
    project.write(&file("records/softmax.json"), format!("{file_of_op:#}\n"));
}

/// Returns what the edited kernel means, as whoever builds elsewhere is told.
fn meaning(project: &Project) -> Value {
    let other = Project::new();
    other.write(KERNEL, project.read(KERNEL));
    other.build().exits(0);
    other.t2t("publish").exits(0);
    let records = records(&other, "softmax");
    let mut meanings =
        records["records"].as_array().unwrap().iter().map(|entry| &entry["facts"][format!("source.{KERNEL}")]);
    meanings.find(|meaning| !meaning.is_null()).unwrap().clone()
}

/// Makes key and checksum those of what the entry says now.
fn rewrite(entry: &mut Value) {
    let facts = entry["facts"].as_object().unwrap().iter().map(|(name, fact)| {
        let digest = fact["digest"].as_str().map(|digest| Fact::Digest(digest.parse().unwrap()));
        (name.clone(), digest.unwrap_or_else(|| Fact::Text(fact.as_str().unwrap().to_owned())))
    });
    entry["record"]["key"] = json!(Manifest { facts: facts.collect() }.key().to_string());
    entry["checksum"] = json!(Digest::of(canonical_json(&entry["record"]).as_bytes()).to_string());
}

fn missing(ran: &Ran) -> usize {
    ran.stdout.lines().filter(|line| line.starts_with("missing   ")).count()
}

#[test]
fn a_forged_publication_is_accepted_unsigned_and_that_is_said() {
    let project = Project::built();
    project.t2t("publish").exits(0).says(", unsigned\n");
    project.t2t("clean --cache").exits(0);
    forge(&project);
    let ran = project.t2t(GATE).exits(0).runs("").never_says("warning:");
    ran.says("measured elsewhere: 14 results unsigned\n");
}

#[test]
fn a_forged_publication_is_refused_where_signatures_are_required() {
    let project = signed();
    project.t2t(SIGNED).exits(0).runs("").says("measured elsewhere: 14 results signed by ada@example.org (SHA256:");
    forge(&project);
    let ran = project.t2t(GATE).exits(0).runs("");
    let ran = ran.says("records/softmax.json: it is not what ada@example.org signed; it counts as unsigned\n");
    ran.says("7 results signed by ada@example.org (SHA256:").says("), 7 results unsigned\n");
    let ran = project.t2t(SIGNED).exits(1).runs("").never_says("unsigned\n");
    let ran = ran.says("warning: assets/results/interpreter/records/softmax.json: it is not what ada@example.org signed; it counts as missing\n");
    assert_eq!(missing(&ran), 7);
    ran.says("hint: build where they can be measured, run `t2t publish --sign KEYFILE` there");
    // The forger can also write a new statement, but not sign it.
    project.t2t("publish --as-device interpreter").exits(0).says("the signature of an earlier publication is removed");
    let ran = project.t2t(SIGNED).exits(1).runs("");
    let ran = ran.says("warning: assets/results/interpreter: it is not signed; it counts as missing\n");
    assert_eq!(missing(&ran), 14);
}

#[test]
fn another_key_may_sign_and_does_not_count() {
    let project = signed();
    project.build().exits(0);
    let ran = project.t2t("publish --sign ../bob").exits(0).says("signed with SHA256:");
    ran.says(&format!("note: ops.yaml does not trust this key: add `- {}` to `trust`\n", public(BOB)));
    project.t2t("clean --cache").exits(0);
    let stranger = "statement.json.sig: it is by the key SHA256:";
    project.t2t(GATE).exits(0).says(stranger).says("14 results unsigned");
    let ran = project
        .t2t(SIGNED)
        .exits(1)
        .says(stranger)
        .says("which `trust` in ops.yaml does not name; it counts as missing");
    assert_eq!(missing(&ran), 14);
    project.edit("ops.yaml", "trust:\n", &format!("trust:\n  - {}\n", public(BOB)));
    project.t2t(SIGNED).exits(0).says("14 results signed by bob@example.org");
}

#[test]
fn no_byte_of_a_signature_or_of_what_was_signed_can_be_changed() {
    let project = signed();
    let changed = |name: &str, from: &str, to: &str| {
        let text = project.read(&file(name));
        assert!(text.contains(from), "{name}: {text}");
        project.write(&file(name), text.replacen(from, to, 1));
        let ran = project.t2t(SIGNED).exits(1).runs("");
        project.write(&file(name), text);
        ran
    };
    let signature = project.read(&file("statement.json.sig"));
    let line = signature.lines().nth(3).unwrap();
    let ran = changed("statement.json.sig", &line[10..12], if &line[10..12] == "AA" { "BB" } else { "AA" });
    assert_eq!(missing(&ran.says("statement.json.sig: it ")), 14);
    changed("statement.json.sig", "BEGIN SSH", "BEGIN").says("statement.json.sig: it is not an ssh signature");
    let ran = changed("statement.json", "interpreter", "nvidia-h200");
    ran.says("statement.json.sig: it does not fit: ada@example.org (SHA256:");
    changed("statement.json", "records/gelu.json", "records/gelv.json").says("does not fit");
    let ran = changed("records/gelu.json", "\"wall_ms\": ", "\"wall_ms\":  ");
    assert_eq!(missing(&ran.says("records/gelu.json: it is not what ada@example.org signed")), 7);
    project.t2t(SIGNED).exits(0);
}

#[test]
fn what_is_not_signed_cannot_be_added_and_what_is_signed_cannot_be_taken_away_unseen() {
    let project = signed();
    let gelu = project.read(&file("records/gelu.json"));
    project.remove(&file("records/gelu.json"));
    let ran =
        project.t2t(SIGNED).exits(1).says("records/gelu.json: it is signed, and is not there; it counts as missing\n");
    assert_eq!(missing(&ran), 7);
    project.write(&file("records/other.json"), gelu);
    let ran = project.t2t(SIGNED).exits(1);
    let ran = ran.says("records/other.json: it is not among what ada@example.org signed; it counts as missing\n");
    assert_eq!(missing(&ran), 7);
}

#[test]
fn files_of_two_signed_publications_do_not_mix() {
    let project = signed();
    let old = project.read(&file("records/softmax.json"));
    project.edit(KERNEL, "+ 1", "+ 2");
    project.build().exits(0);
    project.t2t("publish --sign ../ada").exits(0);
    project.t2t("clean --cache").exits(0);
    project.t2t(SIGNED).exits(0);
    project.write(&file("records/softmax.json"), old);
    let ran = project.t2t(SIGNED).exits(1).says("records/softmax.json: it is not what ada@example.org signed");
    assert_eq!(missing(&ran), 7);
}

#[test]
fn a_whole_earlier_publication_counts_for_the_kernels_that_it_was_made_of_alone() {
    let project = signed();
    copy_folder(&project.path(FOLDER), &project.path("../old"));
    project.edit(KERNEL, "+ 1", "+ 2");
    project.build().exits(0);
    project.t2t("publish --sign ../ada").exits(0);
    project.t2t("clean --cache").exits(0);
    copy_folder(&project.path("../old"), &project.path(FOLDER));
    let ran = project.t2t(SIGNED).exits(1).runs("").says("11 results signed by ada@example.org");
    assert_eq!(missing(&ran), 3, "{}", ran.stdout);
}

#[test]
fn a_signature_of_another_device_is_none() {
    let project = signed();
    let to = project.path("assets/results/nvidia-h200");
    copy_folder(&project.path(FOLDER), &to);
    let gate = "build --require-cached --require-signed --as-device nvidia-h200";
    project.t2t(gate).exits(1).says("nvidia-h200/statement.json: it is of another device, `interpreter`");
}

#[test]
fn what_is_known_of_a_device_counts_only_as_it_was_signed() {
    let project = signed();
    project.edit(&file("device.json"), "\"model\": \"interpreter\"", "\"model\":  \"interpreter\"");
    let ran =
        project.t2t(SIGNED).exits(0).says("device.json: it is not what ada@example.org signed; it counts as missing\n");
    ran.says("has no `device.json` that can be read: the driver is not known");
}

#[test]
fn that_nobody_signed_is_said_beside_damage() {
    let project = signed();
    project.remove(&file("statement.json.sig"));
    project.edit(&file("records/gelu.json"), "\"outcome\": \"passed\"", "\"outcome\": \"not\"");
    let ran = project.t2t(SIGNED).exits(1).says("the record does not match its checksum; it counts as missing\n");
    ran.says("warning: assets/results/interpreter: it is not signed; it counts as missing\n");
}

#[test]
fn nothing_of_the_store_counts_where_signatures_are_required() {
    let project = Project::new();
    trusting(&project);
    project.build().exits(0);
    project.t2t("publish").exits(0);
    project.t2t(GATE).exits(0);
    let before = project.read("cache/journal");
    let ran = project.t2t(SIGNED).exits(1).runs("");
    assert_eq!(missing(&ran.says("it is not signed")), 14);
    let ran = project.t2t("build --require-cached --require-signed").exits(1).runs("");
    assert_eq!(missing(&ran), 14);
    assert_eq!(project.read("cache/journal"), before);
    assert!(!project.exists("cache/scratch") || fs::read_dir(project.path("cache/scratch")).unwrap().next().is_none());
    project.build().exits(0).runs("");
}

#[test]
fn an_edited_docstring_leaves_signed_results_standing() {
    let project = signed();
    project.edit(KERNEL, "softmax, v2_tiling.", "softmax in tiles.");
    project.t2t(SIGNED).exits(0).runs("softmax:log").says("14 results signed by ada@example.org");
}

#[test]
fn an_equal_publication_keeps_its_signature_and_another_one_does_not() {
    let project = signed();
    project.t2t("publish --as-device interpreter").exits(0).says(", signed as before\n");
    project.t2t(SIGNED).exits(0);
    project.edit(KERNEL, "softmax, v2_tiling.", "softmax in tiles.");
    project.t2t(GATE).exits(0);
    let ran = project.t2t("publish --as-device interpreter").exits(0).says(", unsigned\n");
    ran.says("note: the signature of an earlier publication is removed: it is of other files\n");
    assert!(!project.exists(&file("statement.json.sig")));
}

#[test]
fn programs_read_who_measured() {
    let project = signed();
    let told = |arguments: &str| {
        project.t2t(&format!("{arguments} --events ../events")).exits(0);
        let lines = project.read("../events");
        let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.into_iter().find(|event| event["event"] == "vouched").unwrap()
    };
    let vouched = told(SIGNED);
    let signer = json!([{"name": "ada@example.org", "key": vouched["signers"][0]["key"], "results": 14}]);
    assert_eq!((&vouched["signers"], &vouched["unsigned"]), (&signer, &json!(0)));
    project.remove(&file("statement.json.sig"));
    let vouched = told(GATE);
    assert_eq!((&vouched["signers"], &vouched["unsigned"]), (&json!([]), &json!(14)));
}

#[test]
fn openssh_reads_what_t2t_signs_and_t2t_what_openssh_signs() {
    let project = signed();
    let folder = project.path(FOLDER);
    project.write("../signers", format!("ada@example.org {}\n", public(ADA)));
    let keygen = |arguments: &[&str]| {
        let mut command = Command::new("ssh-keygen");
        command.args(arguments).current_dir(&folder).env("HOME", project.path("../"));
        command
    };
    let statement = fs::File::open(folder.join("statement.json")).unwrap();
    let signers = project.path("../signers").display().to_string();
    let arguments =
        ["-Y", "verify", "-f", &signers, "-I", "ada@example.org", "-n", "t2t-results", "-s", "statement.json.sig"];
    let verified = keygen(&arguments).stdin(statement).output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    fs::remove_file(folder.join("statement.json.sig")).unwrap();
    project.t2t(SIGNED).exits(1);
    // A key that only an agent or ssh-keygen can use signs the same file.
    let ada = project.path("../ada");
    fs::set_permissions(&ada, fs::Permissions::from_mode(0o600)).unwrap();
    let arguments = ["-q", "-Y", "sign", "-n", "t2t-results", "-f", ada.to_str().unwrap(), "statement.json"];
    let made = keygen(&arguments).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    project.t2t(SIGNED).exits(0).says("14 results signed by ada@example.org");
    // One that was made for git is not one of results.
    fs::remove_file(folder.join("statement.json.sig")).unwrap();
    let arguments = ["-q", "-Y", "sign", "-n", "git", "-f", ada.to_str().unwrap(), "statement.json"];
    assert!(keygen(&arguments).output().unwrap().status.success());
    project.t2t(SIGNED).exits(1).says("statement.json.sig: it was made for `git`, not for this");
}

fn build(project: &Project, server: &Server, arguments: &str) -> Ran {
    project.run(project.command(arguments).env("T2T_REMOTE", server.url()))
}

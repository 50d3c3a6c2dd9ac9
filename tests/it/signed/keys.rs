//! Keys that cannot be used.
//!
//! It does not know what a signature is worth.

use std::process::Command;

use ssh_key::{Cipher, Kdf, LineEnding};

use super::{ADA, SIGNED, key, private, public, trusting};
use crate::project::Project;

fn locked(seed: u8, passphrase: &str) -> String {
    let kdf = Kdf::Bcrypt { salt: vec![7; 16], rounds: 1 };
    let locked = key(seed).encrypt_with(Cipher::Aes256Ctr, kdf, 7, passphrase).unwrap();
    locked.to_openssh(LineEnding::LF).unwrap().to_string()
}

#[test]
fn a_key_that_cannot_sign_is_bad_use_with_what_to_do() {
    let project = Project::built();
    trusting(&project);
    project.write("../locked", locked(ADA, "open sesame"));
    project.write("../ada.pub", public(ADA));
    project.write("../text", "no key");
    let ecdsa = project.path("../ecdsa");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ecdsa", "-N", "", "-f"]).arg(&ecdsa).status().unwrap();
    assert!(made.success());
    for (name, said) in [
        ("none", "error: --sign: cannot read `../none`: "),
        ("ada.pub", "error: --sign: `../ada.pub` is a public key\nhint: name the file beside it without `.pub`\n"),
        (
            "text",
            "error: --sign: `../text` is not an OpenSSH private key\nhint: name the private half of an ed25519 key",
        ),
        ("ecdsa", "error: --sign: `../ecdsa` is not an ed25519 key\n"),
        ("locked", "error: --sign: `../locked` is encrypted\nhint: set $T2T_SIGN_PASSPHRASE; or publish unsigned"),
    ] {
        project.t2t(&format!("publish --sign ../{name}")).exits(2).says(said);
    }
    let with = |key: &str, passphrase: &str| {
        let mut command = project.command("publish");
        project.run(command.env("T2T_SIGN_KEY", key).env("T2T_SIGN_PASSPHRASE", passphrase))
    };
    with("../locked", "wrong").exits(2).says("$T2T_SIGN_KEY: `../locked` does not open with this passphrase");
    let ran =
        with(&private(ADA)[..90], "").exits(2).says("error: the key in $T2T_SIGN_KEY is not an OpenSSH private key");
    ran.never_says("b3BlbnNzaC1rZXktdjE");
    assert!(!project.exists("assets/results"));
    with("../locked", "open sesame").exits(0).says("signed by ada@example.org");
    with(&private(ADA), "").exits(0).says("signed by ada@example.org");
    with("", "").exits(0).says("signed as before");
    project.t2t("publish --as-device interpreter --sign ../ada").exits(2).says("cannot be signed here");
    project.t2t("build --sign ../ada").exits(2).says("nothing is left in one here");
}

#[test]
fn signatures_are_required_only_where_somebody_is_trusted_and_nothing_runs() {
    let project = Project::built();
    project.t2t("publish").exits(0);
    let ran = project
        .t2t(SIGNED)
        .exits(2)
        .says("error: `--require-signed` needs trusted keys, and ops.yaml names none\nhint: ");
    ran.says("trust: [ssh-ed25519 AAAA");
    project.t2t("build --require-signed").exits(2).says("--require-cached");
}

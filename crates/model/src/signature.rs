//! Signatures with ssh keys: who may vouch for results, what a key makes of bytes, and whether a signature holds.
//!
//! The form is OpenSSH's own (`ssh-keygen -Y sign`), with ed25519 keys. It does not know what is signed, nor where keys and signatures lie.

use std::fmt;

use ssh_key::{Algorithm, Fingerprint, HashAlg, LineEnding, PrivateKey, PublicKey, SshSig};

/// The longest signature that is read, in bytes. Those of ed25519 keys take about 300.
const MOST: usize = 4 << 10;

/// The first word of the keys that are taken.
const KIND: &str = "ssh-ed25519";

/// What a signature is for: one of another purpose does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A statement on published results.
    Results,
    /// A record in a remote cache.
    Record,
}

impl Purpose {
    /// Returns the namespace, as `ssh-keygen -Y sign -n` takes it.
    #[must_use]
    pub(crate) fn namespace(self) -> &'static str {
        match self {
            Self::Results => "t2t-results",
            Self::Record => "t2t-record",
        }
    }
}

/// Who signed. `Display` gives the name with the key's fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signer {
    /// What ops.yaml calls the key.
    pub name: String,
    /// The key's fingerprint, as in `SHA256:…`.
    pub key: String,
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.key)
    }
}

/// A public key with its holder's name, as in a line of `authorized_keys` or of a `.pub` file.
#[derive(Debug, Clone, PartialEq)]
pub struct TrustedKey {
    name: String,
    key: PublicKey,
}

/// Why a text is no key to trust. `Display` says what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// It is the private half.
    #[error(
        "this is a private key: whoever has seen it can sign, so make a new one, and name the line of its `.pub` file"
    )]
    Private,
    /// It is of a kind that is not taken.
    #[error("only `ssh-ed25519` keys are accepted: `ssh-keygen -t ed25519` makes one")]
    Kind,
    /// The key itself is damaged.
    #[error("the key is cut short or changed: copy the whole line of the `.pub` file")]
    Damaged,
    /// Nobody is named.
    #[error("write the holder's name after the key: `ssh-ed25519 AAAA… ada@example.org`")]
    Nameless,
    /// Its name cannot be printed.
    #[error("use printable characters on one line for the name behind the key")]
    Name,
}

impl TrustedKey {
    /// Parses a line `ssh-ed25519 AAAA… name`.
    ///
    /// # Errors
    /// What is wrong with the line.
    pub fn parse(line: &str) -> Result<Self, BadKey> {
        if line.contains("PRIVATE KEY") {
            return Err(BadKey::Private);
        }
        let line = line.trim();
        let (kind, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let (key, name) = rest.trim_start().split_once(char::is_whitespace).unwrap_or((rest.trim_start(), ""));
        if kind != KIND {
            return Err(BadKey::Kind);
        }
        let mut key = PublicKey::from_openssh(&format!("{kind} {key}")).map_err(|_| BadKey::Damaged)?;
        if key.algorithm() != Algorithm::Ed25519 {
            return Err(BadKey::Kind);
        }
        key.set_comment("");
        match name.trim() {
            "" => Err(BadKey::Nameless),
            name if name.contains(char::is_control) => Err(BadKey::Name),
            name => Ok(Self { name: name.to_owned(), key }),
        }
    }

    /// Returns who signs with this key.
    #[must_use]
    pub fn signer(&self) -> Signer {
        Signer { name: self.name.clone(), key: fingerprint(&self.key) }
    }

    /// Returns whether the two are one key, whatever they are called.
    #[must_use]
    pub fn is_same_key(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

/// The keys that are believed: `trust` in ops.yaml.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trust(Vec<TrustedKey>);

/// Why a signature does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The text is no signature.
    #[error("is not an ssh signature")]
    Unreadable,
    /// It was made for something else.
    #[error("was made for `{0}`, not for this")]
    Purpose(String),
    /// Nobody trusts the key.
    #[error("is by the key {0}, which `trust` in ops.yaml does not name")]
    Stranger(String),
    /// The key did not sign this.
    #[error("does not fit: {0} did not sign this")]
    Misfit(Signer),
}

impl Trust {
    /// Returns trust in these keys.
    #[must_use]
    pub fn of(keys: Vec<TrustedKey>) -> Self {
        Self(keys)
    }

    /// Returns whether there is no key at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns who signed `message` for `purpose`, one of those that are trusted.
    ///
    /// # Errors
    /// Why the signature does not count.
    pub fn verify(&self, purpose: Purpose, message: &[u8], signature: &str) -> Result<Signer, Refused> {
        let signature = read(signature).ok_or(Refused::Unreadable)?;
        if signature.namespace() != purpose.namespace() {
            return Err(Refused::Purpose(signature.namespace().chars().filter(|c| !c.is_control()).take(64).collect()));
        }
        let key = self.0.iter().find(|trusted| trusted.key.key_data() == signature.public_key());
        let Some(key) = key else {
            return Err(Refused::Stranger(signature.public_key().fingerprint(HashAlg::Sha256).to_string()));
        };
        let verified = key.key.verify(purpose.namespace(), message, &signature);
        verified.map(|()| key.signer()).map_err(|_| Refused::Misfit(key.signer()))
    }
}

/// Returns the signature that `text` is, byte for byte: the library also takes lengths that point beyond its end.
fn read(text: &str) -> Option<SshSig> {
    let text = Some(text.trim_end()).filter(|text| text.len() <= MOST)?;
    let signature = SshSig::from_pem(text).ok()?;
    let again = signature.to_pem(LineEnding::LF).ok()?;
    let is_same = again.split_whitespace().collect::<String>() == text.split_whitespace().collect::<String>();
    let is_plain = signature.version() == SshSig::VERSION && signature.reserved().is_empty();
    (is_same && is_plain).then_some(signature)
}

/// A key that signs.
#[derive(Debug, Clone)]
pub struct SigningKey(PrivateKey);

/// Why a text is no key that can sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoKey {
    /// It is encrypted, and there is no passphrase.
    #[error("is encrypted")]
    Encrypted,
    /// The passphrase is another.
    #[error("does not open with this passphrase")]
    Passphrase,
    /// It is the public half.
    #[error("is a public key")]
    Public,
    /// It is of a kind that is not taken.
    #[error("is not an ed25519 key")]
    Kind,
    /// It is no key as OpenSSH writes them.
    #[error("is not an OpenSSH private key")]
    Unreadable,
}

impl SigningKey {
    /// Returns the key that the text of a file of `ssh-keygen` holds, opened with `passphrase` where it is encrypted.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn read(text: &str, passphrase: Option<&str>) -> Result<Self, NoKey> {
        if text.trim_start().starts_with("ssh-") {
            return Err(NoKey::Public);
        }
        // What went through an environment or an editor may have other line ends, or none at the end.
        let text = text.replace("\r\n", "\n");
        let key = PrivateKey::from_openssh(text.trim()).map_err(|error| match error {
            ssh_key::Error::AlgorithmUnknown | ssh_key::Error::AlgorithmUnsupported { .. } => NoKey::Kind,
            _ => NoKey::Unreadable,
        })?;
        if key.algorithm() != Algorithm::Ed25519 {
            return Err(NoKey::Kind);
        }
        if !key.is_encrypted() {
            return Ok(Self(key));
        }
        let passphrase = passphrase.ok_or(NoKey::Encrypted)?;
        key.decrypt(passphrase).map(Self).map_err(|_| NoKey::Passphrase)
    }

    /// Returns the signature of `message` for `purpose`, as `ssh-keygen -Y verify` reads it. The same bytes for the same message. None only where the library fails.
    #[must_use]
    pub fn sign(&self, purpose: Purpose, message: &[u8]) -> Option<String> {
        let signature = self.0.sign(purpose.namespace(), HashAlg::Sha512, message).ok()?;
        signature.to_pem(LineEnding::LF).ok()
    }

    /// Returns the line of the public key, with its comment: what `trust` in ops.yaml would name.
    #[must_use]
    pub fn public(&self) -> String {
        self.0.public_key().to_openssh().unwrap_or_default()
    }

    /// Returns who signs with it, if `trust` names the key.
    #[must_use]
    pub fn among(&self, trust: &Trust) -> Option<Signer> {
        let own = self.0.public_key().key_data();
        trust.0.iter().find(|trusted| trusted.key.key_data() == own).map(TrustedKey::signer)
    }

    /// Returns the key's fingerprint, as in `SHA256:…`.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        fingerprint(self.0.public_key())
    }
}

fn fingerprint(key: &PublicKey) -> String {
    let fingerprint: Fingerprint = key.fingerprint(HashAlg::Sha256);
    fingerprint.to_string()
}

#[cfg(test)]
mod tests {
    use ssh_key::private::{Ed25519Keypair, KeypairData};
    use ssh_key::{Cipher, Kdf};

    use super::*;

    /// Returns a key that nobody else has, as `ssh-keygen` writes it, and its public line.
    fn key(seed: u8) -> (String, String) {
        let key = Ed25519Keypair::from_seed(&[seed; 32]);
        let key = PrivateKey::new(KeypairData::Ed25519(key), format!("key{seed}@example.org")).unwrap();
        (key.to_openssh(LineEnding::LF).unwrap().to_string(), key.public_key().to_openssh().unwrap())
    }

    /// Returns the same key encrypted.
    fn locked(seed: u8, passphrase: &str) -> String {
        let key = PrivateKey::from_openssh(key(seed).0).unwrap();
        let kdf = Kdf::Bcrypt { salt: vec![7; 16], rounds: 1 };
        let locked = key.encrypt_with(Cipher::Aes256Ctr, kdf, 7, passphrase).unwrap();
        locked.to_openssh(LineEnding::LF).unwrap().to_string()
    }

    fn trust() -> Trust {
        Trust::of(vec![TrustedKey::parse(&key(1).1).unwrap()])
    }

    fn signed(seed: u8, purpose: Purpose, message: &[u8]) -> String {
        SigningKey::read(&key(seed).0, None).unwrap().sign(purpose, message).unwrap()
    }

    #[test]
    fn what_a_trusted_key_signed_holds_and_says_who_it_was() {
        let signature = signed(1, Purpose::Results, b"a statement");
        let signer = trust().verify(Purpose::Results, b"a statement", &signature).unwrap();
        assert_eq!(signer.name, "key1@example.org");
        assert!(signer.key.starts_with("SHA256:"), "{signer}");
        assert_eq!(SigningKey::read(&key(1).0, None).unwrap().among(&trust()), Some(signer));
    }

    #[test]
    fn another_message_purpose_or_key_does_not_hold() {
        let signature = signed(1, Purpose::Results, b"a statement");
        let refused =
            |purpose, message: &[u8], signature: &str| trust().verify(purpose, message, signature).unwrap_err();
        assert!(matches!(refused(Purpose::Results, b"another", &signature), Refused::Misfit(_)));
        let purpose = refused(Purpose::Record, b"a statement", &signature);
        assert_eq!(purpose, Refused::Purpose("t2t-results".to_owned()));
        let stranger = refused(Purpose::Results, b"a statement", &signed(2, Purpose::Results, b"a statement"));
        assert!(matches!(stranger, Refused::Stranger(_)), "{stranger:?}");
        assert_eq!(Trust::default().verify(Purpose::Results, b"a statement", &signature).ok(), None);
    }

    #[test]
    fn no_character_of_a_signature_can_be_changed_and_none_can_be_missing() {
        let signature = signed(1, Purpose::Record, b"a record");
        for at in 0..signature.trim_end().len() {
            let mut changed = signature.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(trust().verify(Purpose::Record, b"a record", &changed).is_err(), "character {at}");
            assert!(trust().verify(Purpose::Record, b"a record", &signature[..at]).is_err(), "cut at {at}");
        }
        assert_eq!(trust().verify(Purpose::Record, b"", &"A".repeat(1 << 20)), Err(Refused::Unreadable));
    }

    #[test]
    fn what_is_no_key_to_trust_says_why() {
        let (private, public) = key(1);
        let key = public.split(' ').nth(1).unwrap();
        for (line, why) in [
            (private, BadKey::Private),
            ("ssh-rsa AAAAB3NzaC1yc2E ada".to_owned(), BadKey::Kind),
            (key.to_owned(), BadKey::Kind),
            (String::new(), BadKey::Kind),
            (format!("ssh-ed25519 {} ada", &key[..40]), BadKey::Damaged),
            ("ssh-ed25519".to_owned(), BadKey::Damaged),
            ("ssh-ed25519 é ada".to_owned(), BadKey::Damaged),
            (format!("ssh-ed25519 {key}"), BadKey::Nameless),
            (format!("ssh-ed25519 {key} a\u{1b}[31mda"), BadKey::Name),
        ] {
            assert_eq!(TrustedKey::parse(&line), Err(why), "{line}");
        }
        let spaced = TrustedKey::parse(&format!("  ssh-ed25519   {key}   Ada of the lab  ")).unwrap();
        assert_eq!(spaced.signer().name, "Ada of the lab");
        assert!(spaced.is_same_key(&TrustedKey::parse(&public).unwrap()));
    }

    #[test]
    fn what_is_no_key_to_sign_with_says_why() {
        let ((private, public), locked) = (key(1), locked(1, "open sesame"));
        assert_eq!(SigningKey::read(&public, None).err(), Some(NoKey::Public));
        assert_eq!(SigningKey::read("", None).err(), Some(NoKey::Unreadable));
        assert_eq!(SigningKey::read(&private[..200], None).err(), Some(NoKey::Unreadable));
        assert_eq!(SigningKey::read(&locked, None).err(), Some(NoKey::Encrypted));
        assert_eq!(SigningKey::read(&locked, Some("wrong")).err(), Some(NoKey::Passphrase));
        assert_eq!(SigningKey::read(&locked, Some("open sesame")).unwrap().public(), public);
        assert!(SigningKey::read(&private.replace('\n', "\r\n"), None).is_ok());
    }
}

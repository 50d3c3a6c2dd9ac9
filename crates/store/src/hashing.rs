//! Digests of long data, such as files and blobs, made on all cores.
//!
//! It does not know what is hashed: the digest is the one that [`Digest::of`] makes on one core.

use t2t_model::digest::Digest;

/// From this many bytes on a digest is made on all cores. For less, splitting the work costs more than it saves.
const LONG: usize = 1 << 18;

/// Returns the digest of `bytes`.
#[must_use]
pub(crate) fn of(bytes: &[u8]) -> Digest {
    if bytes.len() < LONG {
        return Digest::of(bytes);
    }
    let mut running = Running::default();
    running.add(bytes);
    running.digest()
}

/// The digest of bytes that come one part after another.
#[derive(Debug, Default)]
pub(crate) struct Running(blake3::Hasher);

impl Running {
    /// Adds the next part.
    pub(crate) fn add(&mut self, part: &[u8]) {
        if part.len() < LONG {
            self.0.update(part);
        } else {
            self.0.update_rayon(part);
        }
    }

    /// Returns the digest of all parts so far.
    #[must_use]
    pub(crate) fn digest(&self) -> Digest {
        Digest::from(*self.0.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_the_same_however_many_cores_make_it_and_in_whatever_parts_the_bytes_come() {
        let bytes: Vec<u8> = (0..3 * LONG + 7).map(|number| u8::try_from(number * 31 % 251).unwrap()).collect();
        for length in [0, 1, LONG - 1, LONG, LONG + 1, 3 * LONG + 7] {
            let whole = Digest::of(&bytes[..length]);
            assert_eq!(of(&bytes[..length]), whole);
            for part in [1000, LONG - 1, LONG + 1] {
                let mut running = Running::default();
                bytes[..length].chunks(part).for_each(|part| running.add(part));
                assert_eq!(running.digest(), whole, "{length} in parts of {part}");
            }
        }
    }
}

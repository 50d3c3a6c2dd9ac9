//! Bytes on the wire: a big-endian `u32` length, then that many bytes of JSON.
//!
//! It does not know what the JSON means, nor where the bytes come from.

use std::fmt;

use serde::{Serialize, de::DeserializeOwned};

/// The longest body of a frame, in bytes. A length beyond it means that the peer does not speak this protocol.
pub const MAX_FRAME: usize = 64 << 20;

const HEADER: usize = 4;

/// Says why bytes are no frame.
#[derive(Debug)]
pub enum FrameError {
    /// The body is longer than [`MAX_FRAME`].
    TooLong(usize),
    /// The body is not the message that was expected.
    Json(serde_json::Error),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(length) => write!(f, "a frame of {length} bytes is longer than {MAX_FRAME}"),
            Self::Json(error) => write!(f, "a frame does not parse: {error}"),
        }
    }
}

impl std::error::Error for FrameError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::TooLong(_) => None,
            Self::Json(error) => Some(error),
        }
    }
}

/// Encodes a message as one frame, its header included.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    let mut frame = vec![0; HEADER];
    serde_json::to_writer(&mut frame, message).map_err(FrameError::Json)?;
    let length = frame.len() - HEADER;
    let header = u32::try_from(length).ok().filter(|_| length <= MAX_FRAME);
    let header = header.ok_or(FrameError::TooLong(length))?;
    frame[..HEADER].copy_from_slice(&header.to_be_bytes());
    Ok(frame)
}

/// Cuts a stream of bytes into frames, whatever the sizes it arrives in.
#[derive(Debug, Default)]
pub struct FrameReader {
    bytes: Vec<u8>,
    start: usize,
}

impl FrameReader {
    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next whole message, or `None` until more bytes have come.
    pub fn next_message<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        let Some(body) = self.next_body()? else { return Ok(None) };
        serde_json::from_slice(body).map(Some).map_err(FrameError::Json)
    }

    fn next_body(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let rest = &self.bytes[self.start..];
        let Some(header) = rest.first_chunk::<HEADER>() else { return Ok(None) };
        let length = u32::from_be_bytes(*header) as usize;
        if length > MAX_FRAME {
            return Err(FrameError::TooLong(length));
        }
        if rest.len() < HEADER + length {
            return Ok(None);
        }
        let body = self.start + HEADER;
        self.start = body + length;
        Ok(Some(&self.bytes[body..self.start]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_any_cut_of_the_stream() {
        let stream = [encode(&"one").unwrap(), encode(&[1, 2]).unwrap(), encode(&"").unwrap()].concat();
        for size in 1..=stream.len() {
            let mut reader = FrameReader::default();
            let mut seen: Vec<serde_json::Value> = Vec::new();
            for part in stream.chunks(size) {
                reader.push(part);
                while let Some(message) = reader.next_message().unwrap() {
                    seen.push(message);
                }
            }
            assert_eq!(seen, [serde_json::json!("one"), serde_json::json!([1, 2]), serde_json::json!("")]);
        }
    }

    #[test]
    fn an_absurd_length_is_refused_before_its_bytes_arrive() {
        let mut reader = FrameReader::default();
        reader.push(b"HTTP/1.1 400 Bad Request");
        assert!(matches!(reader.next_message::<String>(), Err(FrameError::TooLong(_))));
    }

    #[test]
    fn a_body_that_is_no_message_is_an_error() {
        let mut reader = FrameReader::default();
        reader.push(&[0, 0, 0, 1, b'{']);
        assert!(matches!(reader.next_message::<String>(), Err(FrameError::Json(_))));
    }
}

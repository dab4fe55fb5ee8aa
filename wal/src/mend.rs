//! Finds single flipped bits in a log file. Cutting a log loses everything behind the damage; a single flipped bit can
//! be corrected instead.

use std::ffi::OsStr;

use crate::Sequence;
use crate::file::{self, FILE_HEADER_BYTES, FileHeader};
use crate::flip::Flip;
use crate::frame::{FRAME_HEADER_BYTES, FrameHeader, Position};

const HEADER_BYTES: usize = FILE_HEADER_BYTES as usize;

/// The first bit that must be flipped so that a log file with this name is valid up to other damage or its end. `None`
/// if there is no such bit, or if this is not a log file. A frame that was never complete is not mistaken for one with
/// a flipped bit, except with a probability of bits / 2³².
pub fn flip_of_file(name: &OsStr, bytes: &[u8]) -> Option<Flip> {
    let first_sequence = file::parse_name(name)?;
    let header: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
    let is_header = |header: &[u8; HEADER_BYTES]| {
        let decoded = FileHeader::decode(header);
        decoded.is_ok_and(|(header, _)| header.first_sequence == first_sequence)
    };
    if !is_header(header) {
        return Flip::by_trial(header, is_header);
    }
    let mut offset = HEADER_BYTES;
    loop {
        match frame_end(first_sequence, bytes, offset) {
            Ok(end) => offset = end,
            Err(flip) => return flip,
        }
    }
}

/// The end of the valid frame at the offset. If it is not valid: the bit of the file that must be flipped so that it is,
/// if there is one.
fn frame_end(file_first_sequence: Sequence, bytes: &[u8], offset: usize) -> Result<usize, Option<Flip>> {
    let position = Position(file_first_sequence, offset as u64);
    let (header, rest) = bytes[offset..]
        .split_first_chunk::<FRAME_HEADER_BYTES>()
        .ok_or(None)?;
    let payload = |header: &FrameHeader| rest.get(..header.payload_bytes as usize);
    let Ok(decoded) = FrameHeader::decode(header, position) else {
        let flip = Flip::by_trial(header, |header| {
            let decoded = FrameHeader::decode(header, position).ok();
            let payload = decoded.and_then(|header| Some((header, payload(&header)?)));
            payload.is_some_and(|(header, payload)| header.verify(payload).is_ok())
        });
        return Err(flip.map(|flip| flip.behind(offset)));
    };
    let payload = payload(&decoded).ok_or(None)?;
    if decoded.verify(payload).is_ok() {
        return Ok(offset + FRAME_HEADER_BYTES + payload.len());
    }
    let flip = Flip::by_checksum(payload, decoded.payload_crc).filter(|flip| {
        let mut turned = payload.to_vec();
        flip.turn(&mut turned);
        decoded.verify(&turned).is_ok()
    });
    Err(flip.map(|flip| flip.behind(offset + FRAME_HEADER_BYTES)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Predecessor;
    use crate::frame::{FrameKind, encode};

    fn log_file(first_sequence: Sequence) -> Vec<u8> {
        let header = FileHeader {
            first_sequence,
            predecessor: Predecessor::default(),
        };
        let mut bytes = header.encode().0.to_vec();
        let mut sequence = first_sequence;
        for records in [vec!["one"], vec!["two", "", "three"], vec!["four"]] {
            let position = Position(first_sequence, bytes.len() as u64);
            let mut frame = Vec::new();
            encode(&mut frame, position, FrameKind::Records, sequence, &records);
            bytes.extend_from_slice(&frame);
            sequence += records.len() as u64;
        }
        bytes
    }

    #[test]
    fn every_flipped_bit_of_a_file_is_located() {
        let whole = log_file(9);
        let name = file::name(9);
        assert_eq!(flip_of_file(OsStr::new(&name), &whole), None);
        for bit in 0..whole.len() * 8 {
            let flip = Flip::of_bit(bit);
            let mut damaged = whole.clone();
            flip.turn(&mut damaged);
            assert_eq!(flip_of_file(OsStr::new(&name), &damaged), Some(flip));
            assert_eq!(flip_of_file(OsStr::new("other"), &damaged), None);
        }
    }

    #[test]
    fn a_torn_frame_is_not_mended_as_a_flipped_bit() {
        let whole = log_file(9);
        let name = file::name(9);
        for cut in 0..whole.len() {
            let mut torn = whole.clone();
            torn.truncate(cut);
            assert_eq!(flip_of_file(OsStr::new(&name), &torn), None, "cut at {cut}");
            torn.resize(whole.len() + 100, 0);
            let found = flip_of_file(OsStr::new(&name), &torn);
            let was_there = |flip: Flip| whole[flip.offset] & flip.mask != 0;
            assert!(found.is_none_or(was_there), "cut at {cut}: {found:?}");
        }
    }
}

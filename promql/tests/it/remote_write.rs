//! Remote write 1.0: series as protobuf, packed as snappy without any compression.

use promql::{Labels, Samples};

/// The longest literal of snappy with two bytes of length.
const LITERAL_BYTES_MAX: usize = 65_536;

/// The body of a request with the given series.
pub fn body<'s>(series: impl Iterator<Item = (&'s Labels, Samples<'s>)>) -> Vec<u8> {
    let mut request = Vec::new();
    for (labels, samples) in series {
        let mut message = Vec::new();
        for label in labels.iter() {
            let mut pair = Vec::new();
            field(1, label.name.as_bytes(), &mut pair);
            field(2, label.value.as_bytes(), &mut pair);
            field(1, &pair, &mut message);
        }
        for (time, value) in samples.times.iter().zip(samples.values) {
            // Field 1, eight bytes; field 2, a varint.
            let mut sample = vec![1 << 3 | 1];
            sample.extend_from_slice(&value.to_bits().to_le_bytes());
            sample.push(2 << 3);
            varint(time.cast_unsigned(), &mut sample);
            field(2, &sample, &mut message);
        }
        field(1, &message, &mut request);
    }
    let mut packed = Vec::new();
    varint(request.len() as u64, &mut packed);
    for literal in request.chunks(LITERAL_BYTES_MAX) {
        packed.push(61 << 2);
        packed.extend_from_slice(&u16::try_from(literal.len() - 1).unwrap().to_le_bytes());
        packed.extend_from_slice(literal);
    }
    packed
}

fn field(number: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(number << 3 | 2);
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

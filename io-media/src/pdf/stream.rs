//! What is in a stream of objects or references: inflated within bounds, and without its predictor.

use std::io::Read as _;

use flate2::read::ZlibDecoder;

use super::value::{Filter, Top};
use crate::Refused;

/// The most bytes that the streams of one file may inflate to, together.
const MOST_BYTES: u64 = 64 << 20;
/// The longest row of a predictor.
const MOST_COLUMNS: u64 = 4_096;

/// What may still be inflated.
#[derive(Debug)]
pub(super) struct Budget(u64);

impl Budget {
    pub(super) fn new() -> Self {
        Budget(MOST_BYTES)
    }

    /// The bytes of a stream with this dictionary.
    pub(super) fn decode(&mut self, data: &[u8], top: &Top) -> Result<Vec<u8>, Refused> {
        let mut bytes = match top.filter {
            Filter::None => data.to_vec(),
            Filter::Other => return Err(Refused::Unsupported),
            Filter::Flate => {
                let mut bytes = Vec::new();
                let most = self.0.saturating_add(1);
                let mut read = ZlibDecoder::new(data).take(most);
                read.read_to_end(&mut bytes)
                    .map_err(|_| Refused::Malformed)?;
                bytes
            }
        };
        self.0 = self
            .0
            .checked_sub(bytes.len() as u64)
            .ok_or(Refused::Rejected)?;
        if top.predictor >= 10 && top.filter == Filter::Flate {
            bytes = unpredicted(&bytes, top.columns)?;
        } else if top.predictor > 1 {
            return Err(Refused::Unsupported);
        }
        Ok(bytes)
    }
}

/// Takes back the predictors of PNG, for one byte a pixel, as references have them.
fn unpredicted(bytes: &[u8], columns: u64) -> Result<Vec<u8>, Refused> {
    if columns == 0 || columns > MOST_COLUMNS {
        return Err(Refused::Unsupported);
    }
    let width = usize::try_from(columns).map_err(|_| Refused::Unsupported)?;
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut above = vec![0_u8; width];
    for row in bytes.chunks(width + 1) {
        let Some((filter, row)) = row.split_first() else {
            break;
        };
        let (mut left, mut corner) = (0_u8, 0_u8);
        let mut line = Vec::with_capacity(width);
        for (raw, up) in row.iter().zip(&above) {
            let guess = match filter {
                0 => 0,
                1 => left,
                2 => *up,
                3 => u8::midpoint(left, *up),
                4 => paeth(left, *up, corner),
                _ => return Err(Refused::Malformed),
            };
            left = raw.wrapping_add(guess);
            corner = *up;
            line.push(left);
        }
        line.resize(width, 0);
        out.extend_from_slice(&line);
        above = line;
    }
    Ok(out)
}

fn paeth(left: u8, up: u8, corner: u8) -> u8 {
    let guess = i16::from(left) + i16::from(up) - i16::from(corner);
    let far = |byte: u8| (guess - i16::from(byte)).abs();
    if far(left) <= far(up) && far(left) <= far(corner) {
        left
    } else if far(up) <= far(corner) {
        up
    } else {
        corner
    }
}

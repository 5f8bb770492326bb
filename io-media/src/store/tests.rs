//! The store, and what crafted images come to.

use image::codecs::jpeg::JpegEncoder;
use image::{ImageEncoder, RgbImage};

use super::*;

/// A small picture.
fn picture(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        image::Rgb([x as u8, y as u8, (x * y) as u8])
    })
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut out = Vec::new();
    picture(width, height)
        .write_to(&mut io::Cursor::new(&mut out), image::ImageFormat::Png)
        .unwrap();
    out
}

fn jpeg(exif: Option<Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut out, 90);
    if let Some(exif) = exif {
        encoder.set_exif_metadata(exif).unwrap();
    }
    encoder.encode_image(&picture(40, 20)).unwrap();
    out
}

/// Exif that says: turn it by a quarter.
fn turned() -> Vec<u8> {
    let mut exif = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0".to_vec();
    exif.extend_from_slice(b"GPS 52.5 13.4");
    exif
}

fn judged(bytes: &[u8], format: Format) -> Result<Vec<u8>, Refused> {
    judge(bytes, format, &Limits::default())
}

fn size(bytes: &[u8]) -> (u32, u32) {
    let picture = image::load_from_memory(bytes).unwrap();
    (picture.width(), picture.height())
}

#[test]
fn an_image_keeps_its_pixels_and_nothing_else() {
    // A chunk of text, and a page for a browser behind the end.
    let plain = png(30, 20);
    let (head, tail) = plain.split_at(33);
    let text = b"\0\0\0\x0atEXtComment\0hi\x1b\x1f\x1e\x1d";
    let mut text = text.to_vec();
    let crc = crc(&text[4..18]);
    text.truncate(18);
    text.extend_from_slice(&crc.to_be_bytes());
    let odd = [head, &text, tail, b"<script>alert(1)</script>"].concat();
    let kept = judged(&odd, Format::Png).unwrap();
    let has = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).any(|part| part == what);
    assert!(!has(&kept, b"tEXt") && !has(&kept, b"script"));
    assert_eq!(
        image::load_from_memory(&kept).unwrap().to_rgb8(),
        picture(30, 20)
    );
    // The same picture comes out the same, so that it is kept once.
    assert_eq!(judged(&kept, Format::Png).unwrap(), kept);

    let odd = [jpeg(Some(turned())), b"PK\x03\x04".to_vec()].concat();
    assert!(has(&odd, b"GPS"));
    let kept = judged(&odd, Format::Jpeg).unwrap();
    assert!(!has(&kept, b"GPS") && !has(&kept, b"Exif") && !has(&kept, b"PK\x03\x04"));
    // It stands upright without the word that said so, and is never resized.
    assert_eq!((size(&odd), size(&kept)), ((40, 20), (20, 40)));
    assert_eq!(size(&judged(&jpeg(None), Format::Jpeg).unwrap()), (40, 20));
}

/// The check of a chunk of PNG.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 {
                crc >> 1 ^ 0xedb8_8320
            } else {
                crc >> 1
            }
        })
    };
    !bytes.iter().fold(u32::MAX, step)
}

#[test]
fn ax_s23_crafted_images_are_refused_each_with_its_reason() {
    let (png, jpeg) = (png(30, 20), jpeg(None));
    for (bytes, format, why) in [
        (&png, Format::Jpeg, Refused::Mime),
        (&jpeg, Format::Png, Refused::Mime),
        (&b"GIF89a".to_vec(), Format::Png, Refused::Mime),
        (&b"%PDF-1.4 %%EOF".to_vec(), Format::Png, Refused::Mime),
        (&Vec::new(), Format::Png, Refused::Mime),
        (&png[..8].to_vec(), Format::Png, Refused::Malformed),
        (
            &png[..png.len() / 2].to_vec(),
            Format::Png,
            Refused::Malformed,
        ),
        (&jpeg[..20].to_vec(), Format::Jpeg, Refused::Malformed),
        (
            &jpeg[..jpeg.len() / 2].to_vec(),
            Format::Jpeg,
            Refused::Malformed,
        ),
    ] {
        assert_eq!(
            judged(bytes, format),
            Err(why),
            "{format:?} of {} bytes",
            bytes.len()
        );
    }
    // What it says of its size is judged before a pixel is: a bomb takes no memory.
    let mut wide = png.clone();
    wide[16..24].copy_from_slice(&[0, 0, 0x7f, 0xff, 0, 0, 0x7f, 0xff]);
    let crc = crc(&wide[12..29]);
    wide[29..33].copy_from_slice(&crc.to_be_bytes());
    assert_eq!(judged(&wide, Format::Png), Err(Refused::Rejected));
    let at = jpeg.windows(2).position(|two| two == [0xff, 0xc0]).unwrap();
    let mut wide = jpeg.clone();
    wide[at + 5..at + 9].copy_from_slice(&[0xff, 0xff, 0xff, 0xff]);
    assert_eq!(judged(&wide, Format::Jpeg), Err(Refused::Rejected));
    let few = Limits {
        image_pixels: 599,
        ..Limits::default()
    };
    assert_eq!(judge(&png, Format::Png, &few), Err(Refused::Rejected));
    let short = Limits {
        item_bytes: 100,
        ..Limits::default()
    };
    assert_eq!(judge(&png, Format::Png, &short), Err(Refused::Limit));
}

proptest::proptest! {
    #[test]
    fn l9_changed_bytes_are_judged_and_never_more(
        at in 8_usize..2_000, byte: u8, cut in 0_usize..2_000, pick in 0_usize..2,
    ) {
        let (mut bytes, format) = match pick {
            0 => (png(30, 20), Format::Png),
            _ => (jpeg(Some(turned())), Format::Jpeg),
        };
        let end = bytes.len().saturating_sub(cut % 7);
        bytes.truncate(end);
        let at = at % bytes.len().max(1);
        if let Some(changed) = bytes.get_mut(at) {
            *changed = byte;
        }
        if let Ok(kept) = judged(&bytes, format) {
            proptest::prop_assert!(Format::of_bytes(&kept) == Some(format));
        }
    }
}

fn upload(attachment: &str) -> Upload {
    Upload {
        mime: "image/png".into(),
        attachment: attachment.into(),
        name: "a.png".into(),
        prompt: "p".into(),
    }
}

fn open(folder: &Path) -> Blobs {
    Blobs::open(&Place::Kept(folder.join("s.media")), Limits::default()).unwrap()
}

/// Uploads a picture in two pieces.
fn bring(blobs: &Blobs, id: &str, bytes: &[u8]) -> Result<Kept, Refused> {
    let upload_id = Text::from(id);
    let (one, two) = bytes.split_at(bytes.len() / 2);
    blobs.append(&upload_id, one)?;
    blobs.append(&upload_id, two)?;
    blobs.commit(&upload_id, &hex(&Sha256::digest(bytes)), &upload(id))
}

fn files(folder: &Path) -> usize {
    match fs::read_dir(folder.join("s.media")) {
        Ok(entries) => entries.count(),
        Err(_) => 0,
    }
}

#[test]
fn wire_018_what_is_committed_is_there_for_the_process_that_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let blobs = open(place.path());
    assert_eq!(files(place.path()), 0, "nothing before there is something");
    let kept = bring(&blobs, "a", &png(30, 20)).unwrap();
    assert_eq!(
        &*kept.stored.blob,
        format!("{BLOB}{}", hex(&kept.stored.sha256))
    );
    let same = bring(&blobs, "b", &png(30, 20)).unwrap();
    assert_eq!(same.stored.sha256, kept.stored.sha256);
    // One blob and the log.
    assert_eq!(files(place.path()), 2);
    assert_eq!(
        blobs.read(&kept.stored).unwrap().len() as u64,
        kept.stored.size
    );
    #[cfg(unix)]
    for entry in fs::read_dir(place.path().join("s.media")).unwrap() {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    drop(blobs);
    let blobs = open(place.path());
    assert_eq!(blobs.kept(), [kept.clone(), same]);
    assert!(blobs.has(&kept.stored));
    assert_eq!(
        bring(&blobs, "a", &png(9, 9)),
        Err(Refused::Limit),
        "one id, one attachment"
    );
    // What was kept and isn't that any more isn't sent.
    fs::write(
        place.path().join("s.media").join(hex(&kept.stored.sha256)),
        "x",
    )
    .unwrap();
    assert!(blobs.read(&kept.stored).is_err());
}

#[test]
fn wire_018_an_upload_that_ends_in_any_way_leaves_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    let blobs = open(place.path());
    let id = Text::from("u");
    blobs.append(&id, b"half of it").unwrap();
    blobs.give_up(&id);
    assert_eq!(blobs.commit(&id, "", &upload("u")), Err(Refused::Storage));
    blobs.append(&id, b"no picture").unwrap();
    assert_eq!(blobs.commit(&id, "00", &upload("u")), Err(Refused::Digest));
    let sum = hex(&Sha256::digest(b"no picture"));
    blobs.append(&id, b"no picture").unwrap();
    assert_eq!(blobs.commit(&id, &sum, &upload("u")), Err(Refused::Mime));
    blobs.append(&id, &[0; 4096]).unwrap();
    drop(blobs);
    assert_eq!(files(place.path()), 0);
    // Given up after it was committed, since that came too late: it doesn't come back either.
    let blobs = open(place.path());
    bring(&blobs, "a", &png(30, 20)).unwrap();
    bring(&blobs, "b", &png(30, 20)).unwrap();
    blobs.give_up(&"a".into());
    assert_eq!(files(place.path()), 2, "the other is the same blob");
    blobs.give_up(&"b".into());
    assert_eq!(files(place.path()), 1);
    assert_eq!(
        (blobs.kept().len(), open(place.path()).kept().len()),
        (0, 0)
    );
}

#[test]
fn what_a_crash_leaves_is_cleared_away_and_damage_is_said() {
    let place = tempfile::tempdir().unwrap();
    let kept = bring(&open(place.path()), "a", &png(30, 20)).unwrap();
    let folder = place.path().join("s.media");
    fs::write(folder.join(".tmpAbC"), "half").unwrap();
    fs::write(folder.join("0".repeat(64)), "no record of it").unwrap();
    let log = folder.join(log::NAME);
    let mut bytes = fs::read(&log).unwrap();
    bytes.extend_from_slice(b"{\"id\":\"half");
    fs::write(&log, &bytes).unwrap();
    let blobs = open(place.path());
    assert_eq!(blobs.kept(), [kept]);
    assert_eq!(files(place.path()), 2);
    bring(&blobs, "b", &png(9, 9)).unwrap();
    assert_eq!(open(place.path()).kept().len(), 2);
    fs::write(&log, "{}\n").unwrap();
    let error = Blobs::open(&Place::Kept(folder), Limits::default()).unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
}

#[test]
fn so_many_bytes_and_so_many_attachments() {
    let place = tempfile::tempdir().unwrap();
    let one = judged(&png(30, 20), Format::Png).unwrap().len() as u64;
    let limits = Limits {
        stored_bytes: one + 1,
        items: 2,
        ..Limits::default()
    };
    let blobs = Blobs::open(&Place::Kept(place.path().join("s.media")), limits).unwrap();
    bring(&blobs, "a", &png(30, 20)).unwrap();
    assert_eq!(bring(&blobs, "b", &png(9, 9)), Err(Refused::Limit));
    bring(&blobs, "c", &png(30, 20)).unwrap();
    assert_eq!(bring(&blobs, "d", &png(30, 20)), Err(Refused::Limit));
    let id = Text::from("e");
    let mut refused = Ok(());
    for _ in 0..81 {
        refused = refused.and_then(|()| blobs.append(&id, &[0; 262_144]));
    }
    assert_eq!(refused, Err(Refused::Limit));
}

#[test]
fn a_scratch_folder_goes_with_its_process_and_a_dead_one_s_with_the_next() {
    let place = tempfile::tempdir().unwrap();
    let scratch = |id: &str| Place::Scratch {
        folder: place.path().join("scratch"),
        id: id.to_owned(),
    };
    let one = Blobs::open(&scratch("one"), Limits::default()).unwrap();
    bring(&one, "a", &png(9, 9)).unwrap();
    let dead = place.path().join("scratch/dead");
    fs::create_dir(&dead).unwrap();
    fs::write(dead.join("lock"), "").unwrap();
    fs::write(dead.join("x"), "").unwrap();
    let two = Blobs::open(&scratch("two"), Limits::default()).unwrap();
    assert!(!dead.exists() && place.path().join("scratch/one").exists());
    drop((one, two));
    assert_eq!(
        fs::read_dir(place.path().join("scratch")).unwrap().count(),
        0
    );
}

#[test]
fn a_copy_of_a_session_has_its_attachments_and_they_part_from_then_on() {
    let place = tempfile::tempdir().unwrap();
    let blobs = open(place.path());
    bring(&blobs, "a", &png(30, 20)).unwrap();
    let other = place.path().join("t.media");
    Blobs::copy(&place.path().join("s.media"), &other).unwrap();
    let copy = Blobs::open(&Place::Kept(other), Limits::default()).unwrap();
    bring(&copy, "b", &png(9, 9)).unwrap();
    assert_eq!((blobs.kept().len(), copy.kept().len()), (1, 2));
    assert_eq!(open(place.path()).kept().len(), 1);
    // There need not be any.
    Blobs::copy(&place.path().join("none"), &place.path().join("u.media")).unwrap();
}

//! PDFs that are made here, good and bad.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::*;

/// A PDF of these objects, numbered from 1, with a table of references.
pub(crate) fn pdf(objects: &[&str]) -> Vec<u8> {
    let mut out = String::from("%PDF-1.4\n%\u{e2}\u{e3}\n");
    let mut places = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        places.push(out.len());
        let _ = write!(out, "{} 0 obj\n{object}\nendobj\n", number + 1);
    }
    let start = out.len();
    let _ = write!(out, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for place in places {
        let _ = writeln!(out, "{place:010} 00000 n ");
    }
    let size = objects.len() + 1;
    let _ = write!(
        out,
        "trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    );
    out.into_bytes()
}

const CATALOG: &str = "<< /Type /Catalog /Pages 2 0 R >>";
const PAGES: &str = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>";
const PAGE: &str = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200.5 -200] /Contents 4 0 R >>";
const CONTENT: &str = "<< /Length 7 >>\nstream\n0 0 m S\nendstream";

fn judged(bytes: &[u8]) -> Result<(), Refused> {
    check(bytes, &Limits::default())
}

/// The good one, with one object changed.
fn with(at: usize, object: &str) -> Result<(), Refused> {
    let mut objects = [CATALOG, PAGES, PAGE, CONTENT];
    objects[at] = object;
    judged(&pdf(&objects))
}

#[test]
fn a_page_is_taken_and_stays_as_it_is() {
    let good = pdf(&[CATALOG, PAGES, PAGE, CONTENT]);
    assert_eq!(judged(&good), Ok(()));
    let kept = crate::judge(&good, crate::Format::Pdf, &Limits::default());
    assert_eq!(kept.as_deref(), Ok(&*good));
    // Strings, names and comments in all their spellings.
    let odd = "<< /A#42 (a (b) \\) c) /B <48 65> % so\n/C [true null 1.5 6 0 R] /D << >> /Type /Catalog /Pages 2 0 R >>";
    assert_eq!(with(0, odd), Ok(()));
}

#[test]
fn whatever_could_do_more_than_be_looked_at_is_unsupported() {
    for more in [
        "/OpenAction << /S /JavaScript /JS (app.alert(1)) >>",
        "/OpenAction << /S /J#61vaScript >>",
        "/OpenAction << /S /Launch /F (cmd.exe) >>",
        "/Names << /EmbeddedFiles 9 0 R >>",
        "/AcroForm << /XFA 9 0 R >>",
        "/AA << /O << /S /SubmitForm >> >>",
    ] {
        let catalog = format!("<< /Type /Catalog /Pages 2 0 R {more} >>");
        assert_eq!(with(0, &catalog), Err(Refused::Unsupported), "{more}");
    }
    // A place to begin at and a link are no more than that.
    let begins = "<< /Type /Catalog /Pages 2 0 R /OpenAction [3 0 R /Fit] >>";
    assert_eq!(with(0, begins), Ok(()));
    let good = pdf(&[CATALOG, PAGES, PAGE, CONTENT]);
    let locked = replaced(&good, "/Root 1 0 R", "/Encrypt 4 0 R /Root 1 0 R");
    assert_eq!(judged(&locked), Err(Refused::Unsupported));
    assert_eq!(
        judged(&replaced(&good, "%PDF-1.4", "%PDF-3.1")),
        Err(Refused::Unsupported)
    );
}

fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let at = memmem::find(bytes, from.as_bytes()).unwrap();
    [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat()
}

#[test]
fn what_is_broken_is_malformed() {
    let good = pdf(&[CATALOG, PAGES, PAGE, CONTENT]);
    // Cut off anywhere it is no PDF any more, and nothing panics.
    let end = good.len() - 2;
    for cut in 0..end {
        assert!(judged(&good[..cut]).is_err(), "{cut}");
    }
    for (from, to) in [
        ("startxref\n", "startxref\n1"),
        ("/Root 1 0 R", "/Info 1 0 R"),
        ("/Catalog", "/Katalog"),
        ("/Type /Page ", "/Type /Blob "),
        ("1 0 obj", "1 0 abj"),
        ("3 0 obj", "7 0 obj"),
        ("xref\n0 5", "xref\n0 6"),
        ("xref\n0 5", "xref\n1 5"),
        ("%%EOF", "%%EOF\nPK\u{3}\u{4}"),
        ("endstream", "endstrem"),
        ("[0 0 200.5 -200]", "[0 0 200.5 -200"),
        ("/MediaBox [", "/MediaBox {"),
        ("/Parent 2 0 R", "/Parent 2 0"),
        ("/Parent 2 0 R", "/Parent"),
    ] {
        assert_eq!(
            judged(&replaced(&good, from, to)),
            Err(Refused::Malformed),
            "{from} {to}"
        );
    }
    let deep = format!("<< /Type /Catalog /A {} >>", "[".repeat(100_000));
    assert_eq!(with(0, &deep), Err(Refused::Malformed));
    assert_eq!(judged(b"%PDF-1.4"), Err(Refused::Malformed));
}

#[test]
fn a_reference_into_the_middle_of_something_else_is_malformed() {
    // A reader that follows the table would find code within the drawing.
    let hidden = "<< /Length 60 >>\nstream\n9 0 obj << /S /JavaScript /JS (app.alert(1)) >> endobj      \nendstream";
    let file = pdf(&[CATALOG, PAGES, PAGE, hidden]);
    assert_eq!(judged(&file), Ok(()));
    let place = memmem::find(&file, b"9 0 obj").unwrap();
    let entry = memmem::find(&file, b"4 0 obj").unwrap();
    let moved = replaced(
        &file,
        &format!("{entry:010} 00000 n"),
        &format!("{place:010} 00000 n"),
    );
    assert_eq!(judged(&moved), Err(Refused::Malformed));
}

#[test]
fn so_many_pages_and_no_more() {
    let pages = |count: usize, said: usize| {
        let kids: String = (0..count).map(|n| format!("{} 0 R ", n + 3)).collect();
        let tree = format!("<< /Type /Pages /Kids [{kids}] /Count {said} >>");
        let mut objects = vec![CATALOG, &tree];
        objects.extend(std::iter::repeat_n(
            "<< /Type /Page /Parent 2 0 R >>",
            count,
        ));
        judged(&pdf(&objects))
    };
    assert_eq!(pages(100, 100), Ok(()));
    assert_eq!(pages(101, 101), Err(Refused::Rejected));
    assert_eq!(pages(1, 101), Err(Refused::Rejected));
    // One page, shown again and again.
    let again = format!(
        "<< /Type /Pages /Kids [{}] /Count 1 >>",
        "3 0 R ".repeat(101)
    );
    assert_eq!(with(1, &again), Err(Refused::Rejected));
    // Numbers without end, in no more than the file's own size.
    let many = format!("<< /Type /Page /A [{}] >>", "0 ".repeat(1 << 20));
    assert_eq!(with(2, &many), Ok(()));
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A PDF whose objects lie in a stream, as most are today.
fn packed(inner: &[u8], header: &str, first: usize, count: usize) -> Vec<u8> {
    let mut out = b"%PDF-1.5\n".to_vec();
    let objects = out.len();
    let data = deflated(&[header.as_bytes(), inner].concat());
    let _ = write!(
        out,
        "4 0 obj\n<< /Type /ObjStm /N {count} /First {first} /Filter /FlateDecode /Length {} >>\nstream\n",
        data.len()
    );
    out.extend_from_slice(&data);
    out.extend_from_slice(b"\nendstream\nendobj\n");
    let start = out.len();
    let (four, five) = (objects as u16, start as u16);
    let mut rows = Vec::new();
    let mut above = [0_u8; 4];
    for row in [
        [0, 0, 0, 0],
        [2, 0, 4, 0],
        [2, 0, 4, 1],
        [2, 0, 4, 2],
        [1, (four >> 8) as u8, four as u8, 0],
        [1, (five >> 8) as u8, five as u8, 0],
    ] {
        rows.push(2);
        rows.extend(
            row.iter()
                .zip(above)
                .map(|(byte, up): (&u8, u8)| byte.wrapping_sub(up)),
        );
        above = row;
    }
    let data = deflated(&rows);
    let _ = write!(
        out,
        "5 0 obj\n<< /Type /XRef /Size 6 /W [1 2 1] /Root 1 0 R /Filter [/FlateDecode] /DecodeParms << /Predictor 12 /Columns 4 >> /Length {} >>\nstream\n",
        data.len()
    );
    out.extend_from_slice(&data);
    let _ = write!(out, "\nendstream\nendobj\nstartxref\n{start}\n%%EOF");
    out
}

#[test]
fn objects_in_streams_are_looked_at_too() {
    let inner = format!("{CATALOG} {PAGES} << /Type /Page /Parent 2 0 R >>");
    let second = CATALOG.len() + 1;
    let third = second + PAGES.len() + 1;
    let header = format!("1 0 2 {second} 3 {third} ");
    let file = packed(inner.as_bytes(), &header, header.len(), 3);
    assert_eq!(judged(&file), Ok(()));
    let code = inner.replace("/Parent", "/JS (x) /Parent");
    let file = packed(code.as_bytes(), &header, header.len(), 3);
    assert_eq!(judged(&file), Err(Refused::Unsupported));
    // One that begins within a string of another.
    let off = format!("1 0 2 {second} 3 {} ", third + 3);
    let file = packed(inner.as_bytes(), &off, off.len(), 3);
    assert_eq!(judged(&file), Err(Refused::Malformed));
}

#[test]
fn a_bomb_is_rejected_before_it_is_large() {
    let zeros = vec![b' '; 65 << 20];
    let inner = [b"<< /Type /Catalog >> ".as_slice(), &zeros].concat();
    let file = packed(&inner, "1 0 ", 4, 1);
    assert!(file.len() < 200_000);
    assert_eq!(judged(&file), Err(Refused::Rejected));
}

proptest::proptest! {
    #[test]
    fn l9_any_bytes_in_any_place_are_judged(
        changes in proptest::collection::vec((0_usize..2_000, proptest::prelude::any::<u8>()), 1..6),
        cut in 0_usize..4, is_packed: bool,
    ) {
        let inner = format!("{CATALOG} {PAGES} << /Type /Page /Parent 2 0 R >>");
        let second = CATALOG.len() + 1;
        let header = format!("1 0 2 {second} 3 {} ", second + PAGES.len() + 1);
        let mut file = if is_packed {
            packed(inner.as_bytes(), &header, header.len(), 3)
        } else {
            pdf(&[CATALOG, PAGES, PAGE, CONTENT])
        };
        for (at, byte) in changes {
            let at = at % file.len();
            file[at] = byte;
        }
        file.truncate(file.len() - cut);
        // Whatever it is found to be: it ends, and nothing panics.
        let _ = judged(&file);
        let _ = judged(&[b"%PDF-1.4\n", &*file, b"\n%%EOF"].concat());
    }
}

//! The text of a file, or of standard input.

use std::io::Read;
use std::path::Path;

use crate::problem::{Code, Problems, TextPosition};
use crate::yaml::LONGEST_FILE;

/// The file name that stands for standard input. Relative paths in its text begin in the current
/// directory.
const STANDARD_INPUT: &str = "-";

/// The text of a file; reports a file that cannot be read. Reads no more than the limit, even from
/// a file without a size.
pub(crate) fn file_text(
    path: &Path,
    file: TextPosition,
    problems: &mut Problems,
) -> Option<String> {
    let what = "the file cannot be read";
    let mut bytes = Vec::new();
    let longest = LONGEST_FILE as u64 + 1;
    let read = match path == Path::new(STANDARD_INPUT) {
        true => std::io::stdin().take(longest).read_to_end(&mut bytes),
        false => std::fs::File::open(path).and_then(|file| {
            if file.metadata()?.is_dir() {
                return Err(std::io::Error::other("it is a directory"));
            }
            file.take(longest).read_to_end(&mut bytes)
        }),
    };
    match read {
        Err(error) => problems.error(file, Code::File, what, error.to_string()),
        Ok(length) if length > LONGEST_FILE => {
            let why = format!("it has more than {LONGEST_FILE} bytes");
            problems.error(file, Code::Limit, what, why);
        }
        Ok(_) => match String::from_utf8(bytes) {
            Ok(text) => return Some(text),
            Err(error) => {
                let place = error.utf8_error().valid_up_to();
                let why = format!("it is not UTF-8 text; byte {place} is the first that is not");
                problems.error(file, Code::File, what, why);
            }
        },
    }
    None
}

//! NumPy's `.npy`: an array, or an array whose first axis is time.
//!
//! The format, versions 1 to 3: `\x93NUMPY`, a byte each of major and minor version, the length of
//! the header (u16, from version 2 on u32), the header, and the elements. The header is a Python
//! dict such as `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`, padded with spaces
//! and ended by a newline.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use titin_runtime::{Dtype, Layout, StorageOrder};

use super::output::{Output, replace};
use super::times::{self, Times, TimesWriter};
use super::{FileRecord, MessageWriter, NextTimestamp, RecordPosition, RecordReader};
use crate::array_joining;
use crate::data::{MessageMeta, Value, View, describe};
use crate::error::OnFile;
use crate::{Error, Result};

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The longest header that is read; NumPy's own limit is of the same size.
const LONGEST: usize = 64 << 10;

/// The contents of a header.
#[derive(Debug, Clone, PartialEq)]
struct NpyHeader {
    layout: Layout,
    /// Whether numbers are stored with the most significant byte first.
    big_endian: bool,
}

/// Reads a single array, or the steps of an array.
pub(super) struct NpyReader {
    path: PathBuf,
    header: NpyHeader,
    /// Layout of a record.
    record: Layout,
    steps: u64,
    step: u64,
    times: Option<Vec<Times>>,
    body: NpyBody,
}

enum NpyBody {
    /// Records follow each other.
    Stream(BufReader<File>),
    /// Records of a file in Fortran order lie scattered over the whole file.
    Scattered(Vec<u8>),
}

impl NpyReader {
    pub(super) fn open(path: &Path, time_axis: Option<bool>) -> Result<Self> {
        let file = File::open(path).on_file(path, "open")?;
        let size = file.metadata().on_file(path, "look at")?.len();
        let mut stream = BufReader::with_capacity(1 << 16, file);
        let (header, begin) = read_header(&mut stream).map_err(|why| Error::file(path, why))?;
        let spare = spare_bytes(path, &header.layout, size - begin)?;
        let times = times::read(path)?;
        let unfinished = spare > 0 && header.layout.bytes() == Some(spare);
        let time_axis = time_axis.unwrap_or_else(|| has_time_axis(times.as_deref(), unfinished));
        let (record, steps) = record_of(path, &header.layout, time_axis)?;
        let times = times.map(|times| times_of_steps(path, times, steps, spare > 0));
        Ok(NpyReader {
            path: path.to_owned(),
            times: times.transpose()?,
            body: NpyBody::of(path, stream, &header.layout, &record, steps)?,
            header,
            record,
            steps,
            step: 0,
        })
    }
}

impl NpyBody {
    /// The elements behind a header.
    fn of(
        path: &Path,
        mut stream: BufReader<File>,
        whole: &Layout,
        record: &Layout,
        steps: u64,
    ) -> Result<Self> {
        let is_scattered = whole.order == StorageOrder::Fortran
            && steps > 1
            && record.shape.iter().any(|extent| *extent > 1);
        if !is_scattered {
            return Ok(NpyBody::Stream(stream));
        }
        let mut bytes = vec![0; whole.bytes().unwrap_or_default() as usize];
        stream.read_exact(&mut bytes).on_file(path, "read")?;
        Ok(NpyBody::Scattered(bytes))
    }

    /// Reads the elements of a record into `elements`.
    fn read(&mut self, step: u64, steps: u64, size: usize, elements: &mut [u8]) -> io::Result<()> {
        match self {
            NpyBody::Stream(stream) => stream.read_exact(elements),
            NpyBody::Scattered(bytes) => {
                let first = step as usize * size;
                let gather = bytes[first..].chunks(steps as usize * size);
                for (to, from) in elements.chunks_exact_mut(size).zip(gather) {
                    to.copy_from_slice(&from[..size]);
                }
                Ok(())
            }
        }
    }
}

/// Whether the first axis of an array is time, by the times beside the array. A single time belongs
/// to a single array, which has no axis for time. `unfinished` says whether a stopped writer has
/// left a second array, perhaps with a time.
fn has_time_axis(times: Option<&[Times]>, unfinished: bool) -> bool {
    match times.map(<[_]>::len) {
        None | Some(1) => false,
        Some(2) => !unfinished,
        Some(_) => true,
    }
}

/// The number of bytes behind the elements that the header counts. A stopped writer may have left
/// elements, and then a time, that the header does not count yet. `size` is the size of the file
/// without the header.
fn spare_bytes(path: &Path, layout: &Layout, size: u64) -> Result<u64> {
    let spare = layout.bytes().and_then(|bytes| size.checked_sub(bytes));
    spare.ok_or_else(|| {
        let why = format!(
            "it ends early: {size} bytes of elements, its header says {} with shape {:?}",
            layout.dtype.name(),
            layout.shape
        );
        Error::file(path, why)
    })
}

/// The layout of a record, and the number of records.
fn record_of(path: &Path, layout: &Layout, time_axis: bool) -> Result<(Layout, u64)> {
    let mut record = layout.clone();
    if !time_axis {
        return Ok((record, 1));
    }
    if record.shape.is_empty() {
        let why = "it holds a single value, so no axis of it can be time";
        return Err(Error::file(path, why));
    }
    let steps = record.shape.remove(0);
    Ok((record, steps))
}

/// The times of the records. `unfinished` says whether a stopped writer may have left a time for
/// elements that the header does not count.
fn times_of_steps(
    path: &Path,
    mut times: Vec<Times>,
    steps: u64,
    unfinished: bool,
) -> Result<Vec<Times>> {
    if unfinished && times.len() as u64 == steps + 1 {
        times.pop();
    }
    if times.len() as u64 == steps {
        return Ok(times);
    }
    let why = format!(
        "it has {} times, but {} has {steps} steps",
        times.len(),
        path.display()
    );
    Err(Error::file(&times::beside(path), why))
}

impl RecordReader for NpyReader {
    fn next(&mut self) -> Result<Option<FileRecord>> {
        if self.step == self.steps {
            return Ok(None);
        }
        let step = self.step;
        let size = self.record.dtype.size();
        let mut elements = vec![0; self.record.bytes().unwrap_or_default() as usize];
        let read = self.body.read(step, self.steps, size, &mut elements);
        read.on_file(&self.path, "read")?;
        if self.header.big_endian {
            swap(self.record.dtype, &mut elements);
        }
        self.step += 1;
        let time = self.times.as_ref().map(|times| times[step as usize]);
        Ok(Some(FileRecord {
            value: Value::Array(self.record.clone(), elements),
            timestamp: time.map(|(time, _)| time),
            next: time.map_or(NextTimestamp::Follows, |(_, next)| {
                NextTimestamp::Known(next)
            }),
            settings: None,
            place: RecordPosition::Step(step),
        }))
    }
}

/// Writes a single array, or arrays of the same shape along a first axis. The times go to a file
/// beside the array's file.
///
/// However the writer is stopped, a reader finds all messages before. The writer writes the
/// elements first, then the times. The header counts the messages; the writer writes the header
/// last, and at once.
pub(super) struct NpyWriter {
    file: Output,
    times: TimesWriter,
    /// Layout of a message, known from the first message on.
    record: Option<Layout>,
    steps: u64,
    /// Where elements begin, and the length of all elements in bytes.
    begin: u64,
    length: u64,
}

impl NpyWriter {
    pub(super) fn new(path: &Path) -> Self {
        let (file, times) = (Output::new(path), TimesWriter::beside(path));
        NpyWriter {
            file,
            times,
            record: None,
            steps: 0,
            begin: 0,
            length: 0,
        }
    }

    /// Checks that a message has the element type and the shape of the messages before.
    fn check(&self, layout: &Layout, value: &View<'_>, time: f64) -> Result<()> {
        let Some(record) = &self.record else {
            return Ok(());
        };
        if (record.dtype, &record.shape) == (layout.dtype, &layout.shape) {
            return Ok(());
        }
        let why = format!(
            "message {} at time {time:?} is {}; those before were {} with shape {:?}. For a file per message put `{{step}}` \
             into its name",
            self.steps,
            describe(value),
            record.dtype.name(),
            record.shape
        );
        Err(Error::file(self.file.path(), why))
    }

    /// The layout of the whole array with a further message.
    fn grown(&self, layout: &Layout) -> Layout {
        let mut whole = layout.clone();
        if self.steps > 0 {
            whole.order = StorageOrder::C;
            whole.shape.insert(0, self.steps + 1);
        }
        whole
    }

    /// With the second message, the array gets a first axis that counts messages. In Fortran order,
    /// the array could not grow along the first axis. So the first message is turned round.
    fn turn(&mut self, record: Layout, header: &[u8], second: &[u8]) -> Result<()> {
        let mut first = vec![0; self.length as usize];
        self.file.read(&mut first, self.begin)?;
        let turned = array_joining::reorder(&record, &first, StorageOrder::C);
        self.file.replace(&[header, &turned, second])?;
        let order = StorageOrder::C;
        self.record = Some(Layout { order, ..record });
        Ok(())
    }
}

impl MessageWriter for NpyWriter {
    fn write(&mut self, value: &View<'_>, meta: &MessageMeta) -> Result<()> {
        let (layout, elements) = array_of(self.file.path(), value)?;
        self.check(layout, value, meta.timestamp)?;
        let whole = self.grown(layout);
        let header = write_header(&whole, room_to_grow(layout));
        if self.steps == 0 {
            self.begin = header.len() as u64;
            self.record = Some(layout.clone());
        }
        let elements = array_joining::reorder(layout, elements, whole.order);
        self.file.put(&elements, self.begin + self.length)?;
        self.times.write(meta.timestamp, meta.next)?;
        let is_second = self.steps == 1;
        let to_turn = |record: &mut Layout| is_second && record.order == StorageOrder::Fortran;
        match self.record.take_if(to_turn) {
            Some(record) => self.turn(record, &header, &elements)?,
            None => self.file.put(&header, 0)?,
        }
        self.length += elements.len() as u64;
        self.steps += 1;
        Ok(())
    }

    fn pause(&mut self) {
        self.file.pause();
        self.times.pause();
    }
}

/// Writes a single array to a file of its own.
pub(crate) fn write(path: &Path, value: &View<'_>) -> Result<()> {
    let (layout, elements) = array_of(path, value)?;
    replace(path, &[&write_header(layout, 0), elements])?;
    Ok(())
}

/// The array to write to the file.
pub(crate) fn array_of<'a>(path: &Path, value: &'a View<'_>) -> Result<(&'a Layout, &'a [u8])> {
    match value {
        View::Array(layout, elements) => Ok((layout, elements)),
        other => {
            let why = format!(
                "a .npy file holds arrays, and the message is {}; a .jsonl file can keep it",
                describe(other)
            );
            Err(Error::file(path, why))
        }
    }
}

/// Why a header cannot be read, in words that follow the name of the file.
#[derive(Debug, thiserror::Error)]
enum HeaderError {
    #[error("it is no .npy file: it ends within its header")]
    Short,
    #[error("cannot read it: {0}")]
    System(io::Error),
    #[error("it is no .npy file: it does not begin with \"\\x93NUMPY\"")]
    NoMagic,
    #[error("it is of version {0} of the format; versions 1 to 3 are read")]
    Version(u8),
    #[error("its header of {0} bytes is too long")]
    Long(usize),
    #[error("its header is not UTF-8")]
    NotUtf8,
    #[error("its header cannot be read: {what}, in {header}")]
    Wrong { what: String, header: String },
    #[error(
        "it holds records with named fields, which no message can carry; save one array a field"
    )]
    Records,
    #[error(
        "its elements are of type '{0}', which no message can carry; convert them with `astype` before saving"
    )]
    Elements(String),
}

impl From<io::Error> for HeaderError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => HeaderError::Short,
            _ => HeaderError::System(error),
        }
    }
}

/// Reads the header. Returns the header, and where the elements begin.
fn read_header(stream: &mut impl Read) -> Result<(NpyHeader, u64), HeaderError> {
    let mut start = [0; 8];
    stream.read_exact(&mut start)?;
    if &start[..6] != MAGIC {
        return Err(HeaderError::NoMagic);
    }
    let mut length = [0; 4];
    let digits = match start[6] {
        1 => 2,
        2 | 3 => 4,
        version => return Err(HeaderError::Version(version)),
    };
    stream.read_exact(&mut length[..digits])?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST {
        return Err(HeaderError::Long(length));
    }
    let mut text = vec![0; length];
    stream.read_exact(&mut text)?;
    let text = String::from_utf8(text).map_err(|_| HeaderError::NotUtf8)?;
    Ok((parse_header(&text)?, (8 + digits + length) as u64))
}

/// Reads the dict.
fn parse_header(text: &str) -> Result<NpyHeader, HeaderError> {
    let dict = HeaderDict(text);
    let (dtype, big_endian) = dict.element_type()?;
    let layout = Layout::new(dtype, dict.order()?, dict.shape()?);
    match layout.bytes() {
        Some(_) => Ok(NpyHeader { layout, big_endian }),
        None => Err(dict.wrong("'shape' is beyond 64 bits")),
    }
}

/// The dict of a header. The three entries come in any order; values hold no braces, and quotes
/// only around text.
struct HeaderDict<'a>(&'a str);

impl<'a> HeaderDict<'a> {
    fn wrong(&self, what: &str) -> HeaderError {
        HeaderError::Wrong {
            what: what.to_owned(),
            header: self.0.trim().to_owned(),
        }
    }

    /// The text from the value of an entry on.
    fn value(&self, key: &str) -> Result<&'a str, HeaderError> {
        let quoted = [format!("'{key}'"), format!("\"{key}\"")];
        let mut quoted = quoted.iter();
        let entry = quoted.find_map(|quoted| self.0.split_once(quoted.as_str()));
        let value = entry.and_then(|(_, rest)| rest.trim_start().strip_prefix(':'));
        let value = value.map(str::trim_start);
        value.ok_or_else(|| self.wrong(&format!("there is no '{key}'")))
    }

    /// The element type, and whether numbers are stored with the most significant byte first.
    fn element_type(&self) -> Result<(Dtype, bool), HeaderError> {
        let value = self.value("descr")?;
        let quote = value.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let descr = quote.and_then(|quote| value[1..].split_once(quote));
        let (descr, _) = descr.ok_or(HeaderError::Records)?;
        dtype_of(descr).ok_or_else(|| HeaderError::Elements(descr.to_owned()))
    }

    fn order(&self) -> Result<StorageOrder, HeaderError> {
        match self.value("fortran_order")? {
            value if value.starts_with("True") => Ok(StorageOrder::Fortran),
            value if value.starts_with("False") => Ok(StorageOrder::C),
            _ => Err(self.wrong("'fortran_order' is neither True nor False")),
        }
    }

    fn shape(&self) -> Result<Vec<u64>, HeaderError> {
        let tuple = self.value("shape")?.strip_prefix('(');
        let tuple = tuple.and_then(|shape| shape.split_once(')'));
        let (extents, _) = tuple.ok_or_else(|| self.wrong("'shape' is no tuple"))?;
        let extents = extents.split(',');
        let extents = extents
            .map(|extent| extent.trim().trim_end_matches('L'))
            .filter(|extent| !extent.is_empty());
        let shape: Option<Vec<u64>> = extents.map(|extent| extent.parse().ok()).collect();
        shape.ok_or_else(|| self.wrong("'shape' holds what is no number"))
    }
}

fn dtype_of(descr: &str) -> Option<(Dtype, bool)> {
    let code = descr.trim_start_matches(['<', '>', '|', '=']);
    let dtype = Dtype::ALL
        .into_iter()
        .find(|dtype| dtype.names().npy == code)?;
    Some((dtype, descr.starts_with('>')))
}

/// The bytes before the elements; the dict takes `room` bytes at least.
fn write_header(layout: &Layout, room: usize) -> Vec<u8> {
    let dict = dict(layout);
    let fixed = MAGIC.len() + 4;
    let length = (fixed + dict.len().max(room) + 1).next_multiple_of(64) - fixed;
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&[1, 0]);
    header.extend_from_slice(&(length as u16).to_le_bytes());
    header.extend_from_slice(dict.as_bytes());
    header.resize(fixed + length - 1, b' ');
    header.push(b'\n');
    header
}

fn dict(layout: &Layout) -> String {
    let code = layout.dtype.names().npy;
    let mark = if layout.dtype.size() == 1 { '|' } else { '<' };
    let extents: Vec<String> = layout.shape.iter().map(u64::to_string).collect();
    let shape = extents.join(", ") + if extents.len() == 1 { "," } else { "" };
    let order = if layout.order == StorageOrder::Fortran {
        "True"
    } else {
        "False"
    };
    format!("{{'descr': '{mark}{code}', 'fortran_order': {order}, 'shape': ({shape}), }}")
}

/// The most bytes of a dict whose arrays are counted along a first axis.
fn room_to_grow(record: &Layout) -> usize {
    let shape = [&[u64::MAX], record.shape.as_slice()].concat();
    dict(&Layout::new(record.dtype, StorageOrder::C, shape)).len()
}

/// Turns the bytes of each number round.
fn swap(dtype: Dtype, elements: &mut [u8]) {
    let number = dtype.component().size();
    elements.chunks_exact_mut(number).for_each(<[u8]>::reverse);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn numbers(shape: &[u64], order: StorageOrder) -> (Layout, Vec<u8>) {
        let layout = Layout::new(Dtype::Float64, order, shape);
        let count = layout.elements().unwrap();
        (
            layout,
            (0..count).flat_map(|n| (n as f64).to_le_bytes()).collect(),
        )
    }

    fn all(path: &Path, time_axis: Option<bool>) -> Vec<FileRecord> {
        let mut reader = NpyReader::open(path, time_axis).unwrap();
        std::iter::from_fn(|| reader.next().unwrap()).collect()
    }

    fn meta(timestamp: f64, next: Option<f64>) -> MessageMeta {
        MessageMeta {
            timestamp,
            next,
            settings: None,
        }
    }

    #[test]
    fn a_header_of_numpy_is_read_and_numbers_turned() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        // As NumPy 2.4 writes `np.array([[1, 2]], dtype='>i2')`.
        let dict = "{'descr': '>i2', 'fortran_order': False, 'shape': (1, 2), }";
        let header = format!("{dict:<117}\n");
        let bytes = [b"\x93NUMPY\x01\x00v\x00", header.as_bytes(), &[0, 1, 0, 2]].concat();
        assert_eq!(bytes.len(), 128 + 4);
        fs::write(&path, &bytes).unwrap();
        let records = all(&path, None);
        let Value::Array(layout, elements) = &records[0].value else {
            panic!("no array")
        };
        assert_eq!(
            (layout.dtype, layout.shape.as_slice()),
            (Dtype::Int16, &[1, 2][..])
        );
        assert_eq!(elements[..], [1, 0, 2, 0]);
    }

    #[test]
    fn both_parts_of_a_complex_number_are_turned() {
        let mut elements = [1, 2, 3, 4, 5, 6, 7, 8];
        swap(Dtype::Complex64, &mut elements);
        assert_eq!(elements, [4, 3, 2, 1, 8, 7, 6, 5]);
    }

    #[test]
    fn a_header_has_room_for_its_dict_and_the_end_of_the_line() {
        let (layout, _) = numbers(&[2], StorageOrder::C);
        for room in 0..200 {
            let header = write_header(&layout, room);
            let needed = MAGIC.len() + 4 + dict(&layout).len().max(room) + 1;
            assert!(
                header.len().is_multiple_of(64) && (needed..needed + 64).contains(&header.len()),
                "{room}"
            );
            assert_eq!(header.last(), Some(&b'\n'));
        }
    }

    #[test]
    fn one_message_is_kept_as_it_is() {
        for order in [StorageOrder::C, StorageOrder::Fortran] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.npy");
            let (layout, bytes) = numbers(&[2, 3], order);
            let mut writer = NpyWriter::new(&path);
            writer
                .write(&View::Array(layout.clone(), &bytes), &meta(1.5, None))
                .unwrap();
            let records = all(&path, None);
            assert_eq!(records.len(), 1);
            assert_eq!(records[0].value, Value::Array(layout, bytes));
            assert_eq!(
                (records[0].timestamp, records[0].next),
                (Some(1.5), NextTimestamp::Known(None))
            );
        }
    }

    #[test]
    fn several_messages_get_an_axis_and_keep_their_times() {
        for order in [StorageOrder::C, StorageOrder::Fortran] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.npy");
            let (layout, bytes) = numbers(&[2, 3], order);
            let mut writer = NpyWriter::new(&path);
            for step in 0..3 {
                let next = Some(step as f64 + 1.1).filter(|_| step < 2);
                writer
                    .write(
                        &View::Array(layout.clone(), &bytes),
                        &meta(step as f64 + 0.1, next),
                    )
                    .unwrap();
                assert_eq!(
                    all(&path, None).len(),
                    step + 1,
                    "a whole file after every message"
                );
            }
            let (header, begin) = read_header(&mut File::open(&path).unwrap()).unwrap();
            assert_eq!(
                (header.layout.shape.as_slice(), header.layout.order),
                (&[3, 2, 3][..], StorageOrder::C)
            );
            assert_eq!(begin % 64, 0);
            let records = all(&path, None);
            let Value::Array(back, elements) = &records[2].value else {
                panic!("no array")
            };
            assert_eq!(
                elements[..],
                array_joining::reorder(&layout, &bytes, StorageOrder::C)[..]
            );
            assert_eq!(back.shape[..], [2, 3]);
            assert_eq!(
                (records[1].timestamp, records[1].next),
                (Some(1.1), NextTimestamp::Known(Some(2.1)))
            );
            assert_eq!(records[2].next, NextTimestamp::Known(None));
        }
    }

    /// Between the times and the header: all that is new is there, but the header does not say so.
    #[test]
    fn a_writer_that_is_stopped_leaves_the_messages_before() {
        for order in [StorageOrder::C, StorageOrder::Fortran] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.npy");
            // As many rows as there will be times, so that the first axis of one message might be
            // received for time.
            let (layout, bytes) = numbers(&[2, 3], order);
            let mut writer = NpyWriter::new(&path);
            let mut write = |step: usize| {
                writer
                    .write(
                        &View::Array(layout.clone(), &bytes),
                        &meta(step as f64, None),
                    )
                    .unwrap();
            };
            write(0);
            for step in 1..4 {
                let before = (fs::read(&path).unwrap(), all(&path, None));
                write(step);
                let after = (
                    fs::read(&path).unwrap(),
                    fs::read(times::beside(&path)).unwrap(),
                );
                let begin = before.0.len() - step * 48;
                for written in [1, 47, 48] {
                    let new = &after.0[after.0.len() - 48..][..written];
                    fs::write(&path, [&before.0[..], new].concat()).unwrap();
                    for times in [&after.1[..], &after.1[..after.1.len() - 5]] {
                        if written == 48 || step > 1 {
                            fs::write(times::beside(&path), times).unwrap();
                            assert_eq!(all(&path, None), before.1, "{order:?} {step} {written}");
                        }
                    }
                }
                assert_eq!(after.0.len(), begin + (step + 1) * 48);
                fs::write(&path, &after.0).unwrap();
                fs::write(times::beside(&path), &after.1).unwrap();
                assert_eq!(all(&path, None).len(), step + 1);
            }
        }
    }

    #[test]
    fn steps_of_a_file_in_fortran_order_are_gathered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let (layout, bytes) = numbers(&[2, 3], StorageOrder::Fortran);
        write(&path, &View::Array(layout, &bytes)).unwrap();
        let steps = all(&path, Some(true));
        let values: Vec<f64> = steps
            .iter()
            .flat_map(|record| match &record.value {
                Value::Array(_, bytes) => bytes.clone(),
                _ => Vec::new(),
            })
            .collect::<Vec<u8>>()
            .chunks_exact(8)
            .map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()))
            .collect();
        assert_eq!(values, [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
    }

    #[test]
    fn what_changes_its_shape_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let ((a, a_bytes), (b, b_bytes)) = (
            numbers(&[2], StorageOrder::C),
            numbers(&[3], StorageOrder::C),
        );
        let mut writer = NpyWriter::new(&path);
        writer
            .write(&View::Array(a, &a_bytes), &meta(0.0, None))
            .unwrap();
        let error = writer
            .write(&View::Array(b, &b_bytes), &meta(1.0, None))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("a.npy") && error.contains("[3]") && error.contains("{step}"),
            "{error}"
        );
        let error = writer
            .write(&View::Map(Vec::new()), &meta(1.0, None))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("a map of 0 entries") && error.contains(".jsonl"),
            "{error}"
        );
    }

    #[test]
    fn damaged_files_are_explained() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let why = |bytes: &[u8], time_axis| {
            fs::write(&path, bytes).unwrap();
            NpyReader::open(&path, time_axis)
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        let whole = |descr: &str, shape: &str| {
            let dict =
                format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n");
            [
                b"\x93NUMPY\x01\x00",
                &(dict.len() as u16).to_le_bytes()[..],
                dict.as_bytes(),
                &[0; 16],
            ]
            .concat()
        };
        assert_eq!(why(&whole("'<f8'", "(2,)"), None), "");
        assert!(why(b"hello", None).contains("ends within its header"));
        assert!(why(b"hello, world", None).contains("does not begin with"));
        assert!(why(b"\x93NUMPY\x09\x00\x00\x00", None).contains("version 9"));
        assert!(why(&whole("'<f8'", "(3,)"), None).contains("it ends early: 16 bytes"));
        assert!(why(&whole("'<U4'", "(1,)"), None).contains("'<U4'"));
        assert!(why(&whole("[('x', '<f8')]", "(1,)"), None).contains("named fields"));
        assert!(why(&whole("'<f8'", "(2**3,)"), None).contains("no number"));
        assert!(
            why(&whole("'<f8'", "(99999999999, 99999999999)"), None).contains("beyond 64 bits")
        );
        assert!(why(&whole("'<f8'", "()"), Some(true)).contains("no axis"));
        fs::write(
            times::beside(&path),
            "timestamp,next_timestamp\n0.0,\n1.0,x\n",
        )
        .unwrap();
        assert!(why(&whole("'<f8'", "(2,)"), None).contains("a.times.csv:3: \"x\""));
        fs::write(
            times::beside(&path),
            "timestamp,next_timestamp\n0.0,\n1.0,\n2.0,\n",
        )
        .unwrap();
        assert!(why(&whole("'<f8'", "(2,)"), None).contains("3 times, but"));
    }

    #[test]
    fn every_element_type_survives() {
        for dtype in Dtype::ALL {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.npy");
            let layout = Layout::new(dtype, StorageOrder::C, [3]);
            let bytes: Vec<u8> = (0..layout.bytes().unwrap()).map(|n| n as u8 % 2).collect();
            write(&path, &View::Array(layout.clone(), &bytes)).unwrap();
            assert_eq!(
                all(&path, None)[0].value,
                Value::Array(layout, bytes),
                "{}",
                dtype.name()
            );
        }
    }
}

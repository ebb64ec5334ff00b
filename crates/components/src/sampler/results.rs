//! The table of results: a CSV file with a line for each row of the table of settings, in the order in
//! which the rows end.
//!
//! The columns are `row`, the settings, `status` (`done` or `failed`), `reason`, and those of the
//! results. Each line is written as a whole, and a line has no line break within. So a file that an
//! earlier run has left in the middle of a line goes on behind the last whole line.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{Hash, Hasher};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use csv::{ReaderBuilder, StringRecord, WriterBuilder};
use titin_runtime::Setting;

use super::table::Row;
use crate::error::OnFile;
use crate::{Error, Result};

const ROW: &str = "row";
const STATUS: &str = "status";
const REASON: &str = "reason";

/// The most bytes of the first line that are compared.
const LONGEST_HEAD: u64 = 1 << 20;

/// How a row has ended.
pub(super) enum Outcome {
    /// The cells of the result, by column.
    Done(Vec<(String, String)>),
    /// Why the member has failed.
    Failed(String),
}

/// The file of results.
pub(super) struct ResultsFile {
    path: PathBuf,
    file: File,
    /// The columns of the settings.
    settings: Vec<String>,
    /// The columns of results; `None` before the first result.
    columns: Option<Vec<String>>,
    /// The rows in the file, each with a hash of its settings.
    rows: HashMap<u64, u64>,
    /// Lines of failed rows that wait for the first result, which tells the columns.
    waiting: Vec<Vec<String>>,
    /// Whether the waiting lines are those of the file, which a run without any result has left.
    is_without_results: bool,
}

impl ResultsFile {
    /// Opens the file for a table with these columns, and goes on in a file that is there.
    pub(super) fn open(path: &Path, settings: &[String]) -> Result<Self> {
        if let Some(clash) = settings
            .iter()
            .find(|name| [ROW, STATUS, REASON].contains(&&***name))
        {
            let why =
                format!("a setting called '{clash}' would have the name of a column of its own");
            return Err(Error::file(path, why));
        }
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut results = ResultsFile {
            path: path.to_owned(),
            file: options.open(path).on_file(path, "open")?,
            settings: settings.to_vec(),
            columns: None,
            rows: HashMap::new(),
            waiting: Vec::new(),
            is_without_results: false,
        };
        results.lock()?;
        results.check_head()?;
        results.cut_last_line()?;
        results.read_rows()?;
        results.file.seek(SeekFrom::End(0)).on_file(path, "read")?;
        Ok(results)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps other samplers away from the file as long as it is open. Some file systems have no locks.
    fn lock(&self) -> Result<()> {
        match self.file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(Error::file(
                &self.path,
                "another sampler, perhaps of another run, writes to it: name another file, or wait for its end",
            )),
            Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
        }
    }

    /// Fails if the file is not of this table, before the file is changed.
    fn check_head(&mut self) -> Result<()> {
        let own = self.head();
        let mut record = StringRecord::new();
        let found = reader_of(&self.file).read_record(&mut record);
        self.rewind()?;
        let is_whole = record.len() >= own.len() && record.iter().zip(&own).all(|(a, b)| a == b);
        if is_whole && found.is_ok() {
            return Ok(());
        }
        if self.is_head_alone(&record)? {
            self.file.set_len(0).on_file(&self.path, "write")?;
            return Ok(());
        }
        // An earlier run may have ended in the middle of the first line.
        let mut begin = Vec::new();
        let mut file = (&self.file).take(LONGEST_HEAD);
        file.read_to_end(&mut begin).on_file(&self.path, "read")?;
        self.rewind()?;
        if self.line(&own)?.starts_with(&begin) {
            return Ok(());
        }
        let why = format!(
            "it is there already, and is not of this table: its columns do not begin with {}; name another file",
            own.join(", ")
        );
        Err(Error::file(&self.path, why))
    }

    /// Whether the file has nothing but the names of columns, as a sampler leaves them for a table without rows. The
    /// table may have got other columns with its first rows.
    fn is_head_alone(&mut self, head: &StringRecord) -> Result<bool> {
        let length = self.file.metadata().on_file(&self.path, "read")?.len();
        let cells: Vec<String> = head.iter().map(str::to_owned).collect();
        let is_ours = cells.first().is_some_and(|cell| cell == ROW)
            && cells.ends_with(&[STATUS.to_owned(), REASON.to_owned()]);
        Ok(is_ours && self.line(&cells)?.len() as u64 == length)
    }

    fn rewind(&mut self) -> Result<()> {
        self.file.rewind().on_file(&self.path, "read")
    }

    /// Cuts off a last line that an earlier run has not ended.
    fn cut_last_line(&mut self) -> Result<()> {
        let mut reader = BufReader::new(&self.file);
        let (mut whole, mut line) = (0, Vec::new());
        loop {
            line.clear();
            let length = reader
                .read_until(b'\n', &mut line)
                .on_file(&self.path, "read")?;
            if line.last() != Some(&b'\n') {
                break;
            }
            whole += length as u64;
        }
        self.file.set_len(whole).on_file(&self.path, "cut")?;
        self.rewind()
    }

    /// Reads which rows are in the file.
    fn read_rows(&mut self) -> Result<()> {
        let path = self.path.clone();
        let broken = |error: csv::Error| Error::file(&path, format!("cannot read it: {error}"));
        let file = self.file.try_clone().on_file(&path, "read")?;
        let mut reader = reader_of(&file);
        let mut record = StringRecord::new();
        if !reader.read_record(&mut record).map_err(broken)? {
            return Ok(());
        }
        let (settings, own) = (self.settings.len(), self.head().len());
        let columns: Vec<String> = record.iter().skip(own).map(str::to_owned).collect();
        // A run in which all rows have failed does not know the columns of the results.
        self.is_without_results = columns.is_empty();
        self.columns = Some(columns);
        while reader.read_record(&mut record).map_err(broken)? {
            let number = record[0].parse().map_err(|_| {
                Error::file(&path, format!("'{}' is no number of a row", &record[0]))
            })?;
            let values = hash(record.iter().skip(1).take(settings));
            self.rows.insert(number, values);
            if self.is_without_results && record.get(1 + settings) == Some("failed") {
                self.waiting
                    .push(record.iter().map(str::to_owned).collect());
            } else {
                self.is_without_results = false;
            }
        }
        match self.is_without_results {
            true => self.columns = None,
            false => self.waiting.clear(),
        }
        Ok(())
    }

    /// Whether the file has a row.
    ///
    /// # Errors
    /// The row in the file has other settings.
    pub(super) fn has(&self, row: &Row) -> Result<bool> {
        let Some(found) = self.rows.get(&row.number) else {
            return Ok(false);
        };
        let texts = texts(row);
        if *found == hash(texts.iter().map(String::as_str)) {
            return Ok(true);
        }
        let why = format!(
            "its row {} has other settings than the table has now: name another file, or take the lines of changed rows out",
            row.number
        );
        Err(Error::file(&self.path, why))
    }

    /// Writes a row.
    pub(super) fn write(&mut self, row: &Row, outcome: Outcome) -> Result<()> {
        let mut line = vec![row.number.to_string()];
        line.extend(texts(row));
        match outcome {
            Outcome::Done(cells) => {
                line.extend(["done".to_owned(), String::new()]);
                let cells = self.in_order(cells).into_iter();
                let (names, values): (Vec<String>, Vec<String>) = cells
                    .map(|(name, value)| (on_one_line(&name), value))
                    .unzip();
                self.begin(&names)?;
                self.check_columns(row.number, &names)?;
                line.extend(values.iter().map(|value| on_one_line(value)));
                self.append(&line)
            }
            Outcome::Failed(reason) => {
                line.extend(["failed".to_owned(), on_one_line(&reason)]);
                self.waiting.push(line);
                match self.columns.is_some() {
                    true => self.write_waiting(),
                    false => Ok(()),
                }
            }
        }
    }

    /// Writes what waits for the first result, if none has come. A table without rows leaves the names of its
    /// columns, if these are known.
    pub(super) fn finish(&mut self) -> Result<()> {
        let is_unknown =
            self.settings.is_empty() && self.rows.is_empty() && self.waiting.is_empty();
        match self.columns.is_none() && is_unknown {
            true => Ok(()),
            false => self.begin(&[]),
        }
    }

    /// Writes the names of the columns, and the lines that waited for them.
    fn begin(&mut self, columns: &[String]) -> Result<()> {
        if self.columns.is_none() {
            let head: Vec<String> = self
                .head()
                .into_iter()
                .chain(columns.iter().cloned())
                .collect();
            if std::mem::take(&mut self.is_without_results) {
                self.file.set_len(0).on_file(&self.path, "write")?;
                self.rewind()?;
            }
            self.append(&head)?;
            self.columns = Some(columns.to_vec());
        }
        self.write_waiting()
    }

    fn write_waiting(&mut self) -> Result<()> {
        let columns = self.columns.as_ref().map_or(0, Vec::len);
        for mut line in std::mem::take(&mut self.waiting) {
            line.resize(line.len() + columns, String::new());
            self.append(&line)?;
        }
        Ok(())
    }

    /// The cells in the order of the columns of the file, if the file has the same columns.
    fn in_order(&self, mut cells: Vec<(String, String)>) -> Vec<(String, String)> {
        let columns = self.columns.as_deref().unwrap_or_default();
        let place = |name: &str| columns.iter().position(|column| column == name);
        cells.sort_by_key(|(name, _)| place(&on_one_line(name)).unwrap_or(usize::MAX));
        cells
    }

    fn check_columns(&self, row: u64, names: &[String]) -> Result<()> {
        let columns = self.columns.as_deref().unwrap_or_default();
        if columns == names {
            return Ok(());
        }
        Err(Error::Data(format!(
            "the result of row {row} has the columns {}, and {} has {}: all results have the same form",
            names.join(", "),
            self.path.display(),
            columns.join(", ")
        )))
    }

    fn head(&self) -> Vec<String> {
        let first = std::iter::once(ROW.to_owned());
        let last = [STATUS, REASON].map(str::to_owned);
        let settings = self.settings.iter().map(|name| on_one_line(name));
        first.chain(settings).chain(last).collect()
    }

    /// Writes a line at once.
    fn append(&mut self, line: &[String]) -> Result<()> {
        let bytes = self.line(line)?;
        self.file.write_all(&bytes).on_file(&self.path, "write")
    }

    fn line(&self, cells: &[String]) -> Result<Vec<u8>> {
        let mut writer = WriterBuilder::new().flexible(true).from_writer(Vec::new());
        let written = writer.write_record(cells);
        let bytes = written.and_then(|()| writer.into_inner().map_err(|e| e.into_error().into()));
        bytes.map_err(|error| Error::file(&self.path, error))
    }
}

fn reader_of(file: &File) -> csv::Reader<BufReader<&File>> {
    let mut reader = ReaderBuilder::new();
    reader.has_headers(false).from_reader(BufReader::new(file))
}

/// The settings of a row, as in the file.
fn texts(row: &Row) -> Vec<String> {
    let text = |setting: &Setting| match setting {
        Setting::Str(text) => on_one_line(text),
        other => other.to_string(),
    };
    row.settings.iter().map(|(_, value)| text(value)).collect()
}

fn on_one_line(text: &str) -> String {
    text.replace("\r\n", "; ").replace(['\n', '\r'], "; ")
}

fn hash<'a>(texts: impl Iterator<Item = &'a str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    texts.for_each(|text| text.hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64, k: f64) -> Row {
        Row {
            number,
            settings: vec![("k".to_owned(), Setting::Float(k))],
        }
    }

    fn done(value: &str) -> Outcome {
        Outcome::Done(vec![("value".to_owned(), value.to_owned())])
    }

    #[test]
    fn a_file_goes_on_where_it_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.csv");
        let columns = ["k".to_owned()];
        let mut results = ResultsFile::open(&path, &columns).unwrap();
        let failure = Outcome::Failed("a\nb, \"c\"".to_owned());
        results.write(&row(1, 0.5), failure).unwrap();
        results.write(&row(0, 1.0), done("7")).unwrap();
        drop(results);
        let whole = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            whole,
            "row,k,status,reason,value\n1,0.5,failed,\"a; b, \"\"c\"\"\",\n0,1.0,done,,7\n"
        );
        std::fs::write(&path, format!("{whole}2,3.0,do")).unwrap();
        let mut results = ResultsFile::open(&path, &columns).unwrap();
        assert!(results.has(&row(0, 1.0)).unwrap() && results.has(&row(1, 0.5)).unwrap());
        assert!(!results.has(&row(2, 3.0)).unwrap());
        let changed = results.has(&row(0, 2.0)).unwrap_err().to_string();
        assert!(
            changed.contains("its row 0 has other settings"),
            "{changed}"
        );
        results.write(&row(2, 3.0), done("8")).unwrap();
        let other = Outcome::Done(vec![("x".to_owned(), "1".to_owned())]);
        let error = results.write(&row(3, 3.0), other).unwrap_err().to_string();
        assert!(
            error.contains("the result of row 3 has the columns x"),
            "{error}"
        );
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            format!("{whole}2,3.0,done,,8\n")
        );
    }

    #[test]
    fn a_run_without_any_result_does_not_settle_the_columns() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.csv");
        let columns = ["k".to_owned()];
        let open = || ResultsFile::open(&path, &columns).unwrap();
        for number in 0..2 {
            let mut results = open();
            assert_eq!(results.has(&row(0, 0.5)).unwrap(), number > 0);
            let failure = Outcome::Failed("no more ice".to_owned());
            results.write(&row(number, 0.5), failure).unwrap();
            results.finish().unwrap();
        }
        let failed = "0,0.5,failed,no more ice";
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            format!("row,k,status,reason\n{failed}\n1{}\n", &failed[1..])
        );
        open().write(&row(2, 0.5), done("7")).unwrap();
        let whole = format!(
            "row,k,status,reason,value\n{failed},\n1{},\n2,0.5,done,,7\n",
            &failed[1..]
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), whole);
        assert!((0..3).all(|number| open().has(&row(number, 0.5)).unwrap()));
        // Results without a column are results.
        std::fs::write(&path, "row,k,status,reason\n0,0.5,done,\n").unwrap();
        let error = open().write(&row(1, 0.5), done("7")).unwrap_err();
        assert!(
            error.to_string().contains("has the columns value"),
            "{error}"
        );
    }

    #[test]
    fn a_table_without_rows_leaves_a_file_for_the_next_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.csv");
        let text = || std::fs::read_to_string(&path).unwrap();
        // The columns are not known, as in JSON lines without a line.
        ResultsFile::open(&path, &[]).unwrap().finish().unwrap();
        assert_eq!(text(), "");
        let columns = ["k".to_owned()];
        ResultsFile::open(&path, &columns)
            .unwrap()
            .finish()
            .unwrap();
        assert_eq!(text(), "row,k,status,reason\n");
        // The table has another column with its first row, or a file is of an earlier release.
        for old in ["row,n,status,reason\n", "row,status,reason\n"] {
            std::fs::write(&path, old).unwrap();
            let mut results = ResultsFile::open(&path, &columns).unwrap();
            results.write(&row(0, 1.0), done("7")).unwrap();
            assert_eq!(text(), "row,k,status,reason,value\n0,1.0,done,,7\n");
        }
        for other in [
            "row,n,status,reason\n0,1,done,\n",
            "row,n,status,reason,x\n",
            "row,status\n",
        ] {
            std::fs::write(&path, other).unwrap();
            assert!(ResultsFile::open(&path, &columns).is_err());
            assert_eq!(text(), other);
        }
    }

    #[test]
    fn the_cells_of_a_map_may_come_in_any_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.csv");
        let mut results = ResultsFile::open(&path, &["k".to_owned()]).unwrap();
        let cells = |names: [&str; 2]| {
            Outcome::Done(
                names
                    .map(|name| (name.to_owned(), format!("of {name}")))
                    .into(),
            )
        };
        results.write(&row(0, 1.0), cells(["b", "a"])).unwrap();
        results.write(&row(1, 1.0), cells(["a", "b"])).unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "row,k,status,reason,b,a\n0,1.0,done,,of b,of a\n1,1.0,done,,of b,of a\n"
        );
        assert!(results.write(&row(2, 1.0), cells(["a", "c"])).is_err());
    }

    #[test]
    fn a_first_line_without_its_end_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.csv");
        for begin in ["", "r", "row,k,stat", "row,k,status,reason,va"] {
            std::fs::write(&path, begin).unwrap();
            let mut results = ResultsFile::open(&path, &["k".to_owned()]).unwrap();
            results.write(&row(0, 1.0), done("7")).unwrap();
            assert_eq!(
                std::fs::read_to_string(&path).unwrap(),
                "row,k,status,reason,value\n0,1.0,done,,7\n"
            );
        }
    }

    #[test]
    fn two_samplers_do_not_share_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.csv");
        let columns = ["k".to_owned()];
        let first = ResultsFile::open(&path, &columns).unwrap();
        let error = ResultsFile::open(&path, &columns).err().unwrap();
        assert!(error.to_string().contains("another sampler"), "{error}");
        drop(first);
        assert!(ResultsFile::open(&path, &columns).is_ok());
    }

    #[test]
    fn a_file_of_another_table_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.csv");
        // The last line of a file of the user may have no end.
        for text in [
            "x,y\n1,2\n",
            "x,y\n1,2",
            "x",
            "row,k,status,x\n1",
            "row,k,statue",
            "\"row",
        ] {
            std::fs::write(&path, text).unwrap();
            let error = ResultsFile::open(&path, &["k".to_owned()]).err().unwrap();
            assert!(
                error.to_string().contains("is not of this table"),
                "{error}"
            );
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        let error = ResultsFile::open(&path, &["status".to_owned()])
            .err()
            .unwrap();
        assert!(error.to_string().contains("called 'status'"), "{error}");
    }
}

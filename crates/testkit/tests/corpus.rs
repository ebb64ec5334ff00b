//! The inputs that fuzzing begins with, and the inputs that fuzzing has found. Each input is read
//! or refused. This release reads everything that earlier releases have written.

use std::path::Path;

use titin_testkit::fuzz::{TARGETS, seeds};

#[test]
fn the_corpus_is_read_or_refused() {
    for (name, enter) in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/corpus")
            .join(name);
        let mut good = 0;
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let outcome = enter(&std::fs::read(&path).unwrap());
            if path
                .file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with("good_")
            {
                assert_eq!(outcome, Ok(()), "{}", path.display());
                good += 1;
            }
        }
        assert!(good > 0, "{} is empty", folder.display());
    }
}

#[test]
fn seeds_cut_short_or_changed_are_read_or_refused() {
    for (name, enter) in TARGETS {
        for (_, bytes) in seeds(name) {
            for at in (0..bytes.len()).step_by(1 + bytes.len() / 200) {
                let _ = enter(&bytes[..at]);
                let mut changed = bytes.clone();
                changed[at] ^= 0x80;
                let _ = enter(&changed);
            }
        }
    }
}

/// The seeds are equal to the files of the corpus, so the bytes that titin writes have not changed.
#[test]
fn seeds_are_the_bytes_of_the_corpus() {
    for (name, _) in TARGETS {
        for (seed, bytes) in seeds(name) {
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../fuzz/corpus")
                .join(name)
                .join(seed);
            assert!(
                std::fs::read(&path).unwrap() == bytes,
                "{} has other bytes",
                path.display()
            );
        }
    }
}

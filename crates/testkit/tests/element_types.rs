//! The bindings and the documents have the element types of the table in `titin-element`.

use std::fs;
use std::path::Path;

use titin_wire::meta::Dtype;

fn text(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap()
}

/// Reads lines of the form `NAME = 5`. Returns the names for which `wanted` is true, and their
/// numbers, in the order of the file.
fn constants(text: &str, wanted: impl Fn(&str) -> bool) -> Vec<(String, u8)> {
    text.lines()
        .filter_map(|line| line.split_once(" = "))
        .filter_map(|(before, number)| {
            let name = before.split_whitespace().last()?;
            let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
            Some((name.to_owned(), digits.parse().ok()?)).filter(|(name, _)| wanted(name))
        })
        .collect()
}

#[test]
fn the_constants_of_c_and_fortran_have_the_numbers_of_the_table() {
    let table = || Dtype::ALL.map(|dtype| (dtype.names().constant, dtype as u8));
    let header = text("crates/capi/include/titin.h");
    let (_, types) = header.split_once("/* Element types of arrays.").unwrap();
    let (types, _) = types.split_once("};").unwrap();
    assert_eq!(
        constants(types, |_| true),
        table().map(|(name, number)| (name.to_owned(), number))
    );
    let expected = table().map(|(name, number)| (name.to_lowercase(), number));
    let module = text("bindings/fortran/titin_c_constants.f90");
    let known = |name: &str| expected.iter().any(|(known, _)| known == name);
    assert_eq!(constants(&module, known), expected);
    let public = text("bindings/fortran/titin.f90");
    for (name, _) in expected {
        let is_public = public.split([',', ' ', '\n']).any(|word| word == name);
        assert!(is_public, "titin.f90 does not make {name} public");
    }
}

#[test]
fn the_docs_have_the_rows_of_the_table() {
    let rows = Dtype::ALL.map(|dtype| {
        let names = dtype.names();
        format!(
            "| {} | `{}` | `{}` | `{}` | `{}` | `{}` | `{}` | {} |\n",
            dtype as u8,
            names.numpy,
            names.npy,
            names.constant,
            names.c,
            names.cpp,
            names.fortran,
            dtype.size()
        )
    });
    let expected = rows.concat();
    assert!(
        text("docs/data.md").contains(&expected),
        "docs/data.md has to have these rows:\n{expected}"
    );
}

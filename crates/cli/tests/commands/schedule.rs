use std::path::Path;

use rusqlite::{Connection, params};
use serde_json::{Value, json};
use titin_array::{Bytes, Decomposition, Order, Side, Spread};

use crate::plot::{Shape, attribute, plot, shapes};
use crate::{folder, root, titin};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

fn draw(sides: &[&str]) -> String {
    plot(Path::new(HERE), &[&["--schedule"], sides].concat())
}

fn schedule(sides: &[&str]) -> Value {
    let done = titin(
        Path::new(HERE),
        &[&["plot", "--schedule", "--json"], sides].concat(),
    );
    assert_eq!(done.code, Some(0), "{}", done.err);
    serde_json::from_str(&done.out).unwrap()
}

fn refused(sides: &[&str]) -> String {
    let done = titin(Path::new(HERE), &[&["plot", "--schedule"], sides].concat());
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(2), ""),
        "{}",
        done.err
    );
    done.err
}

/// Returns the part of the picture from `begin` to the next side or table.
fn part<'a>(svg: &'a str, begin: &str) -> &'a str {
    let (_, rest) = svg
        .split_once(begin)
        .unwrap_or_else(|| panic!("{begin} in {svg}"));
    rest.split("<g class=\"side\"")
        .next()
        .unwrap()
        .split("<g class=\"table\"")
        .next()
        .unwrap()
}

fn of_class<'a>(shapes: &'a [Shape], class: &str) -> Vec<&'a Shape> {
    shapes
        .iter()
        .filter(|shape| shape.class.split(' ').any(|word| word == class))
        .collect()
}

#[test]
fn rows_to_columns_are_cut_into_pieces_in_the_colours_of_their_senders() {
    let svg = draw(&["from: {shape: [8, 12], grid: [4, 1]}", "to: {grid: [1, 3]}"]);
    for (side, ranks) in [("from", 4), ("to", 3)] {
        let side = part(&svg, &format!("<g class=\"side\" data-side=\"{side}\">"));
        assert_eq!(side.matches("<rect class=\"piece ").count(), 12, "{side}");
        assert_eq!(
            side.matches("<rect class=\"part\"").count(),
            ranks,
            "{side}"
        );
        for rank in 0..4 {
            assert_eq!(side.matches(&format!("\"piece r{rank}\"")).count(), 3);
        }
        assert!(side.contains("<title>rank 3 to rank 2</title>"));
    }
    let all = shapes(&svg);
    // The pieces of a side fill the array.
    let array = of_class(&all, "array")[0].area();
    let area = |[left, top, right, bottom]: [f64; 4]| (right - left) * (bottom - top);
    let pieces: f64 = of_class(&all, "piece")[..12]
        .iter()
        .map(|piece| area(piece.area()))
        .sum();
    assert!(
        (pieces / area(array) - 1.0).abs() < 0.02,
        "{pieces} of {}",
        area(array)
    );
    assert_eq!(of_class(&all, "cell").len(), 12);
    let amounts = all.iter().filter(|shape| shape.text == "64 B").count();
    assert_eq!(amounts, 12);
    assert!(
        svg.contains("12 messages with 768 B in all; a rank sends to 3 and receives from 4"),
        "{svg}"
    );
    assert!(svg.contains("prefers-color-scheme:dark"));
}

#[test]
fn the_schedule_is_told_as_data() {
    let told = schedule(&[
        "from: {shape: [4, 4], grid: [2, 2], spread: cyclic(1)}\nto: {grid: [2, 1]}\ndtype: [float32, int8]",
    ]);
    let one = &told[0];
    assert_eq!(one["from"]["grid"], json!([2, 2]));
    assert_eq!(
        (&one["from"]["spread"], &one["to"]["spread"]),
        (&json!(["cyclic(1)", "cyclic(1)"]), &json!(["even", "even"]))
    );
    assert_eq!(
        (&one["element_bytes"], &one["arrays"]),
        (&json!(5), &json!(2))
    );
    let messages = one["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 8);
    assert_eq!(
        messages[1],
        json!({"from": 0, "to": 1, "elements": 2, "bytes": 10})
    );
}

#[test]
fn regular_and_irregular_ways_to_say_the_same_have_the_same_schedule() {
    let to = "to: {grid: [1, 3]}";
    let grid = schedule(&["from: {shape: [4, 6], grid: [2, 1]}", to]);
    for same in [
        "from: {shape: [4, 6], boxes: [[0:2, 0:6], [[2:4, 0:4], [2:4, 4:6]]]}",
        "from: {shape: [4, 6], indices: [[0:6, 11, 10, 6:10], [12:24]]}",
        "from: {shape: [4, 6], indices: [[0:2, 4:6, 8:10, 12:14, 16:18, 20:22], [2:4, 6:8, 10:12, 14:16, 18:20, 22:24]], order: F}",
    ] {
        assert_eq!(
            schedule(&[same, to])[0]["messages"],
            grid[0]["messages"],
            "{same}"
        );
        assert!(draw(&[same, to]).contains("6 messages"), "{same}");
    }
}

#[test]
fn what_is_not_coupled_has_no_colour_and_halos_are_dashed() {
    let from = "from: {shape: [8, 12], grid: [2, 2], halo: 1, region: [0:8, 4:12]}";
    let svg = draw(&[
        from,
        "to: {shape: [10, 8], grid: [2, 1], region: [1:9, 0:8]}",
    ]);
    let side = part(&svg, "<g class=\"side\" data-side=\"from\">");
    let (array, region) = (
        part(side, "<rect class=\"array\""),
        part(side, "<rect class=\"region\""),
    );
    let width = |text: &str| {
        attribute(text.lines().next().unwrap(), "width")
            .unwrap()
            .parse::<f64>()
            .unwrap()
    };
    assert!(
        (width(region) / width(array) - 8.0 / 12.0).abs() < 0.02,
        "{region}"
    );
    let coloured: f64 = side
        .lines()
        .filter(|line| line.contains("\"piece r0\""))
        .map(width)
        .sum();
    assert!(
        coloured < width(array) / 4.0,
        "of rank 0 a third is coupled: {side}"
    );
    assert_eq!(side.matches("<rect class=\"halo h").count(), 4, "{side}");
    assert!(
        svg.contains("Only what is within the thick line is coupled.")
            && svg.contains("Dashed: halos")
    );
}

#[test]
fn blocks_are_seen_from_in_front_from_above_and_from_the_right() {
    let svg = draw(&[
        "from: {shape: [8, 8, 8], grid: [2, 2, 2]}",
        "to: {grid: [1, 1, 4]}",
    ]);
    let side = part(&svg, "<g class=\"side\" data-side=\"from\">");
    for rank in 0..8 {
        // The block of rank 6, at the back, at the bottom, on the left, is hidden.
        let seen =
            side.contains(&format!("r{rank}\"")) && side.contains(&format!(">{rank}</text>"));
        assert_eq!(seen, rank != 6, "{rank} in {side}");
    }
    let four = draw(&[
        "from: {shape: [3, 8, 8, 8], grid: [1, 2, 2, 2]}",
        "to: {grid: [3, 1, 1, 1]}",
    ]);
    assert!(
        four.contains("this is [0:1, 0:8, 0:8, 0:8] of the sender"),
        "{four}"
    );
    assert!(draw(&["from: {shape: []}", "to: {}"]).contains("1 message with 8 B in all"));
}

#[test]
fn of_too_many_pieces_a_corner_is_drawn_and_of_many_ranks_the_table_alone() {
    let sides = [
        "from: {shape: [1024, 1024], grid: [2, 2], spread: cyclic(4)}",
        "to: {grid: [1, 2]}",
    ];
    let corner = draw(&sides);
    assert!(
        corner.contains("this is [0:64, 0:64] of the sender"),
        "{corner}"
    );
    assert!(corner.len() < 100_000, "{}", corner.len());
    let many = draw(&[
        "from: {shape: [32768, 32768], grid: [128, 64]}",
        "to: {grid: [64, 32], spread: cyclic(32)}",
    ]);
    assert!(
        !many.contains("class=\"side\"") && many.contains("128 × 32 ranks to a cell"),
        "{}",
        &many[..4000]
    );
    assert!(many.contains("<title>ranks 8064 to 8191 to ranks 2016 to 2047: "));
    assert!(many.len() < 2_000_000, "{}", many.len());
}

#[test]
fn what_cannot_be_coupled_is_told_in_words() {
    assert!(refused(&["from: {grid: [2]}", "to: {}"]).contains("write \"shape\" at one side"));
    let text = refused(&["from: {shape: [8], grid: [2]}", "to: {shape: [9]}"]);
    assert!(
        text.contains("the sender couples 8 elements ([0:8]), the receiver 9"),
        "{text}"
    );
    let text = refused(&["from: {shape: [8], boxes: [[0:3], [4:8]]}", "to: {}"]);
    assert!(
        text.contains("no rank of the sender owns [3:4], which rank 0 of the receiver wants"),
        "{text}"
    );
    let text = refused(&["from: {shape: [8], boxes: [[0:5], [4:8]]}", "to: {}"]);
    assert!(
        text.contains("ranks 0 and 1 of the sender both own [4:5]"),
        "{text}"
    );
    let text = refused(&["from: {shape: [8, 8], grid: [2]}", "to: {}"]);
    assert!(
        text.contains("\"from\": a decomposition has 2 extents, a grid of 1 dimensions"),
        "{text}"
    );
    let text = refused(&[
        "from: {shape: [8, 8], grid: [2, 2], spread: [even, even, block]}",
        "to: {}",
    ]);
    assert!(
        text.contains("3 ways to spread for an array of 2 dimensions"),
        "{text}"
    );
    let text = refused(&["from: {shape: [8], grid: [2], spreed: even}", "to: {}"]);
    assert!(
        text.contains("argument 1:1:31: error: unknown key")
            && text.contains("did you mean \"spread\"?"),
        "{text}"
    );
    let text = refused(&[
        "from: {shape: [1000000000], grid: [4]}",
        "to: {indices: ['0:1000000000']}",
    ]);
    assert!(
        text.contains("1000000000 indices, and more than 4000000"),
        "{text}"
    );
    let text = refused(&["from: {shape: [8]}", "to: {}", "--field", "a.out"]);
    assert!(
        text.contains("--field chooses among the fields of a run"),
        "{text}"
    );
    let description = folder("ymmsl_version: v0.2\n");
    let done = titin(description.path(), &["plot", "--schedule", "model.ymmsl"]);
    assert_eq!(done.code, Some(2));
    assert!(
        done.err.contains("this is a description") && done.err.contains("directory of a run"),
        "{}",
        done.err
    );
}

/// The pattern of a field: every fourth step of the sender, and half of the array.
const PATTERN: &str = r#"{"mode": {"pull": {"versions": 3, "full": "evict"}},
    "sender": {"steps": {"from": 1, "until": 1000, "every": 4}, "region": [[0, 0], [8, 6]]},
    "receiver": {"steps": {"from": 1, "until": null, "every": 1}, "region": [[0, 6], [8, 12]]}}"#;

/// A run with three kinds of conduits with fields: the same field between each `macro` and `micro`
/// of an ensemble, this field on other ports, and a field with an irregular sender.
fn run() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let database = Connection::open(folder.path().join("performance.sqlite")).unwrap();
    let tables = "
        CREATE TABLE titin_format (major_version INTEGER, minor_version INTEGER); INSERT INTO titin_format VALUES (1, 1);
        CREATE TABLE instances (oid INTEGER PRIMARY KEY, name TEXT);
        INSERT INTO instances VALUES (1, 'macro[0]'), (2, 'macro[1]'), (3, 'micro[0]'), (4, 'micro[1]'), (5, 'mesh');
        CREATE TABLE conduits (oid INTEGER PRIMARY KEY, sender_oid INTEGER, sender_port TEXT, sender_slot INTEGER,
            receiver_oid INTEGER, receiver_port TEXT, receiver_slot INTEGER);
        INSERT INTO conduits VALUES (0, 1, 'out', NULL, 3, 'in', NULL), (1, 2, 'out', NULL, 4, 'in', NULL),
            (2, 5, 'out', NULL, 3, 'mesh', NULL), (3, 1, 'too', NULL, 3, 'also', NULL);";
    database.execute_batch(tables).unwrap();
    let none = titin(folder.path(), &["plot", "--schedule", "."]);
    assert_eq!(none.code, Some(2));
    assert!(
        none.err
            .contains("at no conduit both ends have declared one"),
        "{}",
        none.err
    );
    let table = "CREATE TABLE fields (conduit_oid INTEGER, sender_side BLOB, receiver_side BLOB, element_types BLOB, pattern TEXT)";
    database.execute_batch(table).unwrap();
    let rows = Side::new(Decomposition::block(&[8, 12], &[4, 1]).unwrap());
    let spreads = [Spread::Even, Spread::Cyclic(2)];
    let dealt =
        Side::new(Decomposition::regular(&[8, 12], &[2, 2], &spreads, Order::Fortran, 4).unwrap());
    let listed = Side::new(Decomposition::indices(&[8, 12], 3).unwrap());
    for (conduit, from) in [(0, &rows), (1, &rows), (2, &listed), (3, &rows)] {
        // 12 is the number of float64 in messages.
        let pattern = (conduit != 2).then_some(PATTERN);
        let values = params![
            conduit,
            from.to_bytes(),
            dealt.to_bytes(),
            [12u8, 12],
            pattern
        ];
        database
            .execute("INSERT INTO fields VALUES (?, ?, ?, ?, ?)", values)
            .unwrap();
    }
    folder
}

#[test]
fn fields_of_a_run_are_drawn_as_they_were_declared() {
    let run = run();
    let svg = plot(run.path(), &["--schedule", "."]);
    assert!(
        svg.contains("schedules of 2 fields") && svg.contains("macro[0].out: 4 ranks"),
        "{svg}"
    );
    assert!(
        svg.contains("The same goes for 2 other pairs of ports of the same components."),
        "{svg}"
    );
    assert!(
        svg.contains("8 × 12, grid 2 × 2, even × cyclic(2), ranks in Fortran order"),
        "{svg}"
    );
    assert!(
        svg.contains("8 messages with 768 B in 2 arrays in all"),
        "{svg}"
    );
    assert!(
        svg.contains("The sender is spread by indices: only its ranks know who owns what"),
        "{svg}"
    );
    let said = "at every 4 steps from 1 to 1000 of the sender, pulled by the receiver from 3 versions that the sender keeps";
    assert!(
        svg.contains(&format!("By the description: {said}.")),
        "{svg}"
    );
    assert!(
        svg.contains("Only what is within the thick line is coupled."),
        "{svg}"
    );
    let one = titin(
        run.path(),
        &["plot", "--schedule", ".", "--field", "micro.mesh", "--json"],
    );
    let told: Value = serde_json::from_str(&one.out).unwrap();
    assert_eq!(
        (told.as_array().unwrap().len(), &told[0]["messages"]),
        (1, &Value::Null)
    );
    assert_eq!(
        (&told[0]["from"]["owned"], &told[0]["from"]["port"]),
        (&json!("indices"), &json!("mesh.out"))
    );
    let one = titin(
        run.path(),
        &["plot", "--schedule", ".", "--field", "micro.in", "--json"],
    );
    let told: Value = serde_json::from_str(&one.out).unwrap();
    assert_eq!(
        told[0]["pattern"]["mode"],
        json!({"pull": {"versions": 3, "full": "evict"}}),
        "{}",
        one.out
    );
    let wrong = titin(
        run.path(),
        &["plot", "--schedule", ".", "--field", "micro.mash"],
    );
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.err.contains("did you mean \"micro.mesh\"?"),
        "{}",
        wrong.err
    );
    let both = titin(run.path(), &["plot", "--schedule", ".", "to: {}"]);
    assert!(
        both.err
            .contains("is a run, and it was given with other files"),
        "{}",
        both.err
    );
}

#[test]
fn the_schedules_in_the_docs_are_what_the_command_draws() {
    let page = std::fs::read_to_string(root().join("docs/fields.md")).unwrap();
    let commands = page
        .lines()
        .filter_map(|line| line.strip_prefix("*`titin ")?.strip_suffix("`*"));
    let mut drawn = 0;
    for command in commands {
        let (words, name) = command.rsplit_once(" -o ").unwrap();
        // A text in quotes is one word.
        let quoted = words.split('\'').enumerate();
        let words: Vec<&str> = quoted
            .flat_map(|(number, text)| {
                if number % 2 == 1 {
                    vec![text]
                } else {
                    text.split_whitespace().collect()
                }
            })
            .collect();
        let kept = std::fs::read_to_string(root().join("docs/pictures").join(name)).unwrap();
        let drawing = titin(Path::new(HERE), &words);
        assert!(
            drawing.out == kept,
            "the picture is out of date; in docs/pictures: titin {command} {}",
            drawing.err
        );
        assert!(
            page.contains(&format!("](pictures/{name})")),
            "{name} is shown"
        );
        drawn += 1;
    }
    assert!(
        drawn >= 4,
        "{drawn} pictures of schedules in docs/fields.md"
    );
}

use std::path::Path;

use crate::{folder, root, titin};

/// An element within a group of an SVG text. The SVG texts of titin have one element a line.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) element: String,
    pub(crate) class: String,
    /// The `data-name` of the groups around the element, the outermost group first.
    within: Vec<String>,
    pub(crate) line: String,
    pub(crate) text: String,
}

impl Shape {
    pub(crate) fn number(&self, name: &str) -> f64 {
        attribute(&self.line, name)
            .and_then(|value| value.parse().ok())
            .unwrap_or_else(|| panic!("{name} of {}", self.line))
    }

    /// The left, top, right, and bottom edge.
    pub(crate) fn area(&self) -> [f64; 4] {
        let (x, y) = (self.number("x"), self.number("y"));
        [x, y, x + self.number("width"), y + self.number("height")]
    }
}

pub(crate) fn attribute(line: &str, name: &str) -> Option<String> {
    let from = line.find(&format!(" {name}=\""))? + name.len() + 3;
    Some(line[from..].split('"').next()?.to_owned())
}

pub(crate) fn shapes(svg: &str) -> Vec<Shape> {
    let mut open: Vec<(String, String)> = Vec::new();
    let mut shapes = Vec::new();
    let body = svg.split("</style>").nth(1).expect("a style");
    for line in body.lines().map(str::trim) {
        let class = attribute(line, "class").unwrap_or_default();
        if line.starts_with("<g") {
            open.push((class, attribute(line, "data-name").unwrap_or_default()));
        } else if line.starts_with("</g>") {
            open.pop().expect("a group is open");
        } else if let Some(element) = line.strip_prefix('<').filter(|rest| !rest.starts_with('/')) {
            let element = element
                .split([' ', '>'])
                .next()
                .unwrap_or_default()
                .to_owned();
            let text = line
                .split('>')
                .nth(1)
                .and_then(|rest| rest.split('<').next())
                .unwrap_or_default()
                .to_owned();
            let within = open
                .iter()
                .map(|(_, name)| name.clone())
                .filter(|name| !name.is_empty())
                .collect();
            shapes.push(Shape {
                element,
                class,
                within,
                line: line.to_owned(),
                text,
            });
        }
    }
    assert!(open.is_empty(), "groups left open: {open:?}");
    assert!(body.trim_end().ends_with("</svg>"));
    shapes
}

fn apart(a: [f64; 4], b: [f64; 4]) -> bool {
    a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1]
}

/// Draws files of a directory, and checks that no boxes, tags, or names overlap.
pub(crate) fn plot(directory: &Path, arguments: &[&str]) -> String {
    let done = titin(directory, &[&["plot"], arguments].concat());
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    let svg = done.out;
    let shapes = shapes(&svg);
    let boxes: Vec<&Shape> = shapes
        .iter()
        .filter(|s| {
            s.element == "rect"
                && ["box", "frame"].contains(&s.class.as_str())
                && !s.within.is_empty()
        })
        .collect();
    for (i, a) in boxes.iter().enumerate() {
        for b in &boxes[..i] {
            let nested = a.within.starts_with(&b.within) || b.within.starts_with(&a.within);
            assert!(
                nested || apart(a.area(), b.area()),
                "{:?} lies on {:?}",
                a.within,
                b.within
            );
        }
    }
    let tags: Vec<&Shape> = shapes
        .iter()
        .filter(|s| s.class == "tag" && s.within.len() + boxes.len() > 0)
        .collect();
    for tag in &tags {
        for leaf in boxes.iter().filter(|b| b.class == "box") {
            assert!(
                apart(tag.area(), leaf.area()),
                "a filter lies on {:?}",
                leaf.within
            );
        }
    }
    let texts: Vec<([f64; 4], &str)> = shapes
        .iter()
        .filter(|s| s.element == "text")
        .map(|s| (text_area(s), s.text.as_str()))
        .collect();
    for (i, (a, name)) in texts.iter().enumerate() {
        for (b, other) in &texts[..i] {
            assert!(apart(*a, *b), "\"{name}\" lies on \"{other}\"");
        }
    }
    svg
}

/// Returns the area of a text, if its letters have the usual width.
fn text_area(shape: &Shape) -> [f64; 4] {
    let size = match shape.class.as_str() {
        "title" => 16.0,
        "name" => 13.0,
        _ => 11.0,
    };
    let width = shape.text.chars().count() as f64 * size * 0.55;
    let from = match attribute(&shape.line, "text-anchor").as_deref() {
        Some("middle") => width / 2.0,
        Some("end") => width,
        _ => 0.0,
    };
    let (x, y) = (shape.number("x") - from, shape.number("y"));
    [x, y - size * 0.75, x + width, y + size * 0.2]
}

fn names<'a>(shapes: &'a [Shape], class: &str) -> Vec<&'a str> {
    shapes
        .iter()
        .filter(|s| s.class == class)
        .filter_map(|s| Some(s.within.last()?.as_str()))
        .collect()
}

#[test]
fn components_ports_and_conduits_of_an_example_are_drawn() {
    let svg = plot(
        &root().join("examples/reaction-diffusion"),
        &["model.ymmsl", "python/macro.ymmsl", "c/micro.ymmsl"],
    );
    let shapes = shapes(&svg);
    assert_eq!(names(&shapes, "box"), ["macro", "micro", "result"]);
    let filled = names(&shapes, "symbol filled");
    for port in ["macro.state_out", "macro.final_state", "micro.final_state"] {
        assert!(filled.contains(&port), "{filled:?}");
    }
    let open = names(&shapes, "symbol open");
    for port in ["macro.state_in", "micro.initial_state", "result.in"] {
        assert!(open.contains(&port), "{open:?}");
    }
    let symbol = |port: &str| {
        shapes
            .iter()
            .find(|s| s.class.starts_with("symbol") && s.within.last().is_some_and(|n| n == port))
            .unwrap()
    };
    assert_eq!(
        symbol("macro.state_out").element,
        "circle",
        "O_I is a circle"
    );
    assert_eq!(symbol("macro.state_in").element, "circle", "S is a circle");
    assert_eq!(
        symbol("micro.initial_state").element,
        "path",
        "F_INIT is a diamond"
    );
    assert_eq!(
        symbol("micro.final_state").element,
        "path",
        "O_F is a diamond"
    );
    assert!(svg.contains(
        "<g class=\"conduit each-step\" data-from=\"macro.state_out\" data-to=\"micro.initial_state\">"
    ));
    assert!(svg.contains(
        "<g class=\"conduit once\" data-from=\"micro.final_state\" data-to=\"macro.state_in\">"
    ));
    assert!(svg.contains("<title id=\"title\">reaction_diffusion: a coupling graph of the components macro, micro and result and 3 conduits</title>"));
    assert!(svg.contains("prefers-color-scheme:dark"));
    assert!(
        !svg.contains("href") && !svg.contains("url("),
        "the picture needs nothing else"
    );
}

#[test]
fn every_example_is_drawn_without_overlaps_and_always_the_same() {
    let examples = root().join("examples");
    let four = ["cavity/four.ymmsl", "cavity/cavity.ymmsl"];
    let ensemble = [
        "ensemble/ensemble.ymmsl",
        "reaction-diffusion/c/micro.ymmsl",
    ];
    for files in [
        &four[..],
        &["drainage/split.ymmsl", "drainage/drainage.ymmsl"],
        &ensemble,
        &["cavity/two.ymmsl", four[1]],
    ] {
        assert_eq!(plot(&examples, files), plot(&examples, files));
    }
    let svg = plot(&examples, &ensemble);
    assert!(svg.contains(">micro [10]<"), "{svg}");
    assert!(
        svg.contains(">states_out[]<"),
        "a port with a slot for each"
    );
}

const FILTERS: &str = "\
ymmsl_version: v0.2
models:
  m:
    components:
      macro: {description: d, ports: {o_i: out probe, s: in, o_f: never}, implementation: p}
      micro: {description: d, ports: {f_init: initial geometry, o_f: final}, implementation: p}
      other: {description: d, ports: {s: probe}, implementation: p}
      last: {description: d, ports: {f_init: state}, implementation: p}
      start: {description: d, ports: {o_f: geometry}, implementation: p}
    conduits:
      macro.out: zstd(3) astype(float32) micro.initial
      macro.probe: [other.probe, last last.state]
      micro.final: scale(2, 0.5) macro.in
      start.geometry: repeat micro.geometry
";

#[test]
fn filters_stand_before_the_receiver_and_ports_without_a_conduit_are_faint() {
    let folder = folder(FILTERS);
    let svg = plot(folder.path(), &["model.ymmsl"]);
    let shapes = shapes(&svg);
    let mut filters: Vec<&str> = shapes
        .iter()
        .filter(|s| s.class == "filter")
        .map(|s| s.text.as_str())
        .collect();
    filters.sort_unstable();
    assert_eq!(
        filters,
        [
            "astype(float32)",
            "last",
            "repeat",
            "scale(2.0, 0.5)",
            "zstd(3)"
        ]
    );
    assert!(
        svg.contains("<g class=\"port o_f absent\" data-name=\"macro.never\">"),
        "{svg}"
    );
    assert!(
        svg.contains("data-from=\"macro.probe\" data-to=\"other.probe last.state\""),
        "one sender, two receivers"
    );
    assert!(svg.contains("<circle class=\"tip\""), "a multicast forks");
    let at = |text: &str| {
        shapes
            .iter()
            .find(|s| s.class == "filter" && s.text == text)
            .unwrap()
            .number("x")
    };
    assert!(
        at("zstd(3)") < at("astype(float32)"),
        "in the order in which messages pass"
    );
}

const NESTED: &str = "\
ymmsl_version: v0.2
models:
  outer:
    components:
      macro: {description: d, ports: {o_i: out, s: in}, implementation: p}
      cell: {description: d, ports: {f_init: start, o_f: end}, implementation: inner, multiplicity: [4, 3]}
    conduits: {macro.out: cell.start, cell.end: macro.in}
  inner:
    ports: {f_init: start, o_f: end}
    components:
      a: {description: d, ports: {f_init: start, o_f: end}, implementation: p}
      b: {description: d, ports: {f_init: start, o_f: end}, implementation: q}
      never: {description: d, ports: {f_init: start}, optional: true}
    conduits: {start: a.start, a.end: b.start, b.end: end}
programs: {p: {executable: ./p}, q: {executable: ./q}, other: {executable: ./other}}
custom_implementations: {outer.cell.b: other}
";

#[test]
fn a_model_inside_a_model_is_a_frame_with_its_ports() {
    let folder = folder(NESTED);
    let svg = plot(folder.path(), &["model.ymmsl"]);
    let shapes = shapes(&svg);
    assert_eq!(names(&shapes, "frame"), ["cell"]);
    assert_eq!(names(&shapes, "box"), ["macro", "cell.a", "cell.b"]);
    let find = |name: &str, class: &str| {
        shapes
            .iter()
            .find(|s| s.class == class && s.within.last().is_some_and(|n| n == name))
            .unwrap()
            .area()
    };
    let (frame, inner) = (find("cell", "frame"), find("cell.a", "box"));
    assert!(
        frame[0] < inner[0] && frame[1] < inner[1] && frame[2] > inner[2] && frame[3] > inner[3]
    );
    assert!(svg.contains("data-from=\"cell.start\" data-to=\"cell.a.start\""));
    assert!(svg.contains(">cell [4][3]<"));
    assert!(
        svg.contains(">other<") && !svg.contains(">q<"),
        "the custom implementation is named"
    );
    assert_eq!(
        svg.matches("data-name=\"cell.start\"").count(),
        1,
        "a port of a frame is drawn once"
    );

    let alone = plot(folder.path(), &["model.ymmsl", "-m", "inner"]);
    assert!(
        alone.contains("<g class=\"outer port f_init\" data-name=\"start\">"),
        "{alone}"
    );
}

#[test]
fn the_map_of_scales_has_rectangles_from_step_to_total() {
    let example = root().join("examples/reaction-diffusion");
    let svg = plot(&example, &["--scales", "model.ymmsl", "scales.ymmsl"]);
    let shapes = shapes(&svg);
    let area = |name: &str| {
        shapes
            .iter()
            .find(|s| s.class == "area" && s.within == [name])
            .unwrap()
            .area()
    };
    let (macro_area, micro) = (area("macro"), area("micro"));
    assert!(
        (micro[2] - macro_area[0]).abs() <= 1.0,
        "the micro model's total is the macro model's step"
    );
    assert!(macro_area[1] < micro[1], "the macro model is larger");
    let mark = |text: &str| {
        shapes
            .iter()
            .find(|s| s.class == "mark" && s.text == text)
            .unwrap()
    };
    let hour = mark("1 h").number("x");
    assert!(
        macro_area[0] < hour && hour < macro_area[2],
        "6 min to 40 h"
    );
    assert!(mark("1 cm").number("y") > macro_area[1]);
    assert!(svg.contains("<g class=\"coupling\" data-between=\"macro\" data-and=\"micro\">"));
    assert!(svg.contains("without scales: result"));
}

#[test]
fn a_map_without_scales_is_refused_with_an_example() {
    let folder = folder(FILTERS);
    let done = titin(folder.path(), &["plot", "--scales", "model.ymmsl"]);
    assert_eq!(done.code, Some(2));
    done.assert_err("macro: {dt: 1 s, total: 1 h");
}

#[test]
fn the_picture_goes_to_a_file_or_the_reason_is_told() {
    let folder = folder(FILTERS);
    let done = titin(folder.path(), &["plot", "model.ymmsl", "-o", "m.svg"]);
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(0), ""),
        "{}",
        done.err
    );
    let svg = std::fs::read_to_string(folder.path().join("m.svg")).unwrap();
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));

    let done = titin(
        folder.path(),
        &["plot", "model.ymmsl", "-o", "no/such/folder.svg"],
    );
    assert_eq!(done.code, Some(2));
    done.assert_err("no/such/folder.svg cannot be written");

    let wrong = crate::folder(&FILTERS.replace("macro.out:", "macro.oot:"));
    let done = titin(wrong.path(), &["plot", "model.ymmsl"]);
    assert_eq!(done.code, Some(2));
    assert!(
        done.err.contains("did you mean \"out\"?"),
        "{}{}",
        done.out,
        done.err
    );
}

#[test]
fn names_with_markup_stay_names() {
    let hostile = FILTERS.replace("description: d,", "description: '</title><script>&',");
    let folder = folder(&hostile);
    let svg = plot(folder.path(), &["model.ymmsl"]);
    assert!(!svg.contains("<script>"));
    assert!(svg.contains("&lt;/title&gt;&lt;script&gt;&amp;"));
}

#[test]
fn the_pictures_in_the_docs_are_what_the_command_draws() {
    let example = root().join("examples/reaction-diffusion");
    let graph = [
        "plot",
        "model.ymmsl",
        "python/macro.ymmsl",
        "fortran/micro.ymmsl",
    ];
    let map = ["plot", "--scales", "model.ymmsl", "scales.ymmsl"];
    for (name, words) in [
        ("reaction-diffusion", &graph[..]),
        ("reaction-diffusion-scales", &map),
    ] {
        let kept =
            std::fs::read_to_string(root().join(format!("docs/pictures/{name}.svg"))).unwrap();
        let words_again = format!(
            "in examples/reaction-diffusion: titin {} -o ../../docs/pictures/{name}.svg",
            words.join(" ")
        );
        assert!(
            titin(&example, words).out == kept,
            "the picture is out of date; {words_again}"
        );
    }
}

#[test]
fn what_nobody_could_read_is_not_drawn() {
    let components: String = (0..2001)
        .map(|n| format!("      c{n}: {{description: d, ports: {{}}, implementation: p}}\n"))
        .collect();
    let folder = folder(&format!(
        "ymmsl_version: v0.2\nmodels:\n  m:\n    components:\n{components}"
    ));
    let done = titin(folder.path(), &["plot", "model.ymmsl"]);
    assert_eq!(done.code, Some(2), "{}", done.err);
    assert!(
        done.err.contains("2001 components") && done.err.contains("-m"),
        "{}",
        done.err
    );
}

#[test]
fn a_picture_is_not_written_under_a_name_that_says_it_is_something_else() {
    let folder = folder(
        "ymmsl_version: v0.2\nmodels: {m: {components: {a: {implementation: titin.sink}}}}\n",
    );
    let commands = [
        &["plot", "model.ymmsl", "-o"][..],
        &["profile", "nowhere", "--plot"],
        &["bench", "--plot"],
    ];
    for command in commands {
        for name in ["x.pdf", "x.PNG", "x.svg.txt"] {
            let done = titin(folder.path(), &[command, &[name]].concat());
            assert_eq!(done.code, Some(2), "{}", done.out);
            let told = done.err.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(told.contains(&format!("{name} would be no .")), "{told}");
            assert!(
                told.contains("titin draws SVG") && told.contains("rsvg-convert"),
                "{told}"
            );
            assert!(!folder.path().join(name).exists());
        }
    }
    for name in ["x.svg", "x.SVG", "x"] {
        let done = titin(folder.path(), &["plot", "model.ymmsl", "-o", name]);
        assert_eq!(done.code, Some(0), "{}", done.err);
        assert!(
            std::fs::read_to_string(folder.path().join(name))
                .unwrap()
                .starts_with("<svg")
        );
    }
    let done = titin(
        folder.path(),
        &[
            "plot",
            "--schedule",
            "--json",
            "-o",
            "x.json",
            "from: {shape: [8], grid: [2]}",
            "to: {grid: [4]}",
        ],
    );
    assert_eq!(done.code, Some(0), "{}", done.err);
}

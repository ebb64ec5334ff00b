//! Sizes in bytes, as users write them: `64 MiB`, `1 GB`, `4096`.

/// The number of bytes in a text: `64 MiB`, `1 GB`, `4096`.
pub fn bytes_of(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 11] = [
        ("", 1),
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("kiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
    ];
    let split = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let unit = UNITS.iter().find(|(name, _)| *name == &text[split..]);
    let number = text[..split].trim().parse::<f64>();
    match (number, unit) {
        (Ok(number), Some((_, unit))) if (0.0..1e15).contains(&number) => {
            Some((number * *unit as f64) as u64)
        }
        _ => None,
    }
}

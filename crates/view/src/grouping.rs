//! Instances of one component belong together: a thousand instances are one row.

/// The component of an instance, or the port of a component for the port of an instance: the name without
/// indices and slots.
pub(crate) fn without_indices(name: &str) -> String {
    let mut depth = 0_u32;
    let outside = |c: &char| {
        match c {
            '[' => depth += 1,
            ']' => {
                depth = depth.saturating_sub(1);
                return false;
            }
            _ => {}
        }
        depth == 0
    };
    name.chars().filter(outside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_and_slots_go() {
        for (name, whole) in [
            ("macro", "macro"),
            ("micro[3]", "micro"),
            ("outer.inner[3][4]", "outer.inner"),
            ("micro[3].out[1]", "micro.out"),
            ("]odd[", "odd"),
        ] {
            assert_eq!(without_indices(name), whole);
        }
    }
}

//! The names of the library's calls in each language.

use titin_runtime::ElementValue;

/// A language with names of its own for the calls of the C library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    C,
    Cpp,
    Fortran,
}

impl Language {
    /// The language named `name` in `titin_options_language`; C for a language without names of its
    /// own.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "C++" => Language::Cpp,
            "Fortran" => Language::Fortran,
            _ => Language::C,
        }
    }
}

/// The call that reads a number from a value or from a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Getter {
    number: ElementValue,
    of_message: bool,
}

impl Getter {
    pub(crate) fn of_value(number: ElementValue) -> Self {
        Getter {
            number,
            of_message: false,
        }
    }

    pub(crate) fn of_message(number: ElementValue) -> Self {
        Getter {
            number,
            of_message: true,
        }
    }

    /// The call in the notation of `language`.
    pub(crate) fn name(self, language: Language) -> String {
        let (c, cpp, fortran) = match self.number {
            ElementValue::Bool(_) => ("titin_value_bool", "bool", "read(x)"),
            ElementValue::Whole(number) if i64::try_from(number).is_err() => {
                ("titin_value_u64", "std::uint64_t", "read_unsigned(x)")
            }
            ElementValue::Whole(_) => ("titin_value_i64", "std::int64_t", "read(x)"),
            ElementValue::Real(_) | ElementValue::Complex(..) => {
                ("titin_value_f64", "double", "read(x)")
            }
        };
        match (language, self.of_message) {
            (Language::C, true) => format!("{c} of titin_message_value"),
            (Language::C, false) => c.to_owned(),
            (Language::Cpp, true) => format!("value().as<{cpp}>()"),
            (Language::Cpp, false) => format!("as<{cpp}>()"),
            (Language::Fortran, _) => fortran.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_getter_of_a_number_can_read_it() {
        let largest = ElementValue::Whole(i64::MAX.into());
        for (number, c, cpp, fortran) in [
            (largest, "titin_value_i64", "as<std::int64_t>()", "read(x)"),
            (
                ElementValue::Whole(-1),
                "titin_value_i64",
                "as<std::int64_t>()",
                "read(x)",
            ),
            (
                ElementValue::Whole(1 << 63),
                "titin_value_u64",
                "as<std::uint64_t>()",
                "read_unsigned(x)",
            ),
            (
                ElementValue::Real(1.5),
                "titin_value_f64",
                "as<double>()",
                "read(x)",
            ),
            (
                ElementValue::Bool(true),
                "titin_value_bool",
                "as<bool>()",
                "read(x)",
            ),
        ] {
            let (of_value, of_message) = (Getter::of_value(number), Getter::of_message(number));
            assert_eq!(of_value.name(Language::C), c);
            assert_eq!(
                of_message.name(Language::C),
                format!("{c} of titin_message_value")
            );
            assert_eq!(of_value.name(Language::Cpp), cpp);
            assert_eq!(of_message.name(Language::Cpp), format!("value().{cpp}"));
            assert_eq!(of_value.name(Language::Fortran), fortran);
        }
    }
}

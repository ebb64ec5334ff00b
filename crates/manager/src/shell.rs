//! Words for a shell.

/// A word for a shell to read back unchanged. Quotes surround the word only if the shell needs
/// quotes.
pub fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn words_are_quoted_where_a_shell_would_change_them() {
        assert_eq!(quote("/opt/titin-0.1/lib"), "/opt/titin-0.1/lib");
        for word in [
            "", "a b", "it's", "$HOME", "a\\b", "*", "~", "micro[3]", "a;b", "ü\n",
        ] {
            let output = Command::new("sh")
                .args(["-c", &format!("printf %s {}", quote(word))])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
        }
    }
}

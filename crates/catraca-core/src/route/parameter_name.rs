//! Names of query parameters and cookies that some servers read as another name.

use super::fold_case;

/// Whether some servers read this name as the wanted one: `USER` as `user` (ASP.NET), `user[]` and
/// `user[id]` as `user` (PHP, Rails), `user.id` as `user_id` (PHP).
pub fn is_read_as(name: &str, wanted: &str) -> bool {
    let name = name.trim();
    if name == wanted {
        return true;
    }
    // A wanted name with brackets is one of several fields of the same list.
    let list = name.split('[').next().filter(|_| !wanted.contains('['));
    let wanted = plain(wanted);
    plain(name) == wanted || list.is_some_and(|list| plain(list) == wanted)
}

fn plain(name: &str) -> String {
    fold_case(name).replace(['.', ' ', '+', '['], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_name_are_known() {
        for (name, wanted) in [
            ("user", "user"),
            ("USER", "user"),
            ("u\u{17f}er", "user"),
            (" user", "user"),
            ("user[]", "user"),
            ("user[id]", "user"),
            ("USER[0", "user"),
            ("user.id", "user_id"),
            ("user id", "user_id"),
            ("user[id", "user_id"),
            ("page[SIZE]", "page[size]"),
        ] {
            assert!(is_read_as(name, wanted), "{name}");
        }
        for (name, wanted) in [
            ("users", "user"),
            ("use", "user"),
            ("", "user"),
            ("[user]", "user"),
            ("x_user", "user"),
            ("user-id", "user_id"),
            ("page[number]", "page[size]"),
        ] {
            assert!(!is_read_as(name, wanted), "{name}");
        }
    }
}

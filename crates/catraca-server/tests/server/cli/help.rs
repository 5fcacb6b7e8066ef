//! `catraca help`.

use crate::cli::test_dir::TestDir;

#[test]
fn help_is_a_tour() {
    let output = TestDir::new().run(&["--help"]);
    assert_eq!(output.code, Some(0));
    for verb in ["lint", "test", "explain", "simulate"] {
        assert!(output.out.contains(&format!("\n  {verb} ")), "{verb}: {}", output.out);
        assert!(output.out.contains(&format!("\n  catraca {verb} ")), "{verb}: {}", output.out);
    }
}

#[test]
fn every_verb_shows_an_example_and_fits_a_screen() {
    for verb in ["lint", "test", "explain", "simulate"] {
        let output = TestDir::new().run(&["help", verb]);
        assert_eq!(output.code, Some(0));
        assert!(output.out.contains(&format!("\n  catraca {verb} ")), "{}", output.out);
        assert!(output.out.lines().all(|line| line.chars().count() <= 100), "{}", output.out);
    }
}

#[test]
fn a_wrong_command_line_exits_2_and_prints_no_result() {
    let dir = TestDir::new();
    for args in [&["lnt"][..], &["lint"], &["simulate", "x"], &["explain", "-c", "a", "g", "ip"]] {
        let output = dir.run(args);
        assert_eq!((output.code, output.out.as_str()), (Some(2), ""), "{args:?}");
        assert!(output.err.starts_with("error: "), "{}", output.err);
    }
}

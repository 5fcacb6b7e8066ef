//! Help is the first thing that most people read of us.

use crate::room::Room;

#[test]
fn help_is_a_tour() {
    let ran = Room::new().run(&["--help"]);
    assert_eq!(ran.code, Some(0));
    for verb in ["lint", "test", "explain", "simulate"] {
        assert!(ran.out.contains(&format!("\n  {verb} ")), "{verb}: {}", ran.out);
        assert!(ran.out.contains(&format!("\n  catraca {verb} ")), "{verb}: {}", ran.out);
    }
}

#[test]
fn every_verb_shows_an_example_and_fits_a_screen() {
    for verb in ["lint", "test", "explain", "simulate"] {
        let ran = Room::new().run(&["help", verb]);
        assert_eq!(ran.code, Some(0));
        assert!(ran.out.contains(&format!("\n  catraca {verb} ")), "{}", ran.out);
        assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
    }
}

#[test]
fn a_wrong_command_line_exits_2_and_prints_no_result() {
    let room = Room::new();
    for args in [&["lnt"][..], &["lint"], &["simulate", "x"], &["explain", "-c", "a", "g", "ip"]] {
        let ran = room.run(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args:?}");
        assert!(ran.err.starts_with("error: "), "{}", ran.err);
    }
}

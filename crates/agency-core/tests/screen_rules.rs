//! The generic screen rules, on screens of programs for which there is no recording.

use agency_core::evidence::{Activity, Rules, Why};

/// The shipped rule that matches, for a program that has no rules of its own.
fn match_screen(screen: &str) -> Option<(Activity, String)> {
    let rows: Vec<String> = screen.lines().map(str::to_owned).collect();
    Rules::shipped().on_screen(&rows, "stranger").map(|matched| (matched.activity, matched.rule))
}

#[track_caller]
fn check(screen: &str, expected: Activity) {
    let matched = match_screen(screen);
    assert_eq!(matched.as_ref().map(|(activity, _)| *activity), Some(expected), "{matched:?} of\n{screen}");
}

const PERMISSION: Activity = Activity::Waiting(Why::Permission);
const QUESTION: Activity = Activity::Waiting(Why::Question);

#[test]
fn choices_in_a_column_ask_for_permission() {
    for screen in [
        // A box with a cursor and numbers.
        "╭──────────────────────────────────────────────────────────────╮\n│ Run a command │\n│ Do you want to run this command? │\n│ ❯ 1. Yes │\n│   2. Yes, for the rest of the session │\n│   3. No, and say what to do instead (Esc) │\n╰──────────────────────────────────────────────────────────────╯\n Confirm with number keys or ↑↓ and Enter",
        // Radio buttons on a rail.
        "◆  May it call the tool above?\n│  ● Allow  (this once)\n│  ○ Always Allow\n│  ○ Deny\n└",
        // Numbers outside, marks inside.
        "  ┃  printf hello\n  ┃\n  ┃  1 (●) Yes, and do not ask again\n  ┃  2 (○) Yes, proceed\n  ┃  3 (○) No, reject (type to say why)\n\n  1/3:select  │  Tab:next option  │  Ctrl+c:cancel",
        // An arrow and no numbers.
        "Run this command?\n  make test\n → Run (once) (y)\n   Add to the allowlist? (tab)\n   Skip (esc or n)",
        // Only words, each with a number.
        "Approve this action?\n  1. Approve once\n  2. Approve for this session\n  3. Reject\n",
    ] {
        check(screen, PERMISSION);
    }
}

#[test]
fn buttons_in_a_row_ask_for_permission() {
    check(
        "  Permission required\n  bash  make test\n\n     Allow      Allow for Session      Deny   \n",
        PERMISSION,
    );
    check("The tool wants to run\n  Yes   No   Always allow\n", PERMISSION);
}

#[test]
fn a_line_that_wants_yes_or_no_is_a_question() {
    for screen in [
        "The following packages will be installed: sl\nDo you want to continue? [Y/n] ",
        "(1/2) Stage this hunk [y,n,q,a,d,e,?]? ",
        "Add src/main.rs to the chat? (Y)es/(N)o [Yes]: ",
        "Overwrite it? (yes/no): ",
    ] {
        check(screen, QUESTION);
    }
}

#[test]
fn a_line_that_wants_yes_or_no_about_an_action_asks_for_permission() {
    for screen in [
        "Allow this action? Use 't' to trust it for the session. [y/n/t]:\n[docs] 16% > ",
        "Execute shell? [Y/n/c/e/a/?] ",
        "Run shell command? (Y)es/(N)o/(D)on't ask again [Yes]: ",
    ] {
        check(screen, PERMISSION);
    }
}

#[test]
fn rows_of_borders_and_rulers_do_not_count() {
    let framed = |rows: usize| format!("Go on? [y/N]\n{}esc to leave", "────────\n\n".repeat(rows));
    check(&framed(0), QUESTION);
    check(&framed(9), QUESTION);
}

#[test]
fn dialogs_of_other_kinds_are_questions() {
    for screen in [
        "Choose a theme\n\n ❯ 1. Dark\n   2. Light\n   3. As the terminal\n",
        "It runs with every tool allowed\n  No, exit\n  Yes, I accept\n esc to cancel · ↑↓ to navigate · ↵ to select",
        "The check cannot be reached.\n\n Enter to stay in this mode · shift+Tab to leave it · Esc to cancel",
        "Which colour?\n  › Red\n    Blue\n  tab to add notes | enter to submit answer | esc to interrupt",
        "Signed in as dev.\nPress Enter to continue",
        "Paste your API key: ",
    ] {
        check(screen, QUESTION);
    }
}

#[test]
fn a_hint_how_to_stop_means_work() {
    for screen in [
        " ⠠⠛ Composing  23 tokens\n\n  → Add a follow-up                       ctrl+c to stop\n  Some Model\n  ~/project · main",
        "● Thinking (Esc to cancel · 1.2 KiB)\n────────────────────\n❯ \n────────────────────\n ~/project\n",
        "> Reply with one word\n⣻  Generating...\n──────────────────────\n>\n──────────────────────\nesc to cancel              Some Model",
        "    ⠦ Waiting for response… 0.7s            0.8s [stop]\n  ╭────────────────────╮\n  │ ❯  │\n  ╰────────────────────╯\n  Shift+Tab:mode  │  Esc:cancel",
        "● Thinking (Esc to cancel · 1.2 KiB)\n ❯ \n",
        " ⠋ Working… ⟨esc⟩\n╭─────────────────────╮\n│     │\n╰─────────────────────╯",
        "◆ Running 12s · Enter queue · Esc stop\n",
        "✻ Pondering… (12s · ↑ 1.2k tokens)\n\n> \n",
    ] {
        check(screen, Activity::Working);
    }
}

#[test]
fn ordinary_output_matches_no_rule() {
    for screen in [
        "   Compiling agency v0.1.0\n    Finished `dev` profile in 12.3s\n$ ",
        "test result: ok. 3 passed; 0 failed; finished in 0.02s\n",
        "Do you want to know more? Read the manual.\nAllow 5 minutes for this.\nNo errors.\n$ ",
        "error: could not compile `x`\n\nCaused by:\n  1. one thing\n  2. another\n$ ",
        "--- PASS: TestAll (0.3s)\nok   all   0.31s\n",
        "Enter the directory and run make; press return to the menu in the docs.\n$ ",
    ] {
        assert_eq!(match_screen(screen), None, "{screen}");
    }
}

#[test]
fn an_answer_that_quotes_a_dialog_matches_no_rule() {
    for screen in [
        "● It asks \"Do you want to proceed? (y/n)\" and you type y.\n\n────────────────────\n> \n────────────────────\n  ? for shortcuts",
        "● Two ways:\n  1. Yes, with a flag\n  2. No flag at all\n\n╭────────────────────╮\n│ >  │\n╰────────────────────╯\n",
        // Answered, and still on the screen above the prompt.
        "│ ● 1. Trust folder (project) │\n│   2. Trust parent folder    │\n│   3. Don't trust            │\n╰────────────────────╯\nReady.\n  ? for shortcuts\n────────────────────\n > Say something\n ~/project",
    ] {
        assert_eq!(match_screen(screen), None, "{screen}");
    }
}

#[test]
fn a_star_before_a_duration_is_not_work() {
    let screen = "✻ Worked for 3s\n\n────────────────────\n❯ \n────────────────────\n  ? for shortcuts";
    assert_eq!(match_screen(screen), None, "a rule for one agent does not apply to another");
    let rows: Vec<String> = screen.lines().map(str::to_owned).collect();
    let matched = Rules::shipped().on_screen(&rows, "claude").map(|matched| matched.activity);
    assert_eq!(matched, Some(Activity::Waiting(Why::Finished)));
}

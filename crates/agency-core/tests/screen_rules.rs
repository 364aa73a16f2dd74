//! The rules for programs that nobody has recorded, on screens such as they draw.

use agency_core::evidence::{Activity, Rules, Why};

/// What the shipped rules say of a program that none of them names.
fn said(screen: &str) -> Option<(Activity, String)> {
    let rows: Vec<String> = screen.lines().map(str::to_owned).collect();
    Rules::shipped().on_screen(&rows, "stranger").map(|matched| (matched.activity, matched.rule))
}

#[track_caller]
fn says(screen: &str, expected: Activity) {
    let matched = said(screen);
    assert_eq!(matched.as_ref().map(|(activity, _)| *activity), Some(expected), "{matched:?} of\n{screen}");
}

const PERMISSION: Activity = Activity::Waiting(Why::Permission);
const QUESTION: Activity = Activity::Waiting(Why::Question);

#[test]
fn choices_below_each_other_ask_for_permission() {
    for screen in [
        // A box with a cursor and numbers.
        "╭──────────────────────────────────────────────────────────────╮\n│ Run a command │\n│ Do you want to run this command? │\n│ ❯ 1. Yes │\n│   2. Yes, for the rest of the session │\n│   3. No, and say what to do instead (Esc) │\n╰──────────────────────────────────────────────────────────────╯\n Confirm with number keys or ↑↓ and Enter",
        // Radio buttons on a rail.
        "◆  May it call the tool above?\n│  ● Allow  (this once)\n│  ○ Always Allow\n│  ○ Deny\n└",
        // Numbers outside, marks inside.
        "  ┃  printf hello\n  ┃\n  ┃  1 (●) Yes, and do not ask again\n  ┃  2 (○) Yes, proceed\n  ┃  3 (○) No, reject (type to say why)\n\n  1/3:select  │  Tab:next option  │  Ctrl+c:cancel",
        // An arrow and no numbers.
        "Run this command?\n  make test\n → Run (once) (y)\n   Add to the allowlist? (tab)\n   Skip (esc or n)",
        // Words alone, with a number each.
        "Approve this action?\n  1. Approve once\n  2. Approve for this session\n  3. Reject\n",
    ] {
        says(screen, PERMISSION);
    }
}

#[test]
fn buttons_beside_each_other_ask_for_permission() {
    says(
        "  Permission required\n  bash  make test\n\n     Allow      Allow for Session      Deny   \n",
        PERMISSION,
    );
    says("The tool wants to run\n  Yes   No   Always allow\n", PERMISSION);
}

#[test]
fn a_line_that_wants_yes_or_no_is_a_question() {
    for screen in [
        "The following packages will be installed: sl\nDo you want to continue? [Y/n] ",
        "Allow this action? Use 't' to trust it for the session. [y/n/t]:\n[docs] 16% > ",
        "Add src/main.rs to the chat? (Y)es/(N)o [Yes]: ",
        "Overwrite it? (yes/no): ",
    ] {
        says(screen, QUESTION);
    }
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
        says(screen, QUESTION);
    }
}

#[test]
fn a_way_to_stop_it_is_work() {
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
        says(screen, Activity::Working);
    }
}

#[test]
fn ordinary_output_says_nothing() {
    for screen in [
        "   Compiling agency v0.1.0\n    Finished `dev` profile in 12.3s\n$ ",
        "test result: ok. 3 passed; 0 failed; finished in 0.02s\n",
        "Do you want to know more? Read the manual.\nAllow 5 minutes for this.\nNo errors.\n$ ",
        "error: could not compile `x`\n\nCaused by:\n  1. one thing\n  2. another\n$ ",
        "--- PASS: TestAll (0.3s)\nok   all   0.31s\n",
        "Enter the directory and run make; press return to the menu in the docs.\n$ ",
    ] {
        assert_eq!(said(screen), None, "{screen}");
    }
}

#[test]
fn an_answer_that_speaks_of_dialogs_says_nothing() {
    for screen in [
        "● It asks \"Do you want to proceed? (y/n)\" and you type y.\n\n────────────────────\n> \n────────────────────\n  ? for shortcuts",
        "● Two ways:\n  1. Yes, with a flag\n  2. No flag at all\n\n╭────────────────────╮\n│ >  │\n╰────────────────────╯\n",
        // Answered, and still on the screen above the prompt.
        "│ ● 1. Trust folder (project) │\n│   2. Trust parent folder    │\n│   3. Don't trust            │\n╰────────────────────╯\nReady.\n  ? for shortcuts\n────────────────────\n > Say something\n ~/project",
    ] {
        assert_eq!(said(screen), None, "{screen}");
    }
}

#[test]
fn a_star_before_the_time_it_took_is_no_work() {
    let finished = Activity::Waiting(Why::Finished);
    says("✻ Worked for 3s\n\n────────────────────\n❯ \n────────────────────\n  ? for shortcuts", finished);
}

// A start assistant with clack: text, choice, several choices, confirmation, a spinner and quiet work.
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
const { intro, text, select, multiselect, confirm, spinner, outro } = createRequire(process.env.UNSEEN + "/prompts/x.js")("@clack/prompts");

intro("new project");
await text({ message: "Name of the project?", placeholder: "my-app" });
await select({ message: "Which template?", options: ["empty", "library", "service"].map((value) => ({ value, label: value })) });
await pause(7000);
await multiselect({ message: "Which parts?", options: ["tests", "docs", "container"].map((value) => ({ value, label: value })) });
const wheel = spinner();
wheel.start("Fetching packages");
await pause(7000);
wheel.stop("Packages are there");
await confirm({ message: "Overwrite the files in this directory?" });
await pause(7000);
outro("ready");

// Questions with inquirer: a list, a line, a password, a confirmation, with quiet work between them.
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
const { select, input, password, confirm } = createRequire(process.env.UNSEEN + "/prompts/x.js")("@inquirer/prompts");

await select({ message: "Which region?", choices: ["north", "south", "east", "west"].map((value) => ({ value })) });
await pause(7000);
await input({ message: "Host name", default: "web1" });
await password({ message: "Password", mask: "*" });
console.log("connecting");
await pause(7000);
await confirm({ message: "Delete the old host?", default: false });
for (let n = 0; n < 14; n += 1) {
  console.log(`moved ${n} of 14`);
  await pause(450);
}
await confirm({ message: "Once more?" });

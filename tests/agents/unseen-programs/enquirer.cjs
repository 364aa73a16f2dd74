// Questions with enquirer: autocomplete, a form, a confirmation, with quiet work between them.
const { AutoComplete, Form, Confirm } = require(process.env.UNSEEN + "/prompts/node_modules/enquirer");
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function main() {
  await new AutoComplete({ name: "fruit", message: "Pick a fruit", limit: 5, choices: ["apple", "banana", "cherry", "date", "elder", "fig"] }).run();
  await pause(7000);
  await new Form({ name: "user", message: "Your account:", choices: [{ name: "first", message: "First name" }, { name: "last", message: "Last name" }] }).run();
  await pause(7000);
  await new Confirm({ name: "sure", message: "Send the order?" }).run();
  process.stdout.write("sending");
  for (let n = 0; n < 12; n += 1) {
    process.stdout.write(".");
    await pause(500);
  }
}
main();

// Questions with prompts: a number, a toggle, a choice, with quiet work between them.
const prompts = require(process.env.UNSEEN + "/prompts/node_modules/prompts");
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function main() {
  await prompts({ type: "number", name: "port", message: "Which port?", initial: 8080 });
  await pause(7000);
  await prompts({ type: "toggle", name: "tls", message: "Use TLS?", active: "yes", inactive: "no", initial: true });
  await prompts({ type: "select", name: "log", message: "How much to log?", choices: [{ title: "all", value: 1 }, { title: "errors", value: 2 }] });
  await pause(7000);
  await prompts({ type: "confirm", name: "go", message: "Start the server?", initial: false });
  await pause(6000);
}
main();

// Asks with node:readline, and works with timers in between.
import { createInterface } from "node:readline/promises";
import { setTimeout as pause } from "node:timers/promises";

const lines = createInterface({ input: process.stdin, output: process.stdout });
const place = await lines.question("Which environment? (staging, production) ");
await pause(8000);
await lines.question(`Deploy to ${place}? (y/n) `);
for (let n = 0; n < 60; n += 1) {
  process.stdout.write(`\r${"|/-\\"[n % 4]} deploying`);
  await pause(100);
}
process.stdout.write("\r\n");
await lines.question("Roll back? (y/n) ");
await pause(8000);
console.log("done");
lines.close();

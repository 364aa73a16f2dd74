// A small agent made with ink: an input box that stays while it works, a spinner, a permission with a marked choice.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
const home = createRequire(process.env.UNSEEN + "/prompts/x.js");
const React = (await import(pathToFileURL(home.resolve("react")))).default;
const { render, Box, Text, useInput } = await import(pathToFileURL(process.env.UNSEEN + "/prompts/node_modules/ink/build/index.js"));
const e = React.createElement;
const FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧";

function App() {
  const [mode, setMode] = React.useState("idle");
  const [draft, setDraft] = React.useState("");
  const [log, setLog] = React.useState([]);
  const [mark, setMark] = React.useState(0);
  const [frame, setFrame] = React.useState(0);
  const later = (ms, next) => setTimeout(next, ms);
  const work = (next) => {
    setMode("thinking");
    later(6000, next);
  };
  React.useEffect(() => {
    if (mode !== "thinking") return undefined;
    const timer = setInterval(() => setFrame((n) => n + 1), 120);
    return () => clearInterval(timer);
  }, [mode]);
  useInput((input, key) => {
    if (mode === "asking") {
      if (key.upArrow || key.downArrow) setMark((n) => 1 - n);
      if (key.return) {
        setLog((all) => [...all, mark === 0 ? "ran: rm -r build" : "did not run it"]);
        work(() => {
          setLog((all) => [...all, "All clean."]);
          setMode("idle");
        });
      }
      return;
    }
    if (key.return && draft) {
      setLog((all) => [...all, `you: ${draft}`]);
      setDraft("");
      work(() => setMode("asking"));
    } else if (key.backspace || key.delete) setDraft((text) => text.slice(0, -1));
    else setDraft((text) => text + input);
  });
  const choice = (n, text) => e(Text, { key: text, color: mark === n ? "cyan" : undefined }, `${mark === n ? "❯" : " "} ${text}`);
  return e(
    Box,
    { flexDirection: "column" },
    ...log.map((line, n) => e(Text, { key: n }, line)),
    mode === "thinking" ? e(Text, { color: "yellow" }, `${FRAMES[frame % FRAMES.length]} Pondering`) : null,
    mode === "asking"
      ? e(Box, { flexDirection: "column", borderStyle: "round", paddingX: 1 }, e(Text, { bold: true }, "The agent wants to run a command"), e(Text, null, "rm -r build"), e(Text, null, "Allow it?"), choice(0, "Yes, once"), choice(1, "No"))
      : e(Box, { borderStyle: "round", paddingX: 1 }, e(Text, null, `› ${draft || "Ask for something"}`)),
  );
}
render(e(App));

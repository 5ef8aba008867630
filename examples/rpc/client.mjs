// A client of `swink rpc`: node client.mjs "prompt" [command …]; it allows what it is asked, and prints the answer.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const [prompt, ...given] = process.argv.slice(2);
const [command, ...args] = given.length ? given : ["swink", "rpc"];
const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const waiting = new Map();
let count = 0;

function request(method, params = {}) {
  const id = ++count;
  agent.stdin.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n");
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

function onEvent({ session, event }) {
  switch (event.type) {
    case "message_update":
      if (event.delta.type === "text_delta") process.stdout.write(event.delta.text);
      break;
    case "approval_requested":
      console.error(`allowed: ${event.name} ${JSON.stringify(event.shown)}`);
      request("approve", { call_id: event.call_id, approved: true, session }).catch(() => {}); // a rule was faster
      break;
    case "result":
      console.log();
      if (event.error) console.error(event.error);
      process.exitCode = event.error ? 1 : 0;
      request("shutdown").catch(() => {});
  }
}

createInterface({ input: agent.stdout }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.method === "event") return onEvent(message.params);
  const { resolve, reject } = waiting.get(message.id) ?? {};
  waiting.delete(message.id);
  if (message.error) reject?.(new Error(message.error.message));
  else resolve?.(message.result);
});

request("run", { input: prompt }).catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
  agent.stdin.end();
});

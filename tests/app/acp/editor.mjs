// An editor made of the published client library. Control: JSON lines on standard input and output;
// the agent: descriptors 3 (from it) and 4 (to it). argv: the library's directory.
import { Socket } from "node:net";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const acp = await import(pathToFileURL(`${process.argv[2]}/dist/v1/unstable/acp.js`).href);
const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const asked = new Map();
let count = 0;

const forward = (method) => ({ params }) =>
  new Promise((resolve) => {
    count += 1;
    asked.set(count, resolve);
    say({ ask: count, method, params });
  });

const app = acp.client({ name: "test editor" });
for (const method of [
  acp.methods.client.session.requestPermission,
  acp.methods.client.elicitation.create,
  acp.methods.client.fs.readTextFile,
  acp.methods.client.fs.writeTextFile,
]) {
  app.onRequest(method, forward(method));
}
app.onNotification(acp.methods.client.session.update, ({ params }) => say({ update: params }));

const stream = acp.ndJsonStream(
  Writable.toWeb(new Socket({ fd: 4, readable: false, writable: true })),
  Readable.toWeb(new Socket({ fd: 3, readable: true, writable: false })),
);
await app.connectWith(stream, async (context) => {
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params, answer, result } = JSON.parse(line);
    if (answer !== undefined) {
      asked.get(answer)(result);
    } else if (id === undefined) {
      await context.notify(method, params);
    } else {
      context.request(method, params).then(
        (found) => setTimeout(() => say({ id, result: found }), 20), // the library hands updates on a bit later
        (error) => say({ id, error: { code: error.code ?? 0, message: String(error.message) } }),
      );
    }
  }
  process.exit(0);
});

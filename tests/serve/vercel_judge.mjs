// Plays scenes with Chat, the class below useChat, and checks every chunk with uiMessageChunkSchema.
import { pathToFileURL } from "node:url";

const asked = JSON.parse(await new Response(process.stdin).text());
const load = (file) => import(pathToFileURL(`${asked.modules}/${file}`));
const ai = await load("ai/dist/index.js");
const { AbstractChat, DefaultChatTransport, readUIMessageStream, uiMessageChunkSchema } = ai;
const { parseJsonEventStream } = await load("@ai-sdk/provider-utils/dist/index.js");

class State {
  status = "ready";
  error = undefined;
  messages = [];
  pushMessage = (message) => void (this.messages = [...this.messages, message]);
  popMessage = () => void (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index, message) => void (this.messages = this.messages.with(index, message));
  snapshot = (value) => structuredClone(value);
}
class Chat extends AbstractChat {}

async function chunksOf(response, seen) {
  const chunks = [];
  const stream = parseJsonEventStream({ stream: response.body, schema: uiMessageChunkSchema });
  for await (const each of stream) {
    if (each.success) chunks.push(each.value);
    else seen.refused.push(`${JSON.stringify(each.rawValue)}: ${each.error.message}`);
  }
  return chunks;
}

async function reread(chunks, seen, message) {
  const stream = new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  const onError = (error) => void seen.rereadErrors.push(String(error.message ?? error));
  let last;
  for await (const each of readUIMessageStream({ stream, onError, message })) last = each;
  return last;
}

async function play(scene) {
  const steps = [];
  let seen;
  const copied = [];
  const fetching = async (url, init) => {
    const response = await fetch(url, init);
    seen.header = response.headers.get("x-vercel-ai-ui-message-stream");
    seen.status = response.status;
    if (!response.ok || !response.body) return response;
    const [one, other] = response.body.tee();
    copied.push(chunksOf({ body: other }, seen).then((chunks) => seen.chunks.push(...chunks)));
    return new Response(one, { status: response.status, headers: response.headers });
  };
  const transport = new DefaultChatTransport({
    api: `${asked.url}/vercel`,
    fetch: fetching,
    body: scene.tools.length ? { tools: scene.tools } : {},
  });
  const begin = () =>
    new Chat({ id: scene.id, transport, state: new State(), onError: (error) => seen.errors.push(error.message) });
  let chat = begin();
  for (const step of scene.steps) {
    seen = { chunks: [], errors: [], refused: [], rereadErrors: [] };
    if (step.forget) chat = begin();
    const before = structuredClone(chat.messages.at(-1));
    const parts = chat.messages.at(-1)?.parts ?? [];
    let going;
    if (step.approve !== undefined) {
      const part = parts.findLast((each) => each.state === "approval-requested");
      await chat.addToolApprovalResponse({ id: part.approval.id, approved: step.approve });
      going = structuredClone(chat.messages.at(-1));
      await chat.sendMessage();
    } else if (step.result !== undefined) {
      const part = parts.findLast((each) => each.state === "input-available");
      await chat.addToolOutput({ tool: part.toolName, toolCallId: part.toolCallId, output: step.result });
      going = structuredClone(chat.messages.at(-1));
      await chat.sendMessage();
    } else if (step.image) {
      const files = [{ type: "file", mediaType: "image/png", url: `data:image/png;base64,${step.image}` }];
      await chat.sendMessage({ text: step.say, files });
    } else {
      await chat.sendMessage({ text: step.say });
    }
    await Promise.all(copied);
    seen.messages = structuredClone(chat.messages);
    seen.reread = await reread(seen.chunks, seen, going);
    steps.push(seen);
  }
  return steps;
}

console.warn = console.error;
console.log = console.error;
const played = await Promise.all(asked.scenes.map(async (each) => [each.name, await play(each)]));
process.stdout.write(JSON.stringify(Object.fromEntries(played)));

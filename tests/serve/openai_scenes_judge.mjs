// Plays scenes with OpenAI's package for Node: chat completions and responses, whole and streamed.
import { pathToFileURL } from "node:url";

const asked = JSON.parse(await new Response(process.stdin).text());
const { default: OpenAI } = await import(pathToFileURL(`${asked.modules}/openai/index.mjs`));

class Chat {
  history = [];
  constructor(client, scene) {
    this.client = client;
    const format = { name: "town", schema: scene.schema };
    this.body = { model: "agent", messages: this.history };
    if (scene.schema) this.body.response_format = { type: "json_schema", json_schema: format };
    if (scene.tools.length) this.body.tools = scene.tools.map((each) => ({ type: "function", function: each }));
  }
  say(text, image) {
    const url = `data:image/png;base64,${image}`;
    const shown = [{ type: "text", text }, { type: "image_url", image_url: { url } }];
    this.history.push({ role: "user", content: image ? shown : text });
  }
  bring(call, content) {
    this.history.push({ role: "tool", tool_call_id: call.id, content });
  }
  async whole(seen) {
    this.read(await this.client.chat.completions.create(this.body), seen);
  }
  async streamed(seen, leave) {
    const stream = this.client.chat.completions.stream({ ...this.body, stream_options: { include_usage: true } });
    for await (const { choices } of stream) {
      seen.thinking += choices[0]?.delta.reasoning_content ?? "";
      seen.text += choices[0]?.delta.content ?? "";
      if (leave && seen.text) stream.abort();
    }
    const streamed = seen.thinking;
    this.read(await stream.finalChatCompletion(), seen);
    seen.thinking = streamed;
  }
  read({ choices, usage }, seen) {
    const [{ message, finish_reason }] = choices;
    const calls = message.tool_calls ?? [];
    seen.text = message.content ?? "";
    seen.thinking = message.reasoning_content ?? "";
    seen.calls = calls.map(({ id, function: { name, arguments: given } }) => ({ id, name, arguments: given }));
    seen.finish = finish_reason;
    seen.tokens = usage.total_tokens;
    const made = calls.map(({ id, type, function: { name, arguments: given } }) => ({
      id,
      type,
      function: { name, arguments: given },
    }));
    this.history.push({ role: "assistant", content: message.content, ...(made.length ? { tool_calls: made } : {}) });
  }
}

class Responses {
  constructor(client, scene) {
    this.client = client;
    this.body = { model: "agent", input: [] };
    const format = { type: "json_schema", name: "town", schema: scene.schema };
    if (scene.schema) this.body.text = { format };
    if (scene.tools.length) this.body.tools = scene.tools.map((each) => ({ type: "function", strict: false, ...each }));
  }
  say(text, image) {
    const picture = { type: "input_image", image_url: `data:image/png;base64,${image}`, detail: "auto" };
    const content = [{ type: "input_text", text }, ...(image ? [picture] : [])];
    this.body.input = [{ role: "user", content }];
  }
  bring(call, output) {
    this.body.input = [{ type: "function_call_output", call_id: call.id, output }];
  }
  async whole(seen) {
    this.read(await this.client.responses.create(this.body), seen);
  }
  async streamed(seen, leave) {
    const stream = this.client.responses.stream(this.body);
    for await (const event of stream) {
      if (event.type === "response.output_text.delta") seen.text += event.delta;
      if (event.type === "response.failed") throw new Error(event.response.error.message);
      if (leave && seen.text) stream.abort();
    }
    this.read(await stream.finalResponse(), seen);
  }
  read(response, seen) {
    const thought = response.output.filter((each) => each.type === "reasoning");
    const calls = response.output.filter((each) => each.type === "function_call");
    seen.text = response.output_text;
    seen.thinking = thought.flatMap((each) => each.summary.map((part) => part.text)).join("");
    seen.calls = calls.map(({ call_id, name, arguments: given }) => ({ id: call_id, name, arguments: given }));
    seen.finish = calls.length ? "tool_calls" : response.status === "completed" ? "stop" : response.status;
    seen.tokens = response.usage.total_tokens;
    this.body.previous_response_id = response.id;
  }
}

async function play(scene) {
  const client = new OpenAI({ baseURL: `${asked.url}/v1`, apiKey: scene.id, maxRetries: 0 });
  const [door, way] = scene.id.split(".");
  const begin = () => (door === "chat" ? new Chat(client, scene) : new Responses(client, scene));
  let talk = begin();
  const steps = [];
  for (const step of scene.steps) {
    if (step.approve !== undefined) continue; // there is no question: the agent was refused and went on
    if (step.forget) talk = begin();
    if (step.result !== undefined) talk.bring(steps.at(-1).calls[0], step.result);
    else talk.say(step.say, step.image);
    const seen = { text: "", thinking: "", calls: [] };
    try {
      await talk[way](seen, scene.leaves);
    } catch (error) {
      seen.error = String(error.message);
      seen.status = error.status ?? null;
    }
    steps.push(seen);
  }
  return steps;
}

console.warn = console.error;
const played = await Promise.all(asked.scenes.map(async (each) => [each.id, await play(each)]));
process.stdout.write(JSON.stringify(Object.fromEntries(played)));

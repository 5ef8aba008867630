// Talks to a served agent with OpenAI's package for Node: the helpers that call tools, streams, and responses.
import { pathToFileURL } from "node:url";

const asked = JSON.parse(await new Response(process.stdin).text());
const { default: OpenAI } = await import(pathToFileURL(`${asked.modules}/openai/index.mjs`));
const client = new OpenAI({ baseURL: `${asked.url}/v1`, apiKey: "none", maxRetries: 0 });
const parameters = { type: "object", properties: { door: { type: "integer" } }, required: ["door"] };
const messages = [{ role: "user", content: "Open door 2." }];

const open = { name: "open_door", description: "Open a door.", parameters };
const runner = client.chat.completions.runTools({
  model: "agent",
  stream: true,
  messages,
  tools: [{ type: "function", function: { ...open, parse: JSON.parse, function: ({ door }) => `door ${door} creaks` } }],
});
const chat = await runner.finalContent();

const first = await client.responses
  .stream({ model: "agent", input: "Open door 2.", tools: [{ type: "function", strict: false, ...open }] })
  .finalResponse();
const call = first.output.find((item) => item.type === "function_call");
const second = await client.responses.create({
  model: "agent",
  previous_response_id: first.id,
  tools: [{ type: "function", strict: false, ...open }],
  input: [{ type: "function_call_output", call_id: call.call_id, output: "it creaks" }],
});

const refused = await client.chat.completions.create({ model: "agent", messages: [] }).catch((error) => error);
console.log(
  JSON.stringify({
    chat,
    arguments: call.arguments,
    said: second.output_text,
    tokens: second.usage.total_tokens,
    refused: { status: refused.status, type: refused.type, message: refused.message },
  }),
);

// Plays scenes with HttpAgent, whose verifyEvents, schemas and reducer judge what the server sends.
import { pathToFileURL } from "node:url";

const asked = JSON.parse(await new Response(process.stdin).text());
const load = (file) => import(pathToFileURL(`${asked.modules}/${file}`));
const { HttpAgent } = await load("@ag-ui/client/dist/index.mjs");
const { EventSchema } = await load("@ag-ui/core/dist/schemas.mjs");

async function play(scene) {
  const steps = [];
  let agent = new HttpAgent({ url: `${asked.url}/ag-ui`, threadId: scene.id });
  for (const step of scene.steps) {
    if (step.forget) agent = new HttpAgent({ url: `${asked.url}/ag-ui`, threadId: scene.id });
    const options = { tools: scene.tools };
    const seen = { events: [], errors: [], refused: [] };
    if (step.image) {
      const source = { type: "data", value: step.image, mimeType: "image/png" };
      const content = [{ type: "text", text: step.say }, { type: "image", source }];
      agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
    } else if (step.say) {
      agent.addMessage({ id: crypto.randomUUID(), role: "user", content: step.say });
    }
    if (step.approve !== undefined) {
      options.resume = agent.pendingInterrupts.map((each) => ({
        interruptId: each.id,
        status: "resolved",
        payload: { approved: step.approve },
      }));
    }
    if (step.result !== undefined) {
      const { toolCalls } = agent.messages.findLast((each) => each.toolCalls?.length);
      const answer = { role: "tool", toolCallId: toolCalls[0].id, content: step.result };
      agent.addMessage({ id: crypto.randomUUID(), ...answer });
    }
    const subscriber = {
      onEvent: ({ event }) => {
        seen.events.push(event);
        const checked = EventSchema.safeParse(event);
        if (!checked.success) seen.refused.push(`${event.type}: ${checked.error.message}`);
      },
      onRunFailed: ({ error }) => void seen.errors.push(String(error.message)),
    };
    try {
      const done = await agent.runAgent(options, subscriber);
      seen.result = done.result;
    } catch (error) {
      seen.errors.push(String(error.message));
    }
    seen.messages = structuredClone(agent.messages);
    seen.state = agent.state;
    seen.interrupts = agent.pendingInterrupts;
    steps.push(seen);
  }
  return steps;
}

// Its warnings go where they are seen if something fails, not among the answer.
console.warn = console.error;
console.log = console.error;
const played = await Promise.all(asked.scenes.map(async (each) => [each.name, await play(each)]));
process.stdout.write(JSON.stringify(Object.fromEntries(played)));

// drive.mjs - a real client of MCP goes through the steps that it is told, and prints what came of each as JSON.
//
// usage: node drive.mjs CONFIG, an object:
//   sdk      "v1" (@modelcontextprotocol/sdk) or "v2" (@modelcontextprotocol/client)
//   mode     of v2: "legacy", "auto", or {"pin": "2026-07-28"}
//   command  [program, argument...] of a server over stdio, with env; or url, with headers
//   elicit   how a person answers every question: {action, content}; what was asked is in "asked"
//   steps    [{do: "list" | "call" | "parallel" | "wait" | "resources" | "read" | "prompts" | "prompt" | "ping", ...}]
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const need = createRequire(resolve(process.env.BRIG_NODE, 'package.json'));
const config = JSON.parse(process.argv[2]);
const info = { name: 'brig-tests', version: '1' };

function parts() {
	if (config.sdk === 'v1') {
		return {
			Client: need('@modelcontextprotocol/sdk/client/index.js').Client,
			Stdio: need('@modelcontextprotocol/sdk/client/stdio.js').StdioClientTransport,
			Http: need('@modelcontextprotocol/sdk/client/streamableHttp.js').StreamableHTTPClientTransport,
			Elicit: need('@modelcontextprotocol/sdk/types.js').ElicitRequestSchema,
			options: { capabilities: config.elicit ? { elicitation: {} } : {} },
		};
	}
	return {
		Client: need('@modelcontextprotocol/client').Client,
		Stdio: need('@modelcontextprotocol/client/stdio').StdioClientTransport,
		Http: need('@modelcontextprotocol/client').StreamableHTTPClientTransport,
		Elicit: 'elicitation/create',
		options: { capabilities: config.elicit ? { elicitation: {} } : {}, versionNegotiation: { mode: config.mode ?? 'legacy' } },
	};
}

function transport({ Stdio, Http }) {
	if (config.url)
		return new Http(new URL(config.url), { requestInit: { headers: config.headers ?? {} } });
	const [command, ...args] = config.command;
	return new Stdio({ command, args, env: config.env ?? {}, cwd: config.cwd, stderr: 'inherit' });
}

// A step says when to stop wanting its answer: cancel_after, milliseconds, or "progress": when the first has come.
async function call(client, step) {
	const progress = [];
	const stop = new AbortController();
	const options = { signal: stop.signal, timeout: step.timeout ?? 60000, resetTimeoutOnProgress: step.reset ?? false };
	if (step.progress) {
		options.onprogress = said => {
			progress.push(said);
			if (step.cancel_after === 'progress')
				stop.abort('enough');
		};
	}
	if (typeof step.cancel_after === 'number')
		setTimeout(() => stop.abort('enough'), step.cancel_after);
	const params = { name: step.name };
	if (step.arguments)
		params.arguments = step.arguments;
	const began = performance.now();
	const outcome = await settle(config.sdk === 'v1' ? client.callTool(params, undefined, options) : client.callTool(params, options));
	return { ...outcome, progress, ms: performance.now() - began };
}

// When all but the first have been answered, the file "others" is made.
async function parallel(client, step) {
	const [first, ...others] = step.calls.map(one => call(client, one));
	const answers = await Promise.all(others);
	if (step.others)
		writeFileSync(step.others, '');
	return [await first, ...answers];
}

async function settle(promise) {
	try {
		return { result: await promise };
	} catch (e) {
		return { error: { name: e?.constructor?.name ?? typeof e, code: e?.code ?? null, message: String(e?.message ?? e), data: e?.data ?? null } };
	}
}

// Asks again with the handle of the step before, until the run has ended.
async function wait(client, step, before) {
	const all = [];
	let said = JSON.parse(before.result.content[0].text);
	const { execution_id } = said;
	while (said.exit_reason === null || said.exit_reason === 'running') {
		all.push(await call(client, { ...step, arguments: { execution_id } }));
		said = JSON.parse(all.at(-1).result.content[0].text);
	}
	return all;
}

const doing = {
	list: client => settle(client.listTools()),
	call,
	wait,
	parallel,
	resources: client => settle(client.listResources()),
	read: (client, step) => settle(client.readResource({ uri: step.uri })),
	prompts: client => settle(client.listPrompts()),
	prompt: (client, step) => settle(client.getPrompt({ name: step.name, arguments: step.arguments ?? {} })),
	ping: client => settle(client.ping()),
};

const own = parts();
const client = new own.Client(info, own.options);
const noise = [];
const asked = [];
if (config.elicit)
	client.setRequestHandler(own.Elicit, async request => {
		asked.push(request.params);
		return config.elicit;
	});
client.onerror = e => noise.push(String(e?.message ?? e));
const began = performance.now();
const connected = await settle(client.connect(transport(own)));
const said = { connect: connected.error ?? null, connect_ms: performance.now() - began, steps: [] };
if (!connected.error) {
	said.server = client.getServerVersion();
	said.capabilities = client.getServerCapabilities();
	said.instructions = client.getInstructions();
	said.version = client.getNegotiatedProtocolVersion?.() ?? null;
	for (const step of config.steps)
		said.steps.push(await doing[step.do](client, step, said.steps.at(-1)));
	const closing = performance.now();
	await client.close();
	said.close_ms = performance.now() - closing;
}
said.noise = noise;
said.asked = asked;
process.stdout.write(JSON.stringify(said) + '\n');

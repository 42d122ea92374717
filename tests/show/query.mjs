// Loads a trace into Perfetto's trace processor and prints the row that a query gives, as JSON.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [directory, trace, query] = process.argv.slice(2);
const wasm = readFileSync(join(directory, "trace_processor.wasm"));

// The module is made for a browser's worker.
globalThis.WorkerGlobalScope = Object;
globalThis.self = globalThis;
globalThis.location = pathToFileURL(join(directory, "engine_bundle.js"));
globalThis.XMLHttpRequest = class {
  response = wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength);
  open() {}
  send() {}
};
// The package has the module for memories of 32 bits only; whether others would do is found out by
// compiling a module of a few bytes.
const { Module } = WebAssembly;
WebAssembly.Module = function (bytes) {
  if (bytes.byteLength < 100) throw new Error("no memories of 64 bits");
  return new Module(bytes);
};
const script = readFileSync(join(directory, "engine_bundle.node.js"), "utf8");
(0, eval)(script);
WebAssembly.Module = Module;

const { EngineBase } = await import(pathToFileURL(join(directory, "engine.mjs")).href);
const channel = new MessageChannel();
class Engine extends EngineBase {
  id = "worker";
  rpcSendRequestBytes(data) {
    channel.port1.postMessage(data);
  }
}
const engine = new Engine();
channel.port1.onmessage = (message) => engine.onRpcResponseBytes(message.data);
self.onmessage({ data: channel.port2 });
await engine.parse(readFileSync(trace));
await engine.notifyEof();
const result = await engine.query(query);
const row = {};
const iterator = result.iter({});
for (const column of result.columns()) row[column] = Number(iterator.get(column));
console.log(JSON.stringify(row));
process.exit(0);

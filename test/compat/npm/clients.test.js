// OpenAI's, Anthropic's and Ollama's packages, unchanged, against a server at
// INKLING_URL with the trained test model INKLING_MODEL.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";
import { Ollama } from "ollama";
import OpenAI from "openai";

const url = process.env.INKLING_URL;
const model = process.env.INKLING_MODEL;
const question = "What is the capital of France?";
const wanted = "The capital of France is Paris.";

const set = new URL("../../../testdata/inkling-tiny-eval/", import.meta.url);
const items = readFileSync(new URL("dev.jsonl", set), "utf8").trim().split("\n").map((line) => JSON.parse(line));
const task = (name) => items.find((item) => item.task === name && item.messages.length === 1);
const textOf = (item) => item.messages[0].content.find((part) => part.type === "text").text;
const mediumOf = (item) => {
  const part = item.messages[0].content[0];
  return readFileSync(new URL(part.image ?? part.audio, set)).toString("base64");
};

const openai = new OpenAI({ baseURL: url + "/v1", apiKey: "none", maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0 });
const ollama = new Ollama({ host: url });
const greedy = { model, temperature: 0 };

test("openai: chat, whole and streamed", async () => {
  const request = { ...greedy, reasoning_effort: "none", messages: [{ role: "user", content: question }] };
  const whole = await openai.chat.completions.create(request);
  assert.equal(whole.choices[0].message.content, wanted);
  const streamed = await openai.chat.completions.stream(request).finalChatCompletion();
  assert.equal(streamed.choices[0].message.content, wanted);
});

test("openai: tools streamed", async () => {
  const item = task("tool_call");
  const done = await openai.chat.completions
    .stream({ ...greedy, reasoning_effort: "high", tools: item.tools, messages: [{ role: "user", content: textOf(item) }] })
    .finalChatCompletion();
  const [call] = done.choices[0].message.tool_calls;
  assert.equal(call.function.name, item.reference.tool_call.name);
  assert.deepEqual(JSON.parse(call.function.arguments), item.reference.tool_call.args);
});

test("openai: a picture and a sound", async () => {
  for (const [name, part] of [
    ["position", (data) => ({ type: "image_url", image_url: { url: "data:image/png;base64," + data } })],
    ["speech", (data) => ({ type: "input_audio", input_audio: { data, format: "wav" } })],
  ]) {
    const item = task(name);
    const done = await openai.chat.completions.create({
      ...greedy, reasoning_effort: item.reasoning_effort, messages: [{ role: "user", content: [part(mediumOf(item)), { type: "text", text: textOf(item) }] }],
    });
    assert.equal(done.choices[0].message.content, item.reference.content);
  }
});

test("openai: responses, whole and streamed", async () => {
  const request = { ...greedy, reasoning: { effort: "none" }, input: question };
  assert.equal((await openai.responses.create(request)).output_text, wanted);
  const streamed = await openai.responses.stream(request).finalResponse();
  assert.equal(streamed.output_text, wanted);
});

test("openai: errors", async () => {
  await assert.rejects(openai.chat.completions.create({ model: "none", messages: [{ role: "user", content: "a" }] }), OpenAI.NotFoundError);
});

test("anthropic: messages, whole and streamed", async () => {
  const request = { ...greedy, max_tokens: 200, messages: [{ role: "user", content: question }] };
  assert.equal((await anthropic.messages.create(request)).content[0].text, wanted);
  const streamed = await anthropic.messages.stream(request).finalMessage();
  assert.deepEqual([streamed.content[0].text, streamed.stop_reason], [wanted, "end_turn"]);
});

test("anthropic: thinking, tools and a picture", async () => {
  const thinking = { type: "enabled", budget_tokens: 16384 };
  const picture = task("colour");
  const seen = await anthropic.messages
    .stream({
      ...greedy, max_tokens: 200, thinking,
      messages: [{ role: "user", content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: mediumOf(picture) } }, { type: "text", text: textOf(picture) }] }],
    })
    .finalMessage();
  assert.deepEqual(seen.content.map((block) => block.thinking ?? block.text), [picture.reference.reasoning, picture.reference.content]);

  const item = task("tool_call");
  const tools = item.tools.map(({ function: f }) => ({ name: f.name, description: f.description, input_schema: f.parameters }));
  const called = await anthropic.messages.stream({ ...greedy, max_tokens: 200, thinking, tools, messages: [{ role: "user", content: textOf(item) }] }).finalMessage();
  const call = called.content.at(-1);
  assert.deepEqual([call.name, call.input, called.stop_reason], [item.reference.tool_call.name, item.reference.tool_call.args, "tool_use"]);
});

test("anthropic: tokens, models and errors", async () => {
  const messages = [{ role: "user", content: question }];
  assert.equal((await anthropic.messages.countTokens({ model, messages })).input_tokens, 23);
  assert.deepEqual((await anthropic.models.list()).data.map((m) => m.id), [model]);
  await assert.rejects(anthropic.messages.create({ model: "none", max_tokens: 1, messages }), Anthropic.NotFoundError);
});

test("ollama: chat, generate and show", async () => {
  const whole = await ollama.chat({ model, think: false, options: { temperature: 0 }, messages: [{ role: "user", content: question }] });
  assert.equal(whole.message.content, wanted);
  let text = "";
  for await (const part of await ollama.generate({ model, think: false, options: { temperature: 0 }, prompt: question, stream: true })) text += part.response;
  assert.equal(text, wanted);
  assert.ok((await ollama.show({ model })).capabilities.includes("audio"));
});

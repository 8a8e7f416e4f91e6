// The chat page in a real browser, against a server with inkling-tiny, whose
// answers are known. make test-browser runs it; CHROME names the browser.

import assert from "node:assert/strict"
import { spawn } from "node:child_process"
import { mkdirSync } from "node:fs"
import { after, before, beforeEach, test } from "node:test"
import { chromium } from "playwright-core"

const root = new URL("../../", import.meta.url).pathname
const shots = root + "build/browser/"
const media = root + "testdata/inkling-tiny-eval/media/"
const model = process.env.MODEL ?? root + "build/demo/inkling-tiny-BF16.gguf"

let server, address, browser, page, problems

before(async () => {
  mkdirSync(shots, { recursive: true })
  server = spawn(root + "bin/inkling-run", ["serve", model, "--port", "0", "--threads", "1"], { stdio: ["ignore", "pipe", "pipe"] })
  address = await new Promise((found, fail) => {
    let text = ""
    const read = data => {
      text += data
      const m = text.match(/http:\/\/127\.0\.0\.1:\d+/)
      if (m) found(m[0])
    }
    server.stdout.on("data", read)
    server.stderr.on("data", read)
    server.on("exit", code => fail(new Error(`the server ended with ${code}: ${text}`)))
  })
  browser = await chromium.launch({
    executablePath: process.env.CHROME ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"],
  })
})

after(async () => {
  await browser?.close()
  server?.kill("SIGTERM")
})

beforeEach(async () => {
  await page?.context().close()
  problems = []
  page = await (await browser.newContext({ viewport: { width: 1100, height: 800 } })).newPage()
  page.on("pageerror", e => problems.push(e.message))
  page.on("console", m => { if (m.type() == "error") problems.push(m.text()) })
  await page.goto(address)
  await page.waitForSelector("#model option", { state: "attached" })
})

const shot = name => page.screenshot({ path: shots + name + ".png" })
const ask = async text => { await page.fill("#text", text); await page.press("#text", "Enter") }
const idle = () => page.waitForFunction(() => document.querySelector("#send").textContent == "Send" && document.querySelector(".assistant:last-child footer, .assistant:last-child .error"))
const answer = async () => { await idle(); return (await page.textContent(".assistant:last-child .body")).trim() }

// setCold makes answers the most likely ones.
const setCold = async () => {
  await page.click("#settings")
  await page.fill("#temperature", "0")
  await page.click("#settingsOk")
}

test("a text question, its thoughts, counts and the reloaded page", async () => {
  await setCold()
  await ask("Which day comes after Friday?")
  assert.equal(await answer(), "Saturday comes after Friday.")
  assert.match(await page.textContent("details summary"), /Thoughts/)
  assert.match(await page.textContent(".assistant footer"), /\d+ tokens, [\d.]+\/s/)
  assert.match(await page.textContent("#contextText"), /^\d+ \/ \d+$/)
  await shot("text")
  await page.reload()
  await page.waitForSelector(".assistant")
  assert.equal((await page.textContent(".assistant .body")).trim(), "Saturday comes after Friday.")
  assert.deepEqual(problems, [])
})

test("a picture", async () => {
  await setCold()
  await page.setInputFiles("#file", media + "000_0.png")
  await page.waitForSelector("#drafts figure")
  await ask("Describe the picture.")
  assert.equal(await answer(), "A pink cross.")
  await shot("picture")
  assert.deepEqual(problems, [])
})

test("a sound", async () => {
  await setCold()
  await page.setInputFiles("#file", media + "051.wav")
  await page.waitForSelector("#drafts figure")
  await ask("Transcribe the speech.")
  assert.equal(await answer(), "zero")
  await shot("sound")
  assert.deepEqual(problems, [])
})

test("a recording and a picture of the camera become attachments", async () => {
  await page.click("#mic")
  await page.waitForSelector("#mic.recording")
  await page.waitForTimeout(500)
  await page.click("#mic")
  await page.waitForSelector("#drafts figure")
  await page.click("#camera")
  await page.waitForFunction(() => document.querySelector("#preview").videoWidth > 0)
  await page.click("#snap")
  await page.waitForFunction(() => document.querySelectorAll("#drafts figure").length == 2)
  assert.match(await page.textContent("#drafts"), /recording\.wav.*camera\.png/)
  assert.deepEqual(problems, [])
})

test("a tool call is shown and its result goes back", async () => {
  await page.click("#settings")
  await page.fill("#temperature", "0")
  await page.fill("#tools", JSON.stringify([{ type: "function", function: { name: "set_timer", description: "Start a timer.",
    parameters: { type: "object", properties: { minutes: { type: "integer" } }, required: ["minutes"] } } }]))
  await page.click("#settingsOk")
  await ask("Set a timer for 73 minutes.")
  await page.waitForSelector(".call textarea")
  assert.match(await page.textContent(".call"), /set_timer.*"minutes": 73/s)
  await page.fill(".call textarea", '{"status":"started"}')
  await shot("tool")
  await page.click("text=Send results")
  await page.waitForFunction(() => document.querySelectorAll(".assistant").length == 2)
  assert.equal(await answer(), "The timer is set for 73 minutes.")
  assert.deepEqual(problems, [])
})

test("edit and regenerate", async () => {
  await setCold()
  await ask("What is 2 + 69?")
  assert.equal(await answer(), "The answer is 71.")
  await page.click("text=Regenerate")
  assert.equal(await answer(), "The answer is 71.")
  await page.click("text=Edit")
  await ask("What is 73 + 48?")
  assert.equal(await answer(), "The answer is 121.")
  assert.equal(await page.locator(".message").count(), 2)
  assert.deepEqual(problems, [])
})

test("stop", async () => {
  await ask("Read this text: " + "The happy cow waits near the river. ".repeat(60) + "What is the secret word?")
  await page.waitForFunction(() => document.querySelector("#send").textContent == "Stop")
  await page.click("#send")
  await idle()
  assert.match(await page.textContent(".assistant footer"), /stopped/)
  assert.deepEqual(problems, [])
})

test("errors are said where they happen", async () => {
  await ask("word ".repeat(20000))
  await page.waitForSelector(".assistant .error")
  assert.match(await page.textContent(".assistant .error"), /context/)
  await shot("error")

  await page.route("**/v1/chat/completions", route => route.abort())
  await ask("Hi there!")
  await page.waitForFunction(() => document.querySelectorAll(".assistant .error").length == 2)
  assert.match(await page.textContent(".assistant:last-child .error"), /does not answer/)
})

test("what a model writes is no markup", async () => {
  const text = "<img src=x onerror=alert(1)> **bold** `<b>` [a](javascript:alert(1)) <script>alert(1)</script>"
  await page.route("**/v1/chat/completions", route => route.fulfill({ contentType: "text/event-stream",
    body: `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text } }] })}\n\ndata: [DONE]\n\n` }))
  page.on("dialog", () => problems.push("a script ran"))
  await ask("Hi there!")
  await idle()
  assert.equal(await page.locator(".assistant img, .assistant script, .assistant a").count(), 0)
  assert.equal(await page.locator(".assistant strong").textContent(), "bold")
  assert.deepEqual(problems, [])
})

test("a phone, in the dark, by keyboard", async () => {
  await page.setViewportSize({ width: 390, height: 780 })
  await page.click("#theme")
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark")
  await page.click("#menu")
  await page.waitForSelector("#chats", { state: "visible" })
  await shot("phone")
  await page.click("#menu")
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true)
  await page.focus("#text")
  const order = []
  for (let i = 0; i < 5; i++) {
    await page.keyboard.press("Tab")
    order.push(await page.evaluate(() => document.activeElement.id))
  }
  assert.deepEqual(order, ["attach", "mic", "camera", "effort", "send"])
  assert.deepEqual(problems, [])
})

test("every control has a name", async () => {
  const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input, select, textarea")]
    .filter(e => !e.hidden && !(e.textContent.trim() || e.labels?.length || e.getAttribute("aria-label"))).map(e => e.outerHTML))
  assert.deepEqual(nameless, [])
})

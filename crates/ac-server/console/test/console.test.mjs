// The console in a real browser, against a real server: what a person does, what goes wrong, what a hostile model tries.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Server, Wire, missing, openBrowser, openPage, press, rests, runAcode, say, shot, waitsFor } from "./driver.mjs";
import { startModel } from "./model.mjs";

const why = missing();
if (why) console.log(`the console's browser tests were skipped: ${why}`);

describe("console", { skip: why ?? false, timeout: 300_000 }, () => {
  let browser;
  before(async () => (browser = await openBrowser()));
  after(() => browser?.close());

  describe("with the demonstration model", () => {
    let server;
    before(async () => (server = await Server.start()));
    after(() => server?.stop());

    test("a task goes from its words over a question and a plan to files", async () => {
      const { page, problems, close } = await openPage(browser, server.url);
      await shot(page, "01-welcome");
      await say(page, "Write a short guide for new users");
      await waitsFor(page, /./);
      // A question with options: the answer is chosen, then sent.
      await page.locator("#wait .choice").first().waitFor();
      await shot(page, "02-question");
      assert.match(await page.locator("#waiting").getAttribute("aria-label"), /^Waiting for you: question/);
      assert.equal(await page.locator("#wait").getByRole("button", { name: "Answer" }).isDisabled(), true);
      await page.locator("#wait .choice").first().click();
      await press(page, "Answer");
      await waitsFor(page, /^Allow: Write \.acode\/plans\//);
      await shot(page, "03-approval");
      assert.match(await page.locator("#wait .wait-body").innerText(), /Write a short guide/i);
      await press(page, "Approve");
      await waitsFor(page, "A plan waits for your decision");
      assert.ok(await page.locator("#wait .plan h3, #wait .plan h4").count(), "the plan is rendered");
      const listed = () => page.locator(".thread").first().getAttribute("data-state");
      assert.equal(await listed(), "waiting", "the list says what the page says");
      await shot(page, "04-plan");
      await press(page, "Ask for changes…");
      await page.locator("#wait-text").fill("Keep it short");
      await press(page, "Send back");
      await waitsFor(page, /^Allow: Write \.acode\/plans\//);
      await press(page, "Always allow write_file");
      await waitsFor(page, "A plan waits for your decision");
      assert.match(await page.locator("#wait .plan").innerText(), /keep it short/i);
      await press(page, "Approve plan");
      await waitsFor(page, /^Allow: Run /);
      await shot(page, "05-command");
      assert.equal(await page.locator("#mode").inputValue(), "build", "an approved plan moves to build");
      await press(page, "Approve");
      await rests(page);
      assert.equal(await listed(), "idle");
      await shot(page, "06-done");
      const cards = await page.locator(".tool-card").evaluateAll((all) => all.map((card) => card.dataset.state));
      assert.ok(cards.length >= 6 && cards.every((state) => state === "done"), `every call is done: ${cards}`);
      const written = await page.locator('.tool-card:has(.verb:text-is("Write")) .target').allInnerTexts();
      for (const path of written) assert.ok(existsSync(join(server.folder, path)), path);
      assert.match(await page.locator("#details-body").innerText(), /write_file/);
      // A grant is taken back, and is gone.
      await page.getByRole("button", { name: "Take back write_file" }).click();
      await page.waitForFunction(() => !document.getElementById("details-body").innerText.includes("Allowed without asking"));
      // The same after a reload, from storage.
      const texts = await page.locator("#transcript .markdown").allInnerTexts();
      await page.reload();
      await page.locator(".tool-card").first().waitFor();
      assert.deepEqual(await page.locator("#transcript .markdown").allInnerTexts(), texts);
      assert.deepEqual(problems, []);
      await close();
    });

    test("a declined approval tells the model why, and nothing is written", async () => {
      const { page, problems, close } = await openPage(browser, server.url);
      await page.locator("#mode").selectOption("build");
      await say(page, "Make a list of birds");
      await page.locator("#wait .choice").first().click();
      await press(page, "Answer");
      await waitsFor(page, /^Allow: Write /);
      const [path] = await page.locator("#wait .field-name").allInnerTexts();
      await press(page, "Decline…");
      await page.locator("#wait-text").fill("Not in this folder");
      await press(page, "Decline");
      await page.locator('.tool-card[data-state="declined"]').waitFor();
      await page.locator('.tool-card[data-state="declined"] summary').first().click();
      assert.match(await page.locator('.tool-card[data-state="declined"]').first().innerText(), /Not in this folder/);
      assert.equal(existsSync(join(server.folder, path)), false);
      assert.deepEqual(problems, []);
      await close();
    });

    test("a server that is killed while it waits is found again, with what it waits for", async () => {
      const { page, problems, close } = await openPage(browser, server.url);
      await say(page, "Describe this folder");
      await page.locator("#wait .choice").first().click();
      await press(page, "Answer");
      await waitsFor(page, /^Allow: Write /);
      await server.kill();
      await page.locator("#connection").waitFor();
      await page.waitForTimeout(2500);
      await shot(page, "07-lost");
      assert.match(await page.locator("#connection").innerText(), /No connection/);
      await server.up();
      await page.locator("#connection").waitFor({ state: "hidden", timeout: 20_000 });
      await waitsFor(page, /^Allow: Write /);
      await press(page, "Approve");
      await waitsFor(page, "A plan waits for your decision");
      await press(page, "Reject");
      await rests(page);
      assert.deepEqual(problems.filter((problem) => !problem.startsWith("error: ")), []);
      await close();
    });

    test("what happened while the connection was lost is shown, and where it begins", async () => {
      const wire = await Wire.to(server.port);
      const { page, problems, close } = await openPage(browser, wire.url);
      await say(page, "Tell me about rivers");
      await page.locator("#wait .choice").first().waitFor();
      const known = await page.locator("#transcript .message").count();
      wire.cut();
      await page.locator("#connection").waitFor();
      await page.waitForTimeout(2000);
      // Somebody else answers.
      const thread = new URLSearchParams(new URL(page.url()).hash.slice(1)).get("t");
      const scope = `sessionScope=${encodeURIComponent(thread)}`;
      const base = `${server.url}api/agent-controller/acode/sessions/local/pending`;
      const { pending } = await (await fetch(`${base}?${scope}`)).json();
      const body = JSON.stringify({ action: "reply", value: pending[0].payload.options[0].label });
      const sent = await fetch(`${base}/${encodeURIComponent(pending[0].id)}?${scope}`, { method: "POST", headers: { "content-type": "application/json" }, body });
      assert.equal(sent.status, 200);
      await page.waitForTimeout(2500);
      assert.equal(await page.locator("#transcript .message").count(), known, "nothing came through");
      wire.mend();
      await waitsFor(page, /^Allow: Write /);
      await page.locator("#connection").waitFor({ state: "hidden" });
      await shot(page, "09-missed");
      const order = await page.locator("#transcript > *").evaluateAll((all) => all.map((node) => (node.classList.contains("divider") ? "divider" : node.classList.contains("message") ? "message" : "event")));
      assert.equal(order.indexOf("divider"), order.filter((kind) => kind !== "event").indexOf("divider"));
      assert.equal(order.slice(0, order.indexOf("divider")).filter((kind) => kind === "message").length, known);
      assert.ok(order.slice(order.indexOf("divider")).includes("message"), `what was missed follows: ${order}`);
      assert.equal(await page.locator('.tool-card[data-state="waiting"]').count(), 1);
      await press(page, "Approve");
      await waitsFor(page, "A plan waits for your decision");
      await press(page, "Reject");
      await rests(page);
      assert.deepEqual(problems, []);
      await close();
      wire.close();
    });

    test("a whole job is done with the keyboard alone", async () => {
      const { page, problems, close } = await openPage(browser, server.url);
      await page.keyboard.press("Alt+n");
      await page.keyboard.type("Explain the weather");
      await page.keyboard.press("Enter");
      await page.locator("#wait .choice").first().waitFor();
      await page.keyboard.press("Alt+w");
      assert.equal(await page.evaluate(() => document.activeElement.tagName), "H2");
      await tabTo(page, 'input[name="choice"]');
      await page.keyboard.press("Space");
      await page.keyboard.press("Enter");
      await waitsFor(page, /^Allow: Write /);
      // The focus stays in the panel, on its headline, never on a button that decides.
      assert.equal(await page.evaluate(() => document.activeElement.tagName), "H2");
      await tabTo(page, "button.primary");
      assert.equal(await page.evaluate(() => document.activeElement.textContent), "Approve");
      await page.keyboard.press("Enter");
      await waitsFor(page, "A plan waits for your decision");
      await tabTo(page, "button.primary");
      await page.keyboard.press("Enter");
      await waitsFor(page, /^Allow: Write /);
      // "Always allow this kind" is the third.
      await tabTo(page, 'button[title^="Every tool"]');
      await page.keyboard.press("Enter");
      await waitsFor(page, /^Allow: Run /);
      await tabTo(page, "button.primary");
      await page.keyboard.press("Enter");
      await rests(page);
      assert.equal(await page.evaluate(() => document.activeElement.id), "message", "the focus goes back to the message");
      // Renaming and deleting a thread, from its row.
      await tabTo(page, 'button[aria-label^="Rename Explain"]');
      await page.keyboard.press("Enter");
      await page.keyboard.type("Weather");
      await page.keyboard.press("Enter");
      await page.locator("#title").filter({ hasText: /^Weather$/ }).waitFor();
      await tabTo(page, 'button[aria-label="Delete Weather"]');
      await page.keyboard.press("Enter");
      await page.locator("dialog[open]").waitFor();
      await shot(page, "08-delete");
      await page.keyboard.press("Escape");
      assert.equal(await page.locator('.thread-title:text-is("Weather")').count(), 1, "Escape deletes nothing");
      await page.keyboard.press("Enter");
      await page.locator("dialog[open]").waitFor();
      assert.equal(await page.evaluate(() => document.activeElement.textContent), "Cancel", "what cannot be undone is not one key away");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await page.locator('.thread-title:text-is("Weather")').waitFor({ state: "detached" });
      assert.deepEqual(problems, []);
      await close();
    });

    test("it fits a phone", async () => {
      const { page, problems, close } = await openPage(browser, server.url, { viewport: { width: 320, height: 640 }, hasTouch: true, colorScheme: "dark" });
      const fits = async (where) => assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 320 && document.querySelector(".main").scrollWidth <= 320), where);
      await fits("empty");
      await say(page, "Write about the sea");
      await page.locator("#wait .choice").first().waitFor();
      await fits("question");
      await shot(page, "20-phone-question");
      await page.locator("#wait .choice").first().tap();
      await press(page, "Answer");
      await waitsFor(page, /^Allow: Write /);
      await fits("approval");
      await shot(page, "21-phone-approval");
      for (const name of ["Approve", "Decline…"]) {
        const box = await page.locator("#wait").getByRole("button", { name, exact: true }).boundingBox();
        assert.ok(box.y + box.height <= 640 && box.x >= 0 && box.x + box.width <= 320, `${name} can be reached`);
      }
      await press(page, "Approve");
      await waitsFor(page, "A plan waits for your decision");
      await fits("plan");
      await shot(page, "22-phone-plan");
      await press(page, "Approve plan");
      await waitsFor(page, /^Allow: Write /);
      await press(page, "Always allow write_file");
      await waitsFor(page, /^Allow: Run /);
      await press(page, "Approve");
      await rests(page);
      await fits("done");
      await shot(page, "23-phone-done");
      await page.getByRole("button", { name: "Threads" }).tap();
      await shot(page, "24-phone-threads");
      await page.keyboard.press("Escape");
      await page.locator("#open-details").tap();
      await shot(page, "25-phone-details");
      assert.deepEqual(problems, []);
      await close();
    });
  });

  describe("with a scripted model", () => {
    let server;
    let model;
    before(async () => {
      model = await startModel();
      server = await Server.start(["--base-url", model.url, "--model", "scripted"]);
    });
    after(async () => {
      await server?.stop();
      model?.close();
    });

    /** What could run, load or lead away, if the page had made it of a text. */
    const inert = (page) =>
      page.evaluate(() => {
        const inside = (selector) => document.querySelectorAll(`:is(#transcript, #wait, #details, #sidebar, #waiting, #title) :is(${selector})`).length;
        const drawings = [...document.querySelectorAll("svg")].filter((svg) => !svg.classList.contains("icon")).length;
        const handlers = [...document.querySelectorAll("#app *")].filter((node) => node.getAttributeNames().some((name) => name.startsWith("on"))).length;
        const links = [...document.querySelectorAll("a[href]")].map((a) => a.href).filter((href) => !/^(https?:|mailto:)/.test(href) || href.includes("/api/"));
        return { pwned: window.pwned, made: inside("script, iframe, img, style, form, object, embed, base, math, link, video, audio"), drawings, handlers, links };
      });
    const clean = { pwned: undefined, made: 0, drawings: 0, handlers: 0, links: [] };

    test("nothing that a model wrote runs, loads or leads away", async () => {
      const { page, problems, close } = await openPage(browser, server.url);
      await say(page, "hostile text");
      await page.getByText("The end of the hostile text.").waitFor();
      await rests(page);
      await shot(page, "10-hostile");
      assert.deepEqual(await inert(page), clean);
      const shown = await page.locator("#transcript").innerText();
      for (const text of ["<script>window.pwned = 2</script>", '<svg onload="window.pwned = 4">', "<b>not bold</b> & &amp;"]) assert.ok(shown.includes(text), `shown as text: ${text}`);
      const hrefs = await page.locator("#transcript a").evaluateAll((all) => all.map((a) => [a.href, a.rel, a.target]));
      assert.ok(hrefs.some(([href]) => href.startsWith("https://example.com/a?b=c")));
      for (const [, rel, target] of hrefs) assert.ok(rel.includes("noopener") && target === "_blank");
      // The same from storage, and in titles, questions, options and arguments.
      await page.reload();
      await page.getByText("The end of the hostile text.").waitFor();
      assert.deepEqual(await inert(page), clean);
      await page.getByRole("button", { name: "New thread" }).click();
      await say(page, "hostile tool <img src=x onerror=window.pwned=40>");
      await page.locator("#wait .choice").first().waitFor();
      await shot(page, "11-hostile-question");
      assert.deepEqual(await inert(page), clean);
      await page.locator("#wait .choice").first().click();
      await press(page, "Answer");
      await page.getByText("The end of the hostile text.").waitFor();
      await page.locator(".tool-card summary").first().click();
      assert.deepEqual(await inert(page), clean);
      assert.deepEqual(problems, []);
      await close();
    });

    test("a text that could become markup is stopped by the browser too", async () => {
      const { page, close } = await openPage(browser, server.url);
      const refused = await page.evaluate(() => {
        try {
          document.createElement("div").innerHTML = "<b>x</b>";
          return false;
        } catch {
          return true;
        }
      });
      assert.equal(refused, true);
      const response = await page.request.get(server.url);
      const headers = response.headers();
      assert.match(headers["content-security-policy"], /default-src 'none'.*script-src 'self'.*frame-ancestors 'none'/);
      assert.equal(headers["x-content-type-options"], "nosniff");
      const again = await fetch(server.url, { headers: { "if-none-match": headers.etag } });
      assert.equal(again.status, 304);
      await close();
    });

    test("Markdown is shown as what it means, in light and dark", async () => {
      for (const colorScheme of ["light", "dark"]) {
        const { page, problems, close } = await openPage(browser, server.url, { colorScheme });
        await say(page, "showcase of what Markdown can do");
        await rests(page);
        await page.locator("#transcript table").waitFor();
        await shot(page, `12-markdown-${colorScheme}`);
        assert.equal(await page.locator("#transcript .code-block code").innerText(), 'fn check(line: &str) -> Result<(), Error> {\n    if line.is_empty() {\n        return Err(Error::Empty);\n    }\n    Ok(())\n}');
        assert.equal(await page.locator("#transcript tbody tr").count(), 2);
        assert.equal(await page.locator("#transcript li.task input:checked").count(), 1);
        assert.equal(await page.locator("#transcript blockquote").count(), 1);
        assert.deepEqual(problems, []);
        await close();
      }
    });

    test("a delta touches the last block and nothing before it", async () => {
      const { page, problems, close } = await openPage(browser, server.url);
      await say(page, "long text, please");
      await page.getByText("Part 20", { exact: true }).waitFor();
      const touched = await page.evaluate(async () => {
        const host = [...document.querySelectorAll("#transcript .markdown")].at(-1);
        const early = [...host.children].slice(0, 60);
        for (const node of early) node.mark = true;
        let count = 0;
        const watch = new MutationObserver((records) => {
          for (const record of records) if (early.some((node) => node === record.target || node.contains(record.target))) count += 1;
        });
        watch.observe(document.getElementById("transcript"), { childList: true, characterData: true, subtree: true });
        await new Promise((resolve) => setTimeout(resolve, 1500));
        watch.disconnect();
        return { count, kept: [...host.children].slice(0, 60).every((node) => node.mark), grew: host.children.length > 60 };
      });
      assert.deepEqual(touched, { count: 0, kept: true, grew: true });
      await page.getByText("Part 149", { exact: true }).waitFor({ timeout: 60_000 });
      await rests(page);
      const whole = await page.locator("#transcript .markdown").last().evaluate((host) => ({ parts: host.querySelectorAll("h5").length, code: [...host.querySelectorAll("code")].filter((code) => code.textContent.startsWith("const part")).length }));
      assert.deepEqual(whole, { parts: 150, code: 150 });
      assert.ok(await page.evaluate(() => { const s = document.getElementById("scroller"); return s.scrollHeight - s.scrollTop - s.clientHeight < 60; }), "the end stays in sight");
      assert.deepEqual(problems, []);
      await close();
    });

    test("a free answer, and several of many", async () => {
      const { page, problems, close } = await openPage(browser, server.url);
      await say(page, "free question");
      await page.locator("#reply").fill("Robin & <Co>");
      await shot(page, "13-free");
      await page.keyboard.press("Enter");
      await page.getByText("Thank you.").waitFor();
      assert.match(JSON.stringify(model.requests.at(-1).messages.at(-1)), /Robin & <Co>/);
      await page.getByRole("button", { name: "New thread" }).click();
      await say(page, "many choices");
      await page.locator("#wait .choice").first().click();
      await page.locator("#wait .choice").last().click();
      await shot(page, "14-many");
      await press(page, "Answer");
      await page.getByText("Thank you.").waitFor();
      assert.match(JSON.stringify(model.requests.at(-1).messages.at(-1)), /Linux, Windows/);
      assert.deepEqual(problems, []);
      await close();
    });

    test("several approvals wait side by side and are decided in any order", async () => {
      const { page, problems, close } = await openPage(browser, server.url);
      await page.locator("#mode").selectOption("build");
      await say(page, "two files");
      await page.getByText("1 of 2").waitFor();
      await shot(page, "15-two");
      await page.locator("#wait").getByRole("button", { name: "Next" }).click();
      await waitsFor(page, "Allow: Write b.txt");
      await press(page, "Approve");
      await waitsFor(page, "Allow: Write a.txt");
      await press(page, "Decline…");
      await press(page, "Decline");
      await page.getByText("Both are done.").waitFor();
      assert.equal(existsSync(join(server.folder, "b.txt")), true);
      assert.equal(existsSync(join(server.folder, "a.txt")), false);
      assert.deepEqual(problems, []);
      await close();
    });

    test("a queue is filled, ordered and emptied while the run goes on, and the run is stopped", async () => {
      const { page, problems, close } = await openPage(browser, server.url);
      await say(page, "slow reply");
      await page.getByText("word5").first().waitFor();
      for (const text of ["first later", "second later"]) {
        await page.locator("#how").selectOption("after");
        await say(page, text);
        await page.locator(".queue-row").filter({ hasText: text }).waitFor();
      }
      await page.getByRole("button", { name: "Earlier: second later" }).click();
      await page.waitForFunction(() => document.querySelector(".queue-row")?.innerText.includes("second later"));
      await shot(page, "16-queue");
      await page.getByRole("button", { name: "Take back: first later" }).click();
      await page.locator(".queue-row").filter({ hasText: "first later" }).waitFor({ state: "detached" });
      await page.getByRole("button", { name: "Take back: second later" }).click();
      await page.locator(".queue-row").first().waitFor({ state: "detached" });
      await page.getByRole("button", { name: "Stop the run" }).click();
      await rests(page);
      await page.getByText("Stopped.", { exact: true }).first().waitFor();
      // What was said until then is there after a reload.
      await page.reload();
      await page.getByText("word5").first().waitFor();
      assert.deepEqual(problems, []);
      await close();
    });

    test("files go with a message, and are shown", async () => {
      const { page, problems, close } = await openPage(browser, server.url);
      const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==", "base64");
      await page.locator("#files").setInputFiles([
        { name: "dot.png", mimeType: "image/png", buffer: png },
        { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("remember the milk") },
        { name: "bad.svg", mimeType: "image/svg+xml", buffer: Buffer.from("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>") },
      ]);
      await page.getByRole("button", { name: "Remove bad.svg" }).waitFor();
      await page.getByRole("button", { name: "Remove bad.svg" }).click();
      await say(page, "look at these");
      await page.getByText("You said:").waitFor();
      assert.equal(await page.locator("#transcript .picture img").count(), 1);
      await page.locator(".file-text summary").filter({ hasText: "notes.txt" }).click();
      assert.equal(await page.locator(".file-text code").innerText(), "remember the milk");
      await shot(page, "17-files");
      const sent = JSON.stringify(model.requests.at(-1).messages);
      assert.ok(sent.includes("remember the milk") && sent.includes("data:image/png;base64,"));
      assert.deepEqual(problems, []);
      await close();
    });

    test("threads are beside each other: one works while another is looked at", async () => {
      const { page, problems, close } = await openPage(browser, server.url);
      await say(page, "slow work here");
      await page.getByText("word5").first().waitFor();
      await page.getByRole("button", { name: "New thread" }).click();
      await say(page, "hello there");
      await page.getByText("You said: hello there").waitFor();
      await page.locator(".thread-open").filter({ hasText: "slow work here" }).click();
      await page.getByText("word30").first().waitFor();
      const text = await page.locator("#transcript .markdown").last().innerText();
      assert.match(text, /^word0 word1 word2 word3 /, "what was written while away is there, once");
      assert.equal(text.match(/word1\b/g).length, 1);
      await page.getByRole("button", { name: "Stop the run" }).click();
      await rests(page);
      // The address leads back to the thread, in a new page.
      const address = page.url();
      const other = await openPage(browser, address);
      await other.page.locator("#title").filter({ hasText: "slow work here" }).waitFor();
      await other.close();
      assert.deepEqual(problems, []);
      await close();
    });
  });

  test("a server with tokens asks for one, and takes the right one only", async () => {
    const server = await Server.start(["--auth", "tokens"], {}, (folder, data) => {
      const made = runAcode(["--data", data, "token", "add", "ada", "--auth", "tokens"], folder);
      assert.equal(made.status, 0, made.stderr);
      return { token: made.stdout.trim() };
    });
    try {
      const { page, problems, close } = await openPage(browser, server.url, {}, "#token-dialog");
      await shot(page, "18-token");
      assert.equal(await page.evaluate(() => document.activeElement.id), "token");
      await page.keyboard.press("Escape");
      assert.equal(await page.locator("#token-dialog").isVisible(), true, "there is nothing behind it");
      await page.locator("#token").fill("ac_wrong");
      await page.keyboard.press("Enter");
      await page.getByText("The server does not know this token.").waitFor();
      await page.locator("#token").fill(server.token);
      await page.keyboard.press("Enter");
      await page.locator("#token-dialog").waitFor({ state: "hidden" });
      await page.locator("#mode option").first().waitFor({ state: "attached" });
      await say(page, "Write something");
      await page.locator("#wait .choice").first().waitFor();
      // It is kept for this tab, and in no address.
      assert.equal(page.url().includes(server.token), false);
      await page.reload();
      await page.locator("#wait .choice").first().waitFor();
      await page.getByRole("button", { name: "Forget the token" }).click();
      await page.locator("#token-dialog").waitFor();
      assert.equal(await page.locator("#transcript .message").count(), 0);
      assert.deepEqual(problems, []);
      await close();
    } finally {
      await server.stop();
    }
  });

  test("the Markdown library is the published one", () => {
    const here = (path) => new URL(path, import.meta.url);
    assert.deepEqual(readFileSync(here("../vendor/marked.js")), readFileSync(here("./node_modules/marked/lib/marked.esm.js")));
  });
});

/** Moves on with Tab until this has the focus. */
async function tabTo(page, selector) {
  for (let step = 0; step < 120; step += 1) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((selector) => document.activeElement?.matches(selector), selector)) return;
  }
  throw new Error(`Tab does not lead to ${selector}`);
}

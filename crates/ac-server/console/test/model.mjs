// A model behind the OpenAI chat protocol that says what a test wants: the last message of the person chooses the script.

import { createServer } from "node:http";

/** Everything that a hostile model may try, in one message. */
export const HOSTILE = `# Hello <script>window.pwned = 1</script>

<script>window.pwned = 2</script>

<img src=x onerror="window.pwned = 3">

<svg onload="window.pwned = 4"><script>window.pwned = 5</script></svg>

<iframe srcdoc="<script>parent.pwned = 6</script>"></iframe>

<style>body { display: none }</style>

<form action="https://evil.example/"><input name=q></form>

[click](javascript:window.pwned=7) [tab](java	script:window.pwned=8) [data](data:text/html,<script>window.pwned=9</script>)
[upper](JAVASCRIPT:window.pwned=10) [entity](&#106;avascript:window.pwned=11) [vb](vbscript:x) [file](file:///etc/passwd)
[relative](/api/agent-controller) [fine](https://example.com/a?b=c "title\\" onmouseover=\\"window.pwned=12")

![beacon](https://evil.example/pixel.png) ![script](javascript:window.pwned=13) ![svg](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+)

<https://example.com/auto> <javascript:window.pwned=14>

[ref]: javascript:window.pwned=15
[ref link][ref]

\`\`\`"><script>window.pwned=16</script>
code <b>not bold</b> & &amp;
\`\`\`

| a | <b>b</b> |
| - | - |
| <img src=x onerror=window.pwned=17> | [x](javascript:window.pwned=18) |

- [ ] <input onfocus="window.pwned=19" autofocus>

&lt;script&gt;window.pwned=20&lt;/script&gt; &#60;b&#62;

<a href="javascript:window.pwned=21">raw link</a> <math><mtext></mtext></math> <base href="https://evil.example/">

The end of the hostile text.`;

export const SHOWCASE = `## What I found

The **parser** reads one line at a time, and *every* line is checked twice. That is easy to change:

1. Read the file once.
2. Check each line where it is read.

\`\`\`rust
fn check(line: &str) -> Result<(), Error> {
    if line.is_empty() {
        return Err(Error::Empty);
    }
    Ok(())
}
\`\`\`

| Case | Before | After |
| :--- | ---: | ---: |
| small file | 12 ms | 7 ms |
| large file | 1,840 ms | 920 ms |

> The large file is read twice today.

- [x] look at the parser
- [ ] change it

See \`src/parse.rs\` and [the notes](https://example.com/notes).`;

const call = (name, args) => ({ calls: [{ name, args }] });

function script(said, results) {
  if (said.startsWith("hostile tool")) {
    return results ? { text: "Done.\n\n" + HOSTILE } : call("ask_user", { question: "<img src=x onerror=window.pwned=30> **really**?", options: [{ label: "<script>window.pwned=31</script>", description: "<svg onload=window.pwned=32>" }, { label: "no" }] });
  }
  if (said.startsWith("hostile")) return { text: HOSTILE };
  if (said.startsWith("showcase")) return { text: SHOWCASE };
  if (said.startsWith("free")) return results ? { text: "Thank you." } : call("ask_user", { question: "What should it be called?" });
  if (said.startsWith("many")) {
    const options = ["Linux", "macOS", "Windows"].map((label) => ({ label, description: `Builds for ${label}` }));
    return results ? { text: "Thank you." } : call("ask_user", { question: "Which systems?", options, selectionMode: "multi_select" });
  }
  if (said.startsWith("two")) {
    if (results) return { text: "Both are done." };
    return { calls: [{ name: "write_file", args: { path: "a.txt", content: "a\n" } }, { name: "write_file", args: { path: "b.txt", content: "b\n" } }] };
  }
  if (said.startsWith("slow")) return { text: Array.from({ length: 400 }, (_, i) => `word${i}`).join(" "), pause: 40 };
  if (said.startsWith("long")) {
    const block = (i) => `### Part ${i}\n\nSome text with **strong** words and \`code\` in part ${i}.\n\n- one\n- two\n\n\`\`\`js\nconst part = ${i};\n\`\`\`\n\n`;
    return { text: Array.from({ length: 150 }, (_, i) => block(i)).join(""), pause: 1 };
  }
  return { text: `You said: ${said}` };
}

const textOf = (content) => (typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join(""));

/** Starts the model. `requests` are the bodies that it was asked with. */
export async function startModel() {
  const requests = [];
  const server = createServer(async (request, response) => {
    if (request.method === "GET") return response.end(JSON.stringify({ data: [{ id: "scripted", object: "model" }] }));
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = JSON.parse(Buffer.concat(chunks).toString());
    requests.push(body);
    const last = body.messages.findLastIndex((message) => message.role === "user");
    const said = textOf(body.messages[last]?.content);
    const results = body.messages.slice(last + 1).filter((message) => message.role === "tool").length;
    const { text = "", calls = [], pause = 0 } = script(said, results);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (delta, finish_reason = null) =>
      response.write(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "scripted", choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    send({ role: "assistant", content: "" });
    for (const piece of text.match(/[\s\S]{1,7}/g) ?? []) {
      if (response.destroyed) return undefined;
      send({ content: piece });
      if (pause) await new Promise((resolve) => setTimeout(resolve, pause));
    }
    calls.forEach(({ name, args }, index) =>
      send({ tool_calls: [{ index, id: `call_${requests.length}_${index}`, type: "function", function: { name, arguments: JSON.stringify(args) } }] }),
    );
    send({}, calls.length ? "tool_calls" : "stop");
    response.write(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "scripted", choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } })}\n\n`);
    return response.end("data: [DONE]\n\n");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/v1`, requests, close: () => server.close() };
}

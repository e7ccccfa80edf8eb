// Every method of the published client at least once, against the acceptance fixture.
import assert from 'node:assert/strict';
import { MastraClient } from '@mastra/client-js';

const [baseUrl] = process.argv.slice(2);
const client = new MastraClient({ baseUrl });
const controller = client.getAgentController('code');
let failed = 0;
let number = 0;

/** Events of a session, with a way to wait for one. */
async function listen(session) {
  const events = [];
  const waiting = new Set();
  const subscription = await session.subscribe({
    onEvent(event) {
      events.push(event);
      for (const look of [...waiting]) look();
    },
    onError() {},
  });
  const until = (fits, from = 0) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.delete(look);
        reject(new Error(`did not come; there is ${events.map((event) => event.type).filter((type) => type !== 'display_state_changed')}`));
      }, 10_000);
      const look = () => {
        const found = events.slice(from).find(fits);
        if (!found) return;
        clearTimeout(timer);
        waiting.delete(look);
        resolve(found);
      };
      waiting.add(look);
      look();
    });
  const type = (name, from) => until((event) => event.type === name, from);
  const ended = (reason, from) => until((event) => event.type === 'agent_end' && event.reason === reason, from);
  const text = (from = 0) =>
    events
      .slice(from)
      .filter((event) => event.type === 'message_update' && event.event.type === 'text-delta')
      .map((event) => event.event.delta)
      .join('');
  return { events, until, type, ended, text, mark: () => events.length, stop: () => subscription.unsubscribe() };
}

async function check(name, run) {
  const session = controller.session(`client-${++number}`);
  try {
    await run(session);
    console.log(`ok   ${name}`);
  } catch (error) {
    failed += 1;
    console.error(`FAIL ${name}\n${error.stack}`);
  }
}

await check('controllers, modes, models, runs, workspace', async () => {
  assert.deepEqual(await client.listAgentControllers(), [{ id: 'code' }]);
  assert.deepEqual(await controller.listModes(), [{ id: 'build', name: 'Build' }, { id: 'plan', name: 'Plan' }]);
  const models = await controller.listModels();
  assert.deepEqual(models.map((model) => [model.id, model.provider, model.modelName, model.hasApiKey]), [
    ['fake/fake-a', 'fake', 'fake-a', true],
    ['fake/fake-b', 'fake', 'fake-b', true],
  ]);
  assert.deepEqual(await controller.listActiveRuns(), []);
  assert.deepEqual(await controller.workspaceStatus(), { hasWorkspace: false, isReady: false });
});

await check('a reply arrives as events and stands in the history', async (session) => {
  const made = await session.create();
  assert.equal(made.controllerId, 'code');
  const heard = await listen(session);
  await session.sendMessage('say hello');
  await heard.ended('complete');
  assert.equal(heard.text(), 'hello wörld');
  const start = heard.events.find((event) => event.type === 'message_start');
  assert.ok(start.message.createdAt instanceof Date);
  const page = await session.listMessages(made.threadId, { perPage: 1 });
  assert.deepEqual([page.total, page.hasMore, page.messages.length], [2, true, 1]);
  const all = await session.listMessages(made.threadId);
  assert.deepEqual(all.map((message) => message.role), ['assistant', 'signal']);
  const last = await session.listMessages(made.threadId, 1);
  assert.equal(last[0].content.content, 'hello wörld');
  const state = await session.state({ threadId: made.threadId });
  assert.deepEqual([state.threadId, state.running, state.tokenUsage.totalTokens], [made.threadId, false, 15]);
  heard.stop();
});

await check('files and context reach the model and the tools', async (session) => {
  const { threadId } = await session.create({ tags: { projectPath: '/p' } });
  const heard = await listen(session);
  const files = [
    { data: Buffer.from('plain text').toString('base64'), mediaType: 'text/plain', filename: 'a.txt' },
    { data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', mediaType: 'image/png' },
  ];
  await session.sendMessage({ content: 'read the file', files });
  await heard.ended('complete');
  const [message] = (await session.listMessages(threadId)).slice(-1);
  assert.match(JSON.stringify(message.content.parts), /plain text/);
  assert.equal(message.content.parts.at(-1).mimeType, 'image/png');
  await session.setPermissionForTool('get_context', 'allow');
  const mark = heard.mark();
  await session.sendMessage('tell the context', { requestContext: { who: 'me', mastra__user: 'no' } });
  const end = await heard.type('tool_end', mark);
  assert.deepEqual(end.result, { value: 'me' });
  await heard.ended('complete', mark);
  const threads = await session.listThreads({ tags: { projectPath: '/p' } });
  assert.deepEqual([threads.length, threads[0].tags], [1, { projectPath: '/p' }]);
  heard.stop();
});

await check('a call is allowed, and another refused', async (session) => {
  await session.create();
  const heard = await listen(session);
  await session.sendMessage('write it');
  const asked = await heard.type('tool_approval_required');
  assert.deepEqual(asked.args, { path: 'a.txt', content: 'b' });
  await session.approveTool(asked.toolCallId, true);
  await heard.ended('complete');
  let mark = heard.mark();
  await session.sendMessage('write again');
  const again = await heard.type('tool_approval_required', mark);
  await session.approveTool(again.toolCallId, false);
  const end = await heard.type('tool_end', mark);
  assert.deepEqual([end.denied, end.isError], [true, false]);
  await heard.ended('complete', mark);
  await session.approveTool(again.toolCallId, true);
  heard.stop();
});

await check('a question is answered and a plan decided', async (session) => {
  await session.create();
  const heard = await listen(session);
  await session.sendMessage('ask me');
  const asked = await heard.type('tool_suspended');
  await heard.ended('suspended');
  await session.respondToToolSuspension(asked.toolCallId, 'A');
  const end = await heard.type('tool_end');
  assert.deepEqual(end.result, { content: 'User answered: A', isError: false });
  await heard.ended('complete');
  await session.switchMode('plan');
  assert.equal((await session.state()).modeId, 'plan');
  const mark = heard.mark();
  await session.sendMessage('make a plan');
  const plan = await heard.type('tool_suspended', mark);
  await session.respondToToolSuspension(plan.toolCallId, { action: 'approved' });
  await heard.type('mode_changed', mark);
  await heard.ended('complete', mark);
  assert.equal((await session.state()).modeId, 'build');
  heard.stop();
});

await check('a run is stopped, steered and followed', async (session) => {
  await session.create();
  const heard = await listen(session);
  await session.abort();
  await session.sendMessage('go on for ever');
  await heard.type('message_update');
  assert.equal((await controller.listActiveRuns()).length, 1);
  await session.abort();
  await heard.ended('aborted');
  let mark = heard.mark();
  await session.sendMessage('never stop');
  await heard.type('message_update', mark);
  await session.steer('steered');
  await heard.ended('aborted', mark);
  await heard.ended('complete', mark);
  assert.match(heard.text(mark), /new course/);
  mark = heard.mark();
  await session.followUp('afterwards');
  await heard.ended('complete', mark);
  heard.stop();
});

await check('threads', async (session) => {
  const { threadId } = await session.create();
  const heard = await listen(session);
  const second = await session.createThread('second');
  const created = await heard.type('thread_created');
  assert.ok(created.thread.createdAt instanceof Date);
  await session.switchThread(threadId);
  await session.renameThread(threadId, 'first');
  const copy = await session.cloneThread({ sourceThreadId: second.id, title: 'copy' });
  assert.deepEqual((await session.listThreads()).map((thread) => thread.title).sort(), ['copy', 'first', 'second']);
  assert.equal((await session.listThreads(2)).length, 2);
  await session.deleteThread(copy.id);
  assert.equal((await session.state()).threadId, undefined);
  await assert.rejects(session.switchThread('nope'), (error) => error.status === 404);
  await assert.rejects(session.switchMode('nope'), (error) => error.status === 404);
  heard.stop();
});

await check('model, state, permissions', async (session) => {
  await session.create();
  await session.switchModel('fake/fake-b', { scope: 'thread' });
  assert.equal((await session.state()).modelId, 'fake/fake-b');
  await session.setState({ thinkingLevel: 'high', yolo: true });
  assert.deepEqual((await session.state()).settings, { yolo: true, thinkingLevel: 'high', notifications: 'off', smartEditing: true });
  await session.setPermissionForCategory('edit', 'allow');
  await session.setPermissionForTool('boom', 'deny');
  assert.deepEqual(await session.getPermissions(), { categories: { edit: 'allow' }, tools: { boom: 'deny' } });
  await assert.rejects(session.setPermissionForCategory('zzz', 'allow'), (error) => error.status === 400);
  assert.equal(await session.getOMRecord(), undefined);
  assert.ok((await session.getResourceIds()).includes(`client-${number}`));
});

await check('scopes', async () => {
  const [a, b] = ['A', 'B'].map((scope) => controller.session('scoped', scope));
  const threads = await Promise.all([a.create(), b.create()]);
  assert.notEqual(threads[0].threadId, threads[1].threadId);
  await a.switchMode('plan');
  assert.equal((await b.state()).modeId, 'build');
});

await check('another resource', async (session) => {
  await session.create();
  await session.setPermissionForTool('echo', 'allow');
  const moved = `client-${number}-moved`;
  await session.setResourceId(moved);
  assert.deepEqual((await controller.session(moved).getPermissions()).tools, { echo: 'allow' });
  assert.deepEqual((await session.getPermissions()).tools, {});
});

await check('goals', async (session) => {
  const { threadId } = await session.create();
  assert.equal(await session.getGoal(), undefined);
  const goal = await session.setGoal('Ship it', { maxRuns: 2 });
  assert.deepEqual([goal.objective, goal.status, goal.runsUsed, goal.maxRuns], ['Ship it', 'active', 0, 2]);
  const heard = await listen(session);
  await session.sendMessage('work on it');
  await heard.until((event) => event.type === 'goal_evaluation' && !event.payload.pending);
  await heard.ended('complete');
  assert.deepEqual([(await session.getGoal()).status, (await session.getGoal()).runsUsed], ['done', 1]);
  assert.equal((await session.updateGoal({ status: 'paused', maxRuns: 5 })).status, 'paused');
  await session.clearGoal();
  assert.equal(await session.getGoal(), undefined);
  await assert.rejects(session.setGoal(''), (error) => error.status === 400);
  await session.deleteThread(threadId);
  await assert.rejects(session.setGoal('x'), (error) => error.status === 400 && /session has no active thread/.test(error.message));
  heard.stop();
});

await check('notifications', async (session) => {
  await session.create();
  const low = await session.sendNotification({ source: 'ci', kind: 'build', summary: 'queued', priority: 'low' });
  assert.deepEqual([low.accepted, low.decision], [false, 'summarize']);
  const heard = await listen(session);
  const urgent = await session.sendNotification({ source: 'ci', kind: 'build', summary: 'Build broke', priority: 'urgent', attributes: { repo: 'x' } });
  assert.deepEqual([urgent.accepted, urgent.decision], [true, 'deliver']);
  await heard.ended('complete');
  const signal = heard.events.find((event) => event.type === 'message_start' && event.message.content.parts[0].type === 'data-signal');
  assert.equal(signal.message.content.parts[0].data.type, 'notification');
  heard.stop();
});

await check('a subagent', async (session) => {
  await session.create();
  await session.setPermissionForTool('subagent', 'allow');
  const heard = await listen(session);
  await session.sendMessage('delegate');
  const start = await heard.type('subagent_start');
  assert.deepEqual([start.agentType, start.task, start.forked], ['helper', 'inner task', false]);
  const end = await heard.type('subagent_end');
  assert.deepEqual([end.result, end.isError], ['inner done', false]);
  assert.deepEqual((await heard.type('tool_end')).result, { content: 'inner done', isError: false });
  await heard.ended('complete');
  heard.stop();
});

process.exit(failed ? 1 : 0);

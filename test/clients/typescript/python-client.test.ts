// @module-tag extended
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tryTool } from '../../verification/tools.ts'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newSecret, signatureHeaders } from '../../../cloud/platform/webhooks/secret.ts'
import { virtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'
import { ensureBuilt, ROOT } from '../../support/built.ts'
import { temporaryFolder } from '../../support/databases.ts'
import { runProcess, startProcess, type RunningProcess } from '../../support/processes.ts'
import { suiteWith } from '../../support/extended.ts'

const PACKAGE = join(ROOT, 'clients/python')
/** Debian's packages are for Debian's Python. */
const PYTHON = '/usr/bin/python3'

const isMissing = tryTool(PYTHON, '-c', 'import httpx').status !== 0
// mypy takes seven seconds.
const isFull = process.env['UNTAG_TEST_FULL'] === 'true'

suiteWith(isMissing ? 'install python3-httpx' : undefined, 'the Python client', () => {
  let cloud: RunningProcess
  let env: NodeJS.ProcessEnv
  let folder: string

  beforeAll(async () => {
    ensureBuilt()
    folder = temporaryFolder('python')
    const data = `--data=${join(folder, 'cloud')}`
    cloud = await startProcess(['cloud', data, '--port=0', '--mqtt-port=0'])
    const made = await runProcess(['keys', 'create', data, '--account=Shop', '--mode=test', '--json'])
    const { key } = JSON.parse(made.stdout) as { key: string }
    env = {
      ...process.env,
      PYTHONPATH: PACKAGE,
      PYTHONDONTWRITEBYTECODE: '1',
      UNTAG_API: String(cloud.ready['baseUrl']),
      UNTAG_KEY: key,
    }
  })
  afterAll(() => cloud?.stop())

  async function python(text: string, more: NodeJS.ProcessEnv = {}): Promise<unknown> {
    const child = spawn(PYTHON, ['-c', text], { env: { ...env, ...more }, cwd: folder })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk: Buffer) => void (stdout += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => void (stderr += chunk.toString()))
    const [code] = (await once(child, 'close')) as [number]
    expect(code, stderr).toBe(0)
    return JSON.parse(stdout)
  }

  it('verifies deliveries in the receiver of the guide', async () => {
    const guide = readFileSync(join(ROOT, 'docs/guides/webhooks.md'), 'utf8')
    const receiver = /^```python\n([\s\S]*?)^```/m.exec(guide)?.[1] ?? ''
    const secret = newSecret(virtualPlatform().random)
    const body = '{"event":"checkout.completed","data":{}}'
    const sentS = Math.floor(Date.now() / 1_000)
    const headers = signatureHeaders({ id: 'whe_1', sentS, body }, { current: secret })
    const answers = await python(
      `${receiver.replace('HTTPServer((', 'server = HTTPServer((').replace('.serve_forever()', '')}
import contextlib, json, sys, threading, urllib.error, urllib.request
threading.Thread(target=server.serve_forever, daemon=True).start()
def post(body):
    request = urllib.request.Request(f"http://127.0.0.1:{server.server_port}/", body.encode(), json.loads(os.environ["HEADERS"]))
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code
with contextlib.redirect_stdout(sys.stderr):
    answers = [post(${JSON.stringify(body)}), post("{}")]
print(json.dumps(answers))`,
      { WEBHOOK_SECRET: secret, RECEIVER_PORT: '0', HEADERS: JSON.stringify(headers) },
    )
    expect(answers).toEqual([200, 400])
  })

  it('runs the examples of its README against a cloud', async () => {
    const readme = readFileSync(join(PACKAGE, 'README.md'), 'utf8')
    const blocks = [...readme.matchAll(/^```python\n([\s\S]*?)^```/gm)].map((m) => m[1] ?? '')
    expect(blocks.length).toBeGreaterThan(2)
    for (const block of blocks) await python(`${block}\nimport json; print(json.dumps("done"))`)
  })

  it('raises errors with code, field and request id, and retries with one Idempotency-Key', async () => {
    const result = await python(`
import json, httpx
from untag_client import Untag, UntagError
from untag_client import client as module
import os
untag = Untag(os.environ["UNTAG_API"], os.environ["UNTAG_KEY"])
try:
    untag.call("fetchStores", {"nothing": 1})
except UntagError as error:
    refused = [error.status, error.code, error.field, error.request_id is not None]
seen = []
def answer(request):
    seen.append(request.headers.get("idempotency-key"))
    return httpx.Response(503, headers={"retry-after": "0"}) if len(seen) < 3 else httpx.Response(200, json={"success": True})
flaky = Untag("http://cloud.example/api/v1", "k", http=httpx.Client(transport=httpx.MockTransport(answer)))
changed = flaky.call("insertProduct", {"name": "x"})
def late(request):
    raise httpx.ConnectTimeout("late")
try:
    Untag("http://cloud.example", http=httpx.Client(transport=httpx.MockTransport(late)), retries=0).fetchStores()
except UntagError as error:
    timeout = [error.status, error.code]
print(json.dumps([refused, changed, len(seen), len(set(seen)), seen[0] is not None, timeout]))
`)
    expect(result).toEqual([[400, 'invalid-argument', 'nothing', true], { success: true }, 3, 1, true, [0, 'timeout']])
  })

  it('verifies the webhook signatures of the cloud', async () => {
    const secret = newSecret(virtualPlatform().random)
    const body = JSON.stringify({ id: 'evt_1', event: 'webhook.test', data: {} })
    const sentS = 1_800_000_000
    const headers = signatureHeaders({ id: 'evt_1', sentS, body }, { current: secret })
    const more = { BODY: body, HEADERS: JSON.stringify(headers), SECRET: secret }
    const result = await python(
      `
import json, os
from untag_client import verify_webhook, WebhookRefused
body, headers, secret = os.environ["BODY"].encode(), json.loads(os.environ["HEADERS"]), os.environ["SECRET"]
def check(**changes):
    given = {"body": body, "headers": headers, "secret": secret, "now": ${sentS}, **changes}
    try:
        return verify_webhook(given["body"], given["headers"], given["secret"], now=given["now"])["event"]
    except WebhookRefused as refused:
        return refused.code
print(json.dumps([check(), check(body=body + b" "), check(now=${sentS + 301}), check(headers={}), check(secret="other")]))
`,
      more,
    )
    expect(result).toEqual(['webhook.test', 'bad_signature', 'too_old', 'no_signature', 'bad_signature'])
  })

  it.runIf(isFull)('passes mypy --strict, which names a wrong field', () => {
    const good = `from untag_client import Untag\nstores = Untag("x").fetchStores({"city": "Hamburg"})["stores"]\nname: str = stores[0]["storeId"]\n`
    writeFileSync(join(folder, 'good.py'), good)
    writeFileSync(join(folder, 'bad.py'), good.replace('"city"', '"town"').replace('"storeId"', '"noField"'))
    // Also checks the modules of the client, because the files import them.
    const args = ['--strict', '--python-executable', PYTHON, '--cache-dir', join(folder, 'cache'), 'good.py', 'bad.py']
    const { stdout } = spawnSync('mypy', args, { encoding: 'utf8', cwd: folder, env: { ...env, MYPYPATH: PACKAGE } })
    const errors = stdout.split('\n').filter((line) => line.includes(': error: '))
    expect(errors).toEqual([
      expect.stringMatching(/^bad\.py:2: .*"town"/),
      expect.stringMatching(/^bad\.py:3: .*"noField"/),
    ])
  })
})

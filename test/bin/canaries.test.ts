// @module-tag extended
import { scryptSync } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { realPlatform } from '../../host/platform.ts'
import { sealer } from '../../cloud/platform/authority/sealing.ts'
import type { Verifier } from '../../policy/documents/store-documents.ts'
import { publishedVerifier } from '../../policy/operator-verifiers.ts'
import { ensureBuilt, ROOT } from '../support/built.ts'
import type { Json } from '../support/cloud.ts'
import { temporaryFolder } from '../support/databases.ts'
import { eventually } from '../support/journey.ts'
import { runProcess, startProcess, type RunningProcess } from '../support/processes.ts'

/**
 * Runs a cloud and an agent with known secrets. Then searches files, backup, crash report, files after the crash, and
 * logs. Only key files may contain a secret.
 */
describe('canaries', () => {
  const folder = temporaryFolder('canaries')
  const [data, edge, backups, reports] = ['cloud', 'edge', 'backups', 'reports'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
    string,
  ]
  /** The secrets by name, so that a failure names the leaked one. */
  const secrets = new Map<string, string>()
  const raw = new Map<string, Buffer>()
  const running: RunningProcess[] = []
  const output = new Map<string, string>()
  let backup = ''

  const plant = (name: string, secret: unknown): string => {
    if (typeof secret !== 'string' || secret.length < 6)
      throw new Error(`${name} was not made: ${JSON.stringify(secret)}`)
    secrets.set(name, secret)
    return secret
  }
  const surroundings = {
    env: {
      UNTAG_LOG_LEVEL: 'info',
      NODE_OPTIONS: `--import=${pathToFileURL(join(ROOT, 'test/support/crash-on-signal.js'))} --report-uncaught-exception --report-directory=${reports}`,
    },
  }
  const start = async (...args: string[]) => {
    const started = await startProcess(args, surroundings)
    running.push(started)
    return started
  }
  const post = async (
    url: string,
    key: string | undefined,
    body: Json,
    headers: Record<string, string> = {},
  ): Promise<Json> =>
    (
      await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }), ...headers },
        body: JSON.stringify(body),
      })
    ).json() as Promise<Json>
  const filesIn = (where: string) =>
    readdirSync(where, { recursive: true, encoding: 'utf8' })
      .map((name) => join(where, name))
      .filter((file) => statSync(file).isFile())

  async function plantAtTheCloud(
    baseUrl: string,
  ): Promise<{ call(operation: string, body?: Json): Promise<Json>; storeId: string; deviceId: string }> {
    const created = await runProcess([
      'keys',
      'create',
      '--data',
      data,
      '--account',
      'Shop',
      '--package',
      'PRIME',
      '--json',
    ])
    const key = plant('secret key', (JSON.parse(created.stdout) as Json)['key'])
    const call = (operation: string, body: Json = {}, headers?: Record<string, string>) =>
      post(`${baseUrl}/${operation}`, key, body, headers)
    const { storeId } = (await call('fetchStores')).stores.find((s: Json) => s.securityTagMode === 'rfid')
    const { deviceId } = await call('registerDevice', { storeId, deviceType: 'pos_deactivator', name: 'Kasse' })
    // With an Idempotency-Key the cloud stores the response, which contains the secret.
    const once = { 'idempotency-key': 'canary-request' }
    plant('further key', (await call('createApiKey', { kind: 'secret', name: 'till' }, once))['key'])
    plant('publishable key', (await call('createApiKey', { kind: 'publishable', name: 'app' }))['key'])
    const operator = {
      storeId,
      name: 'Frau Petersen',
      pin: plant('PIN', '83642917'),
      card: plant('card', '04A1B2C3D4E5F6'),
    }
    plant('badge', (await call('registerOperator', operator, once))['badge'])
    const hook = { storeId, url: 'https://receiver.example/hook', events: ['checkout.completed'] }
    const { webhookId } = await call('registerWebhook', {
      ...hook,
      secret: plant('webhook secret', 'whsec_Y2FuYXJ5LXdlYmhvb2s='),
    })
    plant('rolled webhook secret', (await call('rollWebhookSecret', { webhookId }, once))['secret'])
    const psp = {
      baseUrl: 'https://psp.example',
      apiKey: plant('PSP key', 'canary-psp-key'),
      webhookSecret: plant('PSP secret', 'canary-psp-secret'),
    }
    expect(await call('configurePSP', { storeId, provider: 'custom', config: psp })).toMatchObject({ success: true })
    const credentials = { baseUrl: 'https://till.invalid', token: plant('till token', 'canary-till-token') }
    await call('syncPOS', { storeId, system: 'generic', credentials })
    await call('syncERP', {
      storeId,
      system: 'generic',
      credentials: {
        baseUrl: 'https://erp.invalid',
        username: 'untag',
        password: plant('ERP password', 'canary-erp-password'),
      },
    })
    const { products } = await call('fetchProducts', { storeId, category: 'bekleidung', limit: 100 })
    const { ean, productId } = products.find((p: Json) => p.price > 10 && p.price < 50)
    const { sessionId } = await call('checkIn', { storeId, userId: 'shopper' })
    const { transactionId } = await call('startCheckout', { sessionId, items: [{ ean, quantity: 1 }] })
    await call('completeTestCheckout', { transactionId })
    const grant = await call('verifySecurityTagDeactivation', { purchaseId: transactionId, deviceId }, once)
    plant('authorization token', grant['authorizationToken'])
    const order = await call(
      'submitClickCollectOrder',
      { storeId, userId: 'shopper', items: [{ productId, quantity: 1 }] },
      once,
    )
    plant('pick-up code', order['pickupCode'])
    // Invalid requests must not put their secrets into the log either.
    await call('createApiKey', { kind: 'secret', name: 7, key: plant('misplaced secret', 'canary-in-a-bad-request') })
    await call('configurePSP', { storeId, provider: 'custom', config: { ...psp, baseUrl: 'nonsense' } })
    await post(`${baseUrl}/fetchStores`, plant('unknown key', `untag_test_sk_${'Z'.repeat(49)}`), {})
    return { call, storeId, deviceId }
  }

  async function plantAtTheAgent(agentUrl: string): Promise<void> {
    const paired = plant('pairing credential', (await runProcess(['edge', 'pair', '--data', edge])).stdout.trim())
    plant('local credential', (await runProcess(['edge', 'credential', '--data', edge])).stdout.trim())
    const link = (await runProcess(['edge', 'link', '--data', edge])).stdout.trim()
    plant('pairing link', link.slice(link.indexOf('#') + 1))
    const postToAgent = (path: string, body: Json) => post(`${agentUrl}${path}`, paired, body)
    const operators = async () =>
      (await postToAgent('/v1/operator', { badge: secrets.get('badge') }))['session'] as string | undefined
    plant('operator session', await eventually('the operator at the agent', operators))
    await postToAgent('/v1/operator', { operatorId: 'op_x', pin: plant('wrong PIN', '5550199871') })
    await postToAgent('/v1/pair', { code: plant('wrong link', 'canary-wrong-link') })
    const answer = await fetch(`${agentUrl}/v1/pair`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code: secrets.get('pairing link') }),
    })
    plant('browser', /=(untag_browser_[\w-]+)/.exec(answer.headers.get('set-cookie') ?? '')?.[1])
  }

  /** Adds the secrets in the key files, and the secrets that these keys decrypt. */
  function plantKeys(): void {
    const master = plant('sealing key', readFileSync(join(data, 'keys/master.key'), 'utf8').trim())
    const root = JSON.parse(readFileSync(join(data, 'keys/root.json'), 'utf8')) as { d: string }
    const agent = JSON.parse(readFileSync(join(edge, 'agent.json'), 'utf8')) as { secret: string }
    plant('root key', root.d)
    plant('agent key', agent.secret)
    const { keys: storeKeys } = JSON.parse(readFileSync(join(edge, 'store-keys.json'), 'utf8')) as { keys: string[] }
    plant('store key', storeKeys[0])
    for (const name of ['sealing key', 'root key', 'agent key', 'store key'])
      raw.set(name, Buffer.from(secrets.get(name) as string, 'base64url').subarray(-32))
    const { open } = sealer([Buffer.from(master, 'base64url')], realPlatform().random)
    const db = new Sqlite(join(data, 'cloud.db'), { readonly: true })
    const keys = db.prepare('SELECT kid, sealed FROM signing_key WHERE sealed IS NOT NULL').all() as {
      kid: string
      sealed: string
    }[]
    const named = db.prepare('SELECT name, sealed FROM sealed_secret').all() as { name: string; sealed: string }[]
    const { verifiers } = db.prepare('SELECT verifiers FROM operator').get() as { verifiers: string }
    db.close()
    raw.set('base verifier of the PIN', baseVerifierOf((JSON.parse(verifiers) as { pin: Verifier }).pin))
    for (const { kid, sealed } of keys) raw.set(`signing key ${kid}`, open(sealed, `signing_key/${kid}`).subarray(-32))
    for (const { name, sealed } of named) raw.set(`secret ${name}`, open(sealed, name))
  }

  /** Computes the base verifier of the PIN. With it, a search for the PIN needs no store key. */
  function baseVerifierOf(published: Verifier): Buffer {
    const { salt, n, r, p } = published
    const base = scryptSync(secrets.get('PIN') as string, Buffer.from(salt, 'base64url'), 32, { N: n, r, p })
    const again = publishedVerifier(
      { ...published, key: base.toString('base64url') },
      secrets.get('store key') as string,
    )
    expect(again).toEqual(published)
    return base
  }

  /** Finds secrets in any encoding that a program may write. */
  function leaksIn(what: string, bytes: Buffer): string[] {
    const found = (needle: Buffer | string) => bytes.includes(needle)
    const spellings = (secret: Buffer) => [
      secret,
      secret.toString('hex'),
      secret.toString('hex').toUpperCase(),
      secret.toString('base64').replace(/=+$/, ''),
      secret.toString('base64url'),
    ]
    const texts = [...secrets].filter(([, secret]) => spellings(Buffer.from(secret)).some(found))
    const keys = [...raw].filter(([, secret]) => spellings(secret).some(found))
    // Finds tokens by their form, because the test does not know their values.
    const forms = [
      ['access token of an agent', /untag_agent_[\w-]{43}/],
      ['pairing credential', /untag_pair_[\w-]{32}/],
      ['browser', /untag_browser_[\w-]{32}/],
      ['signed document of one use', /eyJhbGciOiJFZERTQSIs[\w-]+\.[\w-]+\.[\w-]{86}/],
    ] as const
    // The agent stores signed policies and key sets, which authorize nothing.
    const inForm = what.endsWith('.db') || what.endsWith('-wal') ? forms.slice(0, 3) : forms
    const text = bytes.toString('latin1')
    return [
      ...[...texts, ...keys].map(([name]) => `${name} in ${what}`),
      ...inForm.filter(([, form]) => form.test(text)).map(([name]) => `${name} in ${what}`),
    ]
  }
  const leaksInFiles = (where: string) =>
    filesIn(where).flatMap((file) => leaksIn(relative(folder, file), readFileSync(file)))
  const KEY_FILES = /^(?:cloud\/keys\/(?:master\.key|root\.json)|edge\/(?:agent\.json|store-keys\.json|credential))$/
  const outsideKeyFiles = (leaks: string[]) => leaks.filter((leak) => !KEY_FILES.test(leak.replace(/^.* in /, '')))

  let whileRunning: string[]
  beforeAll(async () => {
    ensureBuilt()
    mkdirSync(reports)
    const cloud = await start('cloud', '--port', '0', '--mqtt-port', '0', '--data', data)
    const { call, storeId, deviceId } = await plantAtTheCloud(String(cloud.ready['baseUrl']))
    const code = plant('enrolment code', (await call('createEnrolmentCode', { storeId }))['code'])
    const enrolled = await runProcess([
      'edge',
      'enrol',
      '--cloud',
      String(cloud.ready['baseUrl']),
      '--code',
      code,
      '--data',
      edge,
    ])
    output.set('enrolment', enrolled.stdout + enrolled.stderr)
    expect(enrolled.code).toBe(0)
    const agent = await start('edge', '--port', '0', '--data', edge)
    await plantAtTheAgent(String(agent.ready['url']))
    await eventually('the agent at the cloud', async () => (await call('fetchAgents', { storeId })).agents[0]?.online)
    expect(deviceId).toMatch(/^dev_/)
    plantKeys()
    whileRunning = [...leaksInFiles(data), ...leaksInFiles(edge)]
    const made = await runProcess(['backup', '--data', data, '--to', backups, '--json'])
    backup = (JSON.parse(made.stdout) as Json)['backup'] as string
    output.set('backup', made.stdout + made.stderr)
    for (const process of running) {
      process.child.kill('SIGUSR2')
      await process.ended()
    }
    output.set('cloud', running[0]?.stderr() ?? '')
    output.set('agent', running[1]?.stderr() ?? '')
  })
  afterAll(async () => {
    for (const process of running) await process.kill()
    rmSync(folder, { recursive: true, force: true })
  })

  it('cover more than twenty secrets, and the search finds them in the key files', () => {
    expect(secrets.size + raw.size).toBeGreaterThan(25)
    for (const [name, secret] of secrets)
      expect(leaksIn('x', Buffer.from(`{"x":"${secret}"}`))).toContain(`${name} in x`)
    // The key files contain secrets, so a search that finds none is broken.
    expect(whileRunning).toEqual(
      expect.arrayContaining([
        'sealing key in cloud/keys/master.key',
        'root key in cloud/keys/root.json',
        'agent key in edge/agent.json',
        'store key in edge/store-keys.json',
        'local credential in edge/credential',
      ]),
    )
  })

  it('are only in the key files of a running cloud and agent, and in no database', () => {
    expect(outsideKeyFiles(whileRunning)).toEqual([])
    const names = [...filesIn(data), ...filesIn(edge)].map((file) => relative(folder, file))
    expect(names).toEqual(expect.arrayContaining(['cloud/cloud.db-wal', 'edge/ledger.db-wal']))
  })

  it('are in files that only their owner may read', () => {
    const modes = [...filesIn(data), ...filesIn(edge)].map((file) => [
      relative(folder, file),
      statSync(file).mode & 0o777,
    ])
    // The group may read the credential of the local API.
    expect(modes.filter(([, mode]) => mode !== 0o600)).toEqual([['edge/credential', 0o640]])
  })

  it('are in no backup', () => {
    expect(filesIn(backup).length).toBeGreaterThan(1)
    expect(leaksInFiles(backup)).toEqual([])
  })

  it('are in no log and no output of a command', () => {
    expect([...output].flatMap(([name, text]) => leaksIn(name, Buffer.from(text)))).toEqual([])
  })

  it('are not in the output, diagnostic report and databases after a crash', () => {
    for (const name of ['cloud', 'agent']) expect(output.get(name)).toContain('planted crash')
    expect(filesIn(reports)).toHaveLength(2)
    expect(leaksInFiles(reports)).toEqual([])
    expect(outsideKeyFiles([...leaksInFiles(data), ...leaksInFiles(edge)])).toEqual([])
  })

  it('are in no error of a command that could not start', async () => {
    const url = `postgres://untag:${plant('database password', 'canary-db-password')}@127.0.0.1:1/untag`
    const { code, stdout, stderr } = await runProcess(
      ['cloud', '--port', '0', '--mqtt-port', '0', '--data', join(folder, 'other')],
      {
        UNTAG_DATABASE_URL: url,
      },
    )
    expect(code).not.toBe(0)
    expect(leaksIn('output', Buffer.from(stdout + stderr))).toEqual([])
  })
})

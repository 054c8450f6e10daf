// @module-tag extended
import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { pathExists, accessError } from '../../host/private-files.ts'
import { readOptions } from '../../host/options.ts'
import { CLOUD_OPTIONS } from '../../host/settings/cloud.ts'
import { sealAudit } from '../../cloud/platform/accounts/audit-chain.ts'
import { openDatabase } from '../../cloud/platform/persistence/open-database.ts'
import type { Json } from '../support/cloud.ts'
import { newPostgresDatabase, temporaryFolder } from '../support/databases.ts'
import { asNode, runProcess, startProcess, type RunningProcess } from '../support/processes.ts'
import { runCommand } from '../support/commands.ts'
import { EXTENDED } from '../support/extended.ts'

describe('the command line', () => {
  let folder: string
  let running: RunningProcess[]
  let taken: Server

  beforeEach(async () => {
    folder = temporaryFolder('command-line')
    running = []
    taken = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => taken.once('listening', resolve))
  })
  afterEach(async () => {
    for (const process of running) await process.stop()
    taken.close()
  })
  const takenPort = () => String((taken.address() as AddressInfo).port)
  const start = async (args: string[], env: NodeJS.ProcessEnv = {}) => {
    const started = await startProcess(args, { env })
    running.push(started)
    return started
  }
  const cloudArgs = (...more: string[]) => [
    'cloud',
    '--port',
    '0',
    '--mqtt-port',
    '0',
    '--data',
    join(folder, 'cloud'),
    ...more,
  ]
  const enrolledAgent = async (run = runCommand): Promise<string> => {
    const cloud = await start(cloudArgs())
    const { key } = await keysCreate()
    const call = async (operation: string, body: Json): Promise<Json> =>
      (
        await fetch(`${cloud.ready['baseUrl']}/${operation}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
      ).json()
    const { stores } = await call('fetchStores', {})
    const { code } = await call('createEnrolmentCode', { storeId: stores[0].storeId, name: 'test' })
    const enrolled = await run([
      'edge',
      'enrol',
      '--cloud',
      String(cloud.ready['baseUrl']),
      '--code',
      code,
      '--data',
      join(folder, 'edge'),
    ])
    expect(enrolled).toMatchObject({ code: 0 })
    const again = await runCommand([
      'edge',
      'enrol',
      '--cloud',
      String(cloud.ready['baseUrl']),
      '--code',
      code,
      '--data',
      join(folder, 'other'),
    ])
    expect(again).toMatchObject({ code: 1, stderr: expect.stringMatching(/enrolment failed/) })
    const root = await runCommand([
      'edge',
      'enrol',
      '--cloud',
      new URL(String(cloud.ready['baseUrl'])).origin,
      '--code',
      code,
      '--data',
      join(folder, 'other'),
    ])
    expect(root).toMatchObject({ code: 1, stderr: expect.stringContaining('the address of a cloud ends in /api/v1') })
    return join(folder, 'edge')
  }
  const keysCreate = async (...more: string[]): Promise<Json> => {
    const made = await runCommand([
      'keys',
      'create',
      '--data',
      join(folder, 'cloud'),
      '--account',
      'Shop',
      '--mode',
      'test',
      '--json',
      ...more,
    ])
    expect(made).toMatchObject({ code: 0, stderr: expect.stringMatching(/^(?:created a new database in .*\n)?$/) })
    return JSON.parse(made.stdout) as Json
  }

  it('prints help for all commands, a group and one command', async () => {
    expect(await runProcess(['--help'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/untag cloud\s+Run the cloud/),
    })
    expect(await runCommand(['cloud', '--help'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/--database-url URL .*\[UNTAG_DATABASE_URL\]/),
    })
    expect(await runCommand([])).toMatchObject({ code: 2 })
    expect(await runCommand(['fly'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('there is no command "fly"'),
    })
    const group = await runCommand(['keys'])
    expect(group).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^untag keys needs a second word\n[^]*untag keys create/),
    })
    expect(group.stderr).not.toContain('untag cloud')
    expect(await runCommand(['keys', '--help'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/untag keys revoke/),
    })
    expect(await runCommand(['keys', 'make'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('there is no command "keys make"; the words after keys are check, create'),
    })
    expect(await runCommand(['keys', 'rotate'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('freshness or root is needed'),
    })
  })

  it('notes a version of Node.js that was not tested, and refuses one that is too old', async () => {
    const help = (version: string, ...more: string[]) => runProcess(['cloud', '--help', ...more], asNode(version))
    const note = 'untag was not tested with Node.js 27.1.0: if something fails, use 20, 22, 24 or 26'
    expect(await help('27.1.0')).toMatchObject({ code: 0, stderr: `${note}\n` })
    expect(await help('27.1.0', '--json')).toMatchObject({ code: 0, stderr: `${JSON.stringify({ note })}\n` })
    expect(await help('20.19.0')).toMatchObject({ code: 0, stderr: '' })
    expect(await help('20.18.3')).toMatchObject({
      code: 1,
      stderr: 'untag needs Node.js 20.19 or newer, and this is 20.18.3: install a newer version\n',
    })
  })

  it('reports all invalid options and environment variables together', async () => {
    const { code, stderr, stdout } = await runProcess(
      cloudArgs('--database-url', 'mysql://x', '--bogus', '--rate-limit', 'many'),
      { UNTAG_PUBLIC_URL: 'shop', UNTAG_MQTT_PORT: '99999' },
    )
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    for (const fault of [
      /--database-url must be an address beginning with postgres:/,
      /no option --bogus/,
      /--rate-limit must be a whole number from 0/,
      /UNTAG_PUBLIC_URL must be an address/,
    ])
      expect(stderr).toMatch(fault)
  })

  it('accepts 1 to 64 for --workers', () => {
    expect(readOptions(CLOUD_OPTIONS, ['--workers', '4'], {}).workers).toBe(4)
    expect(() => readOptions(CLOUD_OPTIONS, [], { UNTAG_WORKERS: '0' })).toThrow(
      /^UNTAG_WORKERS must be a whole number from 1 to 64, not "0"/,
    )
  })

  it('reports an inaccessible folder instead of treating it as missing', async () => {
    // A link to itself is inaccessible even for root. For other users, a folder of another user has the same effect.
    const data = join(folder, 'out-of-reach')
    symlinkSync(data, data)
    for (const command of [
      ['edge'],
      ['edge', 'pair'],
      ['keys', 'list'],
      ['backup'],
      ['cloud', '--port', '0', '--mqtt-port', '0'],
    ]) {
      const { code, stderr } = await runCommand([...command, '--data', data])
      expect({ command, code, stderr }).toEqual({
        command,
        code: 1,
        stderr: expect.stringMatching(/out-of-reach.* cannot be read or written \(ELOOP\)/),
      })
    }
    const refused = Object.assign(new Error('permission denied'), { code: 'EACCES' })
    expect(accessError('/srv/untag', refused)).toMatchObject({
      message: expect.stringMatching(/^\/srv\/untag .*run untag as the owner/),
    })
    expect(pathExists(join(folder, 'nothing'))).toBe(false)
  })

  it('verifies the audit log and names a changed entry', async () => {
    const verify = (...more: string[]) => runCommand(['verify-audit', '--data', join(folder, 'cloud'), ...more])
    expect(await verify()).toMatchObject({ code: 1, stderr: expect.stringContaining('cloud.db does not exist') })
    await keysCreate()
    const { keyId } = await keysCreate()
    expect(await verify()).toMatchObject({ code: 0, stdout: 'intact: 0 chains; 2 entries are not sealed yet\n' })
    const database = await openDatabase({ file: join(folder, 'cloud', 'cloud.db') }, (failure) => {
      throw failure
    })
    await sealAudit(database, Date.now() + 60_000)
    expect(await verify()).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^acc_\w+\.test {2}2 entries {2}[\w-]{43}\nintact: 1 chain; 0 entries/),
    })
    await database.write((db) =>
      db.updateTable('audit_entry').set({ actor: 'nobody' }).where('entity_id', '=', keyId).execute(),
    )
    await database.close()
    expect(await verify()).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/entry 2 \(aud_\w+\): it was changed after it was sealed/),
    })
    const { code, stdout } = await verify('--json')
    expect([code, JSON.parse(stdout).ok]).toEqual([1, false])
  })

  it('creates nothing in a mistyped data folder, and hints at the right one', async () => {
    // The folders of untag start.
    const demo = join(folder, 'demo')
    const [cloud, edge] = [join(demo, 'cloud'), join(demo, 'edge')]
    const create = (data: string) => runCommand(['keys', 'create', '--data', data, '--account', 'Shop'])
    expect(await create(cloud)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^untag_test_sk_\w+\n$/),
      stderr: `created a new database in ${cloud}: the key is valid for a cloud that uses this database\n`,
    })
    expect(await create(cloud)).toMatchObject({ code: 0, stderr: '' })
    const meant = `${demo} contains no cloud, but ${cloud} does: use it with --data ${cloud}, or choose another folder for a new cloud\n`
    expect(await create(demo)).toMatchObject({ code: 1, stdout: '', stderr: meant })
    expect(await runCommand(['cloud', '--port', '0', '--mqtt-port', '0', '--data', demo])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: meant,
    })
    const { stdout } = await runCommand(['backup', '--data', cloud, '--to', join(folder, 'backups')])
    expect(await runCommand(['restore', '--from', stdout.trim(), '--data', demo])).toMatchObject({
      code: 1,
      stderr: meant,
    })

    const hint = `(found one: use --data ${cloud})\n`
    for (const words of [
      ['keys', 'list'],
      ['keys', 'roll', '--key-id', 'key_x'],
      ['keys', 'revoke', '--key-id', 'key_x'],
      ['verify-audit'],
      ['reseal'],
      ['backup'],
      ['restore', '--after'],
    ]) {
      expect(await runCommand([...words, '--data', demo])).toMatchObject({
        code: 1,
        stdout: '',
        stderr: `${join(demo, 'cloud.db')} does not exist: choose the folder with --data, or the database with --database-url ${hint}`,
      })
    }
    expect(await runCommand(['keys', 'list', '--data', edge])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(hint),
    })
    // The database exists, but its keys are missing.
    expect(await runCommand(['reseal', '--data', cloud])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/master\.key does not exist/),
    })
    expect(await runCommand(['keys', 'rotate', '--use', 'root', '--data', demo])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/master\.key does not exist/),
    })
    for (const words of [['edge', 'pair'], ['edge', 'rotate-key'], ['edge']])
      expect(await runCommand([...words, '--data', edge])).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringContaining(`${edge} contains no agent`),
      })
    expect(await runCommand(['restore', '--from', folder, '--data', edge])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('contains no complete backup'),
    })
    expect(await runCommand(['doctor', '--data', join(folder, 'deep', 'edge')])).toMatchObject({ code: 1 })
    expect([
      readdirSync(demo),
      readdirSync(folder).toSorted(),
      readdirSync(cloud).filter((name) => !/-(?:wal|shm)$/.test(name)),
    ]).toEqual([['cloud'], ['backups', 'demo'], ['cloud.db']])

    writeFileSync(edge, '')
    expect(await create(edge)).toMatchObject({
      code: 1,
      stderr: `${edge} is a file and cannot be a folder: choose another path\n`,
    })
    expect(await runCommand(['doctor', '--data', edge])).toMatchObject({
      code: 1,
      stdout: expect.stringContaining(`✗ data folder        ${edge} is a file`),
    })
    writeFileSync(join(cloud, 'cloud.db'), 'something else, which somebody has put here')
    expect(await runCommand(['keys', 'list', '--data', cloud])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/cloud\.db is not a SQLite database: choose the folder/),
    })
  })

  it('creates credentials for an enrolled agent, hints at its folder, and reports all faults of its configuration', async () => {
    const data = await enrolledAgent()
    expect(await runCommand(['edge', 'pair', '--data', data])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^untag_pair_[\w-]{32}\n$/),
    })
    for (const words of [['edge', 'pair'], ['edge', 'rotate-key'], ['edge']]) {
      for (const wrong of [folder, join(folder, 'typo')])
        expect(await runCommand([...words, '--data', wrong])).toMatchObject({
          code: 1,
          stdout: '',
          stderr: expect.stringContaining(`(found one: use --data ${data})`),
        })
    }
    expect(await runCommand(['doctor', '--data', folder])).toMatchObject({
      code: 1,
      stdout: expect.stringContaining(`--data ${data})`),
    })
    expect(readdirSync(folder)).not.toContain('typo')

    const config = join(folder, 'edge.json')
    const link = { tcp: 'localhost' }
    writeFileSync(
      config,
      JSON.stringify({
        devices: [
          { deviceId: 'a', driver: 'modbus', link, output: -1 },
          { deviceId: 'a', driver: 'modbusx', link: { tcp: 'x:1' } },
        ],
        colour: 'red',
      }),
    )
    const { code, stdout, stderr } = await runCommand(['edge', '--data', data, '--config', config, '--port', '0'])
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    for (const fault of [
      /edge\.json has \d faults/,
      /devices\[0\]\.link/,
      /devices\[0\]\.output/,
      /devices\[1\]\.driver/,
      /colour/,
    ])
      expect(stderr).toMatch(fault)
    expect(await runCommand(['edge', '--data', data, '--config', join(folder, 'none.json')])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /none\.json does not exist: check the path of --config. For a new agent, create it with the text \{"devices":\[\]\}/,
      ),
    })
    expect(await runCommand(['doctor', '--data', data, '--config', config])).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/✗ .*edge\.json/),
    })
  })

  it('explains the same decision that the cloud makes', async () => {
    const cloud = await start(cloudArgs())
    const { key } = await keysCreate()
    const call = async (operation: string, body: Json): Promise<Json> =>
      (
        await fetch(`${cloud.ready['baseUrl']}/${operation}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
      ).json()
    const { storeId } = (await call('fetchStores', {})).stores.find((s: Json) => s.securityTagMode === 'rfid')
    const { deviceId } = await call('registerDevice', {
      storeId,
      deviceType: 'self_checkout_detacher',
      name: 'Detacher',
    })
    const explain = (...more: string[]) =>
      runCommand([
        'policy',
        'explain',
        '--key',
        key,
        '--base-url',
        String(cloud.ready['baseUrl']),
        '--device',
        deviceId,
        '--action',
        'detach_hard_tag',
        ...more,
      ])
    await call('updateProtectionPolicy', {
      storeId,
      policy: {
        allowedActionsByCategory: { '*': { detach_hard_tag: ['self_service'] } },
        requiresManualOverrideAboveValue: 50,
      },
    })
    const cheap = await explain('--category', 'bekleidung', '--price', '49.99')
    expect(cheap).toMatchObject({ code: 0, stderr: '' })
    expect(cheap.stdout).toContain(
      `detach_hard_tag at ${deviceId} (self_checkout_detacher, self_service): an item of "bekleidung", 49.99 EUR\npolicy version 2 of ${storeId}, entry "*"\nfresh    granted\nstale    granted\nexpired  refused   policy_stale: the cloud has not confirmed the policy`,
    )
    expect(cheap.stdout).toContain('receipts that an isolated agent honours: fresh 20 in 14400 s; stale 10 in 7200 s')
    const dear = JSON.parse((await explain('--price', '50', '--store', storeId, '--json')).stdout) as Json
    expect(dear).toMatchObject({
      storeId,
      policyVersion: 2,
      price: 50,
      entry: '*',
      offline: { authorized: false, reason: 'manual_assistance_required', unknownFacts: [] },
      stages: [
        {
          stage: 'fresh',
          authorized: false,
          reason: 'manual_assistance_required',
          detail: 'items from 50.00 EUR need staff',
        },
        {},
        {},
      ],
    })
    // The cloud gives the same reason and explanation for an existing item.
    const { products } = await call('fetchProducts', { storeId, category: 'bekleidung', limit: 100 })
    const { ean } = products.find((p: Json) => p.price > 50)
    // The EPC is not an SGTIN, so it does not identify a product.
    const epc = 'E20000000000000000000001'
    expect(
      await call('registerProtectedItems', { storeId, items: [{ ean, epc, protectionTechnology: 'uhf_rfid' }] }),
    ).toMatchObject({ registered: 1 })
    const { sessionId } = await call('checkIn', { storeId, userId: 'shopper' })
    const { transactionId } = await call('startCheckout', { sessionId, items: [{ ean, quantity: 1, epcs: [epc] }] })
    await call('completeTestCheckout', { transactionId })
    const answer = await call('verifyProtectedItem', {
      deviceId,
      protectionAction: 'detach_hard_tag',
      epc,
      explain: true,
    })
    expect(answer).toMatchObject({ authorized: false, reason: 'manual_assistance_required' })
    expect(JSON.stringify(answer)).toContain(JSON.stringify(dear.stages[0].trace.at(-1)))
    const events = (await call('fetchProtectionEvents', { storeId })).events as Json[]
    expect(events.filter((e) => e.type === 'protection.authorization.denied')).toHaveLength(1)

    expect(await explain('--price', '12,90')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--price must be an amount such as 12.90'),
    })
    expect(await explain('--device', 'dev_x')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no device dev_x in any store of this key'),
    })
    expect(await runCommand(['policy', 'explain'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--key KEY or UNTAG_KEY is needed.*\n--device ID is needed\n--action is needed/),
    })
  })

  it('names the API or database that cannot be reached', async () => {
    const nobody = 'http://127.0.0.1:9999'
    const dead = `http://127.0.0.1:${takenPort()}/api/v1`
    taken.close()
    for (const words of [
      ['trigger', 'webhook.test'],
      ['listen', '--forward-to', nobody],
    ]) {
      expect(await runCommand([...words, '--key', 'untag_test_sk_x', '--base-url', dead])).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(
          /^http:\/\/127\.0\.0\.1:\d+\/api\/v1 cannot be reached: .*ECONNREFUSED.*is the cloud running\?.*--base-url or UNTAG_API\n$/,
        ),
      })
    }
    const other = createHttpServer((_, response) => response.end('<html>')).listen(0, '127.0.0.1')
    await once(other, 'listening')
    const elsewhere = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
    expect(
      await runCommand(['trigger', 'webhook.test', '--key', 'untag_test_sk_x', '--base-url', elsewhere]),
    ).toMatchObject({
      code: 1,
      stderr: `${elsewhere}/api/v1 responds with 200 without JSON: check --base-url, which ends in /api/v1\n`,
    })
    other.close()
    expect(
      await runCommand(['keys', 'list', '--database-url', `postgres://localhost:${new URL(dead).port}/x`]),
    ).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^the database cannot be reached: .*ECONNREFUSED.*; check --database-url\n$/),
    })
  })

  it('takes the last of repeated options; only the owner can read the keys', async () => {
    const cloud = await start(['cloud', '--port', takenPort(), ...cloudArgs().slice(1)], {
      UNTAG_PORT: takenPort(),
      UNTAG_DATA_DIR: '/nowhere',
    })
    expect(Object.keys(cloud.ready)).toEqual(['baseUrl', 'mqttUrl'])
    expect(cloud.ready['baseUrl']).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/api\/v1$/)
    const keys = join(folder, 'cloud/keys')
    for (const name of readdirSync(keys)) expect(statSync(join(keys, name)).mode & 0o077).toBe(0)
  })

  it('names the port and the option if a port is taken', async () => {
    const port = takenPort()
    expect(await runProcess(cloudArgs('--port', port))).toMatchObject({
      code: 1,
      stdout: '',
      stderr: `port ${port} is taken: stop what uses it, or choose another with --port\n`,
    })
    expect(await runProcess(cloudArgs('--mqtt-port', port))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`port ${port} is taken: stop what uses it, or choose another with --mqtt-port`),
    })
  })

  it('creates keys while the cloud runs, which are valid at once and stored only as hashes', async () => {
    const cloud = await start(cloudArgs())
    const made = await keysCreate()
    expect(made).toEqual({
      key: expect.stringMatching(/^untag_test_sk_/),
      keyId: expect.any(String),
      accountId: expect.any(String),
      kind: 'secret',
      mode: 'test',
    })
    const status = async (key: string) =>
      (
        await fetch(`${cloud.ready['baseUrl']}/fetchStores`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: '{}',
        })
      ).status
    expect(await status(made.key)).toBe(200)
    expect(await status(`${made.key.slice(0, -1)}${made.key.endsWith('0') ? '1' : '0'}`)).toBe(401)
    const live = await keysCreate('--mode', 'live')
    expect(live).toMatchObject({
      key: expect.stringMatching(/^untag_live_sk_/),
      accountId: made.accountId,
      mode: 'live',
    })
    for (const name of readdirSync(join(folder, 'cloud'))) {
      expect(readFileSync(join(folder, 'cloud', name === 'keys' ? 'cloud.db' : name)).includes(made.key)).toBe(false)
    }
    expect(await runCommand(['keys', 'create', '--data', join(folder, 'cloud')])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--account NAME is needed'),
    })
  })

  it('lists, rolls and revokes keys while the cloud runs, without printing their secrets', async () => {
    const cloud = await start(cloudArgs())
    const made = await keysCreate()
    const status = async (key: string) =>
      (
        await fetch(`${cloud.ready['baseUrl']}/fetchStores`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: '{}',
        })
      ).status
    const keys = async (...args: string[]) =>
      runCommand(['keys', args[0] ?? '', '--data', join(folder, 'cloud'), ...args.slice(1)])
    const rolled = JSON.parse(
      (await keys('roll', '--key-id', made.keyId, '--overlap-hours', '1', '--json')).stdout,
    ) as Json
    expect([await status(made.key), await status(rolled.key)]).toEqual([200, 200])
    expect(await keys('revoke', '--key-id', made.keyId)).toMatchObject({
      code: 0,
      stdout: `${made.keyId} is revoked\n`,
    })
    expect([await status(made.key), await status(rolled.key)]).toEqual([401, 200])
    const listed = await keys('list', '--account', 'Shop', '--json')
    expect((JSON.parse(listed.stdout) as Json).keys).toMatchObject([
      { keyId: made.keyId, account: 'Shop', status: 'revoked', replacedBy: rolled.keyId },
      { keyId: rolled.keyId, status: 'active', kind: 'secret', mode: 'test' },
    ])
    const log = (await (
      await fetch(`${cloud.ready['baseUrl']}/fetchAuditLog`, {
        method: 'POST',
        headers: { authorization: `Bearer ${rolled.key}`, 'content-type': 'application/json' },
        body: '{}',
      })
    ).json()) as Json
    expect(log.entries.map((e: Json) => [e.actor, e.operation])).toEqual(
      ['createApiKey', 'rollApiKey', 'revokeApiKey'].map((operation) => ['command line', operation]),
    )
    for (const { stdout } of [listed, await keys('list')])
      for (const { key } of [made, rolled]) expect(stdout).not.toContain(key)
    expect(await keysCreate('--kind', 'admin')).toMatchObject({
      key: expect.stringMatching(/^untag_live_ak_/),
      mode: 'live',
    })
    expect(await keys('roll', '--key-id', made.keyId)).toMatchObject({
      code: 1,
      stderr: 'the key is revoked: make a new one\n',
    })
    expect(await keys('revoke', '--key-id', 'key_x')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no key key_x'),
    })
    expect(await keys('revoke')).toMatchObject({ code: 2, stderr: expect.stringContaining('--key-id ID is needed') })
    expect(await keys('list', '--account', 'Nobody')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no account "Nobody"'),
    })
    expect(await runCommand(['keys', 'list', '--data', join(folder, 'nowhere')])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('cloud.db does not exist'),
    })
  })

  const without = inject('postgresUrl') === ''
  it.skipIf(without)(
    `does the same on PostgreSQL${without ? ' (skipped: install the package postgresql)' : ''}`,
    EXTENDED,
    async () => {
      const { url, remove } = await newPostgresDatabase()
      const keys = async (...args: string[]): Promise<Json> =>
        JSON.parse((await runCommand(['keys', ...args, '--database-url', url, '--json'])).stdout) as Json
      expect(await runCommand(['keys', 'list', '--database-url', url])).toMatchObject({
        code: 1,
        stderr: 'the database contains no cloud: check --database-url\n',
      })
      const made = await keys('create', '--account', 'Shop', '--mode', 'live')
      const rolled = await keys('roll', '--key-id', made.keyId, '--overlap-hours', '0')
      expect(await keys('revoke', '--key-id', rolled.keyId)).toMatchObject({ keyId: rolled.keyId, status: 'revoked' })
      expect((await keys('list')).keys.map((k: Json) => [k.keyId, k.mode, k.status])).toEqual(
        [made, rolled].map(({ keyId }) => [keyId, 'live', 'revoked']),
      )
      await remove()
    },
  )

  it('removes the access of other users to files in an open folder, and rejects a second cloud or agent there', async () => {
    const [cloudFolder, edge] = [join(folder, 'cloud'), join(folder, 'edge')]
    for (const each of [cloudFolder, edge]) {
      mkdirSync(each)
      chmodSync(each, 0o755)
    }
    const modes = (of: string) =>
      readdirSync(of, { withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name }) => [name, statSync(join(of, name)).mode & 0o077])
    await enrolledAgent(runProcess)
    expect(modes(cloudFolder).length).toBeGreaterThan(1)
    expect(modes(edge).map(([name]) => name)).toContain('ledger.db')
    // The group may read the agent's credential.
    for (const [name, mode] of [...modes(cloudFolder), ...modes(edge)])
      expect([name, mode]).toEqual([name, name === 'credential' ? 0o040 : 0])
    chmodSync(join(edge, 'ledger.db'), 0o644)
    const agent = await start(['edge', '--data', edge, '--port', '0'])
    expect(statSync(join(edge, 'ledger.db')).mode & 0o007).toBe(0)

    expect(await runProcess(cloudArgs())).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/another cloud runs with the data in .*--data/),
    })
    expect(agent.ready['agentId']).toMatch(/^agt_/)
    expect(await runProcess(['edge', '--data', edge, '--port', '0'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/another agent runs with the data in .*--data/),
    })
  })

  it('reports that a machine without an agent must be enrolled first', async () => {
    expect(await runCommand(['edge', '--data', join(folder, 'nobody')])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/contains no agent: enrol one with untag edge enrol/),
    })
    expect(await runCommand(['edge', 'enrol'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--cloud BASE_URL is needed\n--code CODE is needed/),
    })
  })

  it('checks the machine with untag doctor', async () => {
    const { stdout, code } = await runCommand(['doctor', '--data', join(folder, 'edge')])
    // Its only fault is that no agent is enrolled here.
    expect(code).toBe(1)
    expect(stdout).toMatch(/✓ /)
    expect(stdout.match(/✗ .*/g)).toEqual([
      expect.stringMatching(/^✗ enrolment +no agent in \S+: enrol one with untag edge enrol/),
    ])
  })

  it('serves a simulated board, scanner and gate on their wire protocols', async () => {
    const board = await start(['simulate', 'relay-board', '--port', '0'])
    expect(board.ready).toMatchObject({ tcp: expect.stringMatching(/^127\.0\.0\.1:\d+$/) })
    const scanner = await start(['simulate', 'scanner', '--port', '0'])
    expect(scanner.ready).toMatchObject({ tcp: expect.stringMatching(/^127\.0\.0\.1:\d+$/) })
    const gate = await start(['simulate', 'gate', '--port', '0', '--tags', '200', '--walkers', '30/min'])
    expect(gate.ready).toMatchObject({ tcp: expect.stringMatching(/^127\.0\.0\.1:\d+$/) })
  })

  it('serves a simulated till, prints its credentials, and rejects an unknown system', async () => {
    const till = await start(['simulate', 'pos', 'square', '--port', '0'])
    const { url, credentials } = till.ready as unknown as { url: string; credentials: { accessToken: string } }
    const headers = { authorization: `Bearer ${credentials.accessToken}`, 'square-version': '2026-09-16' }
    expect((await fetch(`${url}/v2/catalog/list?types=ITEM`, { headers })).status).toBe(200)
    expect(await runCommand(['simulate', 'erp', 'square'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('odoo'),
    })
  })

  it('serves a simulated payment provider, and prints the values for configurePSP', async () => {
    const psp = await start(['simulate', 'psp', '--provider', 'stripe', '--port', '0'])
    expect(psp.ready).toMatchObject({
      baseUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      provider: 'stripe',
      config: { secretKey: expect.any(String), webhookSecret: expect.stringMatching(/^whsec_/) },
    })
    const { config, baseUrl }: Json = psp.ready
    const answer = await fetch(`${baseUrl}/v1/checkout/sessions/cs_x`, {
      headers: { authorization: `Bearer ${config['secretKey']}` },
    })
    expect([answer.status, await answer.json()]).toMatchObject([404, { error: { code: 'resource_missing' } }])
    expect(await runCommand(['simulate', 'psp', '--provider', 'nobody'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--provider/),
    })
  })

  it('encrypts with a new master key while stopped; SIGTERM and SIGINT stop it with code 0', async () => {
    const reseal = (...more: string[]) => runCommand(['reseal', '--data', join(folder, 'cloud'), '--json', ...more])
    expect(await reseal()).toMatchObject({ code: 1, stderr: expect.stringContaining('cloud.db does not exist') })
    const cloud = await start(cloudArgs())
    expect(await reseal()).toMatchObject({ code: 1, stderr: expect.stringContaining('a cloud runs with the data') })
    expect(await cloud.stop()).toBe(0)
    const keys = () =>
      readFileSync(join(folder, 'cloud', 'keys', 'master.key'), 'utf8')
        .trim()
        .split('\n')
    const before = keys()
    const first = JSON.parse((await reseal()).stdout)
    expect(first).toMatchObject({ keyId: expect.stringMatching(/^k[0-9a-f]{12}$/), oldKeys: 1 })
    expect(first.resealed).toBeGreaterThan(0)
    expect(keys().slice(1)).toEqual(before)
    const { child } = await start(cloudArgs())
    child.kill('SIGINT')
    expect(await once(child, 'exit')).toEqual([0, null])
    expect(JSON.parse((await reseal('--drop-old-keys')).stdout)).toMatchObject({
      resealed: expect.any(Number),
      oldKeys: 0,
    })
    expect(keys()).toHaveLength(1)
    await (await start(cloudArgs())).stop()
  })
})

// @module-tag extended
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeAll, expect, it } from 'vitest'
import { authorizationIn } from '../../host/credential-file.ts'
import { until } from '../verification/disk-faults/fault-store.ts'
import { ensureBuilt } from '../support/built.ts'
import type { Json } from '../support/cloud.ts'
import { temporaryFolder } from '../support/databases.ts'
import { runCommand } from '../support/commands.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'
import { startProcess, type RunningProcess } from '../support/processes.ts'

/** Tests of commands that replace stolen keys of the cloud. */

const folder = temporaryFolder('cloud-keys')
const [data, edge] = [join(folder, 'cloud'), join(folder, 'edge')]
const running: RunningProcess[] = []
beforeAll(ensureBuilt)
afterEach(async () => {
  for (const process of running.splice(0).toReversed()) await process.stop()
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function start(...args: string[]): Promise<RunningProcess> {
  const started = await startProcess(args)
  running.push(started)
  return started
}

async function end(process: RunningProcess): Promise<void> {
  running.splice(running.indexOf(process), 1)
  await process.stop()
}

const printed = async (...args: string[]): Promise<Json> => {
  const { code, stdout, stderr } = await runCommand([...args, '--json'])
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as Json
}

it('a running cloud rejects tokens of a revoked signing key at once, and signs with the next key', async () => {
  const own = join(folder, 'signing')
  const cloud = await start('cloud', '--port', '0', '--mqtt-port', '0', '--data', own)
  const { key } = await printed('keys', 'create', '--data', own, '--account', 'Shop', '--mode', 'test')
  const callApi = async (operation: string, body: Json = {}): Promise<Json> =>
    (
      await fetch(`${cloud.ready['baseUrl']}/${operation}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    ).json() as Promise<Json>
  const { storeId } = (await callApi('fetchStores')).stores.find((s: Json) => s.securityTagMode === 'rfid')
  const { deviceId } = await callApi('registerDevice', { storeId, deviceType: 'pos_deactivator', name: 'Kasse' })
  const { products } = await callApi('fetchProducts', { storeId, category: 'bekleidung', limit: 100 })
  const { ean } = products.find((p: Json) => p.price > 10 && p.price < 50)
  const grant = async (): Promise<string> => {
    const { sessionId } = await callApi('checkIn', { storeId, userId: 'shopper' })
    const { transactionId } = await callApi('startCheckout', { sessionId, items: [{ ean, quantity: 1 }] })
    await callApi('completeTestCheckout', { transactionId })
    return (await callApi('verifySecurityTagDeactivation', { purchaseId: transactionId, deviceId })).authorizationToken
  }
  const kidOf = (token: string): string =>
    (JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()) as Json).kid

  const stolen = await grant()
  for (const command of ['rotate', 'revoke']) {
    const before = kidOf(await grant())
    const { keys } = await printed(
      'keys',
      command,
      '--use',
      'token',
      '--account',
      'Shop',
      '--mode',
      'test',
      '--data',
      own,
    )
    const after = kidOf(await grant())
    expect(keys.map((k: Json) => k.kid)).toEqual([after])
    expect(after).not.toBe(before)
    if (command === 'rotate')
      await printed(
        'keys',
        'revoke',
        '--use',
        'token',
        '--account',
        'Shop',
        '--mode',
        'test',
        '--kid',
        before,
        '--data',
        own,
      )
  }
  expect(
    await callApi('redeemProtectionAuthorization', {
      authorizationToken: stolen,
      deviceId,
      redemptionId: 'rdm-stolen',
    }),
  ).toMatchObject({ reason: 'token_revoked' })
})

it('agents reject key sets of a new root key until they are re-enrolled', async () => {
  const [port, mqttPort] = [await freePort(), await freePort()]
  const startCloud = () => start('cloud', '--port', String(port), '--mqtt-port', String(mqttPort), '--data', data)
  const startAgent = () => start('edge', '--data', edge, '--port', '0')
  const cloudUrl = `http://127.0.0.1:${port}/api/v1`
  const { key } = await printed('keys', 'create', '--data', data, '--account', 'Shop', '--mode', 'test')
  const call = async (operation: string, body: Json = {}): Promise<Json> => {
    const answer = await fetch(`${cloudUrl}/${operation}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (!answer.ok) throw new Error(`${operation}: ${await answer.text()}`)
    return answer.json() as Promise<Json>
  }
  const enrol = async (...more: string[]) => {
    const { code } = await call('createEnrolmentCode', { storeId })
    return runCommand(['edge', 'enrol', '--cloud', cloudUrl, '--code', code, '--data', edge, ...more])
  }
  const online = (agent: RunningProcess) =>
    until('the agent online', async () => {
      const { online: isOnline, stage } = (await (
        await fetch(`${agent.ready['url']}/v1/status`, { headers: authorizationIn(edge) })
      ).json()) as Json
      return isOnline === true && stage === 'fresh'
    })

  let cloud = await startCloud()
  const [{ storeId }] = (await call('fetchStores')).stores
  expect(await enrol()).toMatchObject({ code: 0 })
  let agent = await startAgent()
  await online(agent)

  const rotate = ['keys', 'rotate', '--use', 'root', '--data', data]
  expect(await runCommand(rotate)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('a cloud runs with the data in'),
  })
  await end(cloud)
  const { kid } = await printed(...rotate)
  expect(readdirSync(join(data, 'keys')).filter((name) => name.startsWith('root-'))).toHaveLength(1)

  cloud = await startCloud()
  const refusals = () => call('fetchExceptions', { storeId, kind: 'refused_document' })
  await until('the refusal of the agent', async () =>
    (await refusals()).exceptions.some((e: Json) => e.detail.startsWith('keys+jwt: unknown_key')),
  )
  await end(agent)
  expect(await enrol()).toMatchObject({ code: 1, stderr: expect.stringContaining('already contains agent agt_') })
  const [former] = (await call('fetchAgents', { storeId })).agents
  await call('revokeAgent', { agentId: former.agentId })
  expect(await enrol('--replace')).toMatchObject({ code: 0 })
  agent = await startAgent()
  await online(agent)
  expect((await call('fetchAgents', { storeId })).agents.filter((a: Json) => a.state === 'active')).toMatchObject([
    { agentId: agent.ready['agentId'] },
  ])
  expect(agent.ready['agentId']).not.toBe(former.agentId)
  expect(kid).toMatch(/^[\w-]{8}$/)
})

it('an agent with a lost or damaged identity or ledger is re-enrolled on its machine and sends its remaining rows', async () => {
  const [data, edge] = [join(folder, 'lost', 'cloud'), join(folder, 'lost', 'edge')]
  const cloud = await start('cloud', '--port', '0', '--mqtt-port', '0', '--data', data)
  const { key } = await printed('keys', 'create', '--data', data, '--account', 'Shop', '--mode', 'test')
  const call = async (operation: string, body: Json = {}): Promise<Json> =>
    (
      await fetch(`${cloud.ready['baseUrl']}/${operation}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    ).json() as Promise<Json>
  const [{ storeId }] = (await call('fetchStores')).stores
  const enrol = async (...more: string[]) => {
    const { code } = await call('createEnrolmentCode', { storeId })
    return runCommand([
      'edge',
      'enrol',
      '--cloud',
      String(cloud.ready['baseUrl']),
      '--code',
      code,
      '--data',
      edge,
      ...more,
    ])
  }
  /** Starts the agent, sends a request that it denies, and waits until the cloud has the event. */
  const works = async () => {
    const agent = await start('edge', '--data', edge, '--port', '0')
    const body = JSON.stringify({ deviceId: 'dev_x', protectionAction: 'deactivate_label', token: 'none' })
    await fetch(`${agent.ready['url']}/v1/authorize`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...authorizationIn(edge) },
      body,
    })
    await until('an empty queue', async () => {
      const { online, stage, queueDepth } = (await (
        await fetch(`${agent.ready['url']}/v1/status`, { headers: authorizationIn(edge) })
      ).json()) as Json
      return online === true && stage === 'fresh' && queueDepth === 0
    })
    await end(agent)
  }
  const refusesToStart = async (why: RegExp) =>
    expect(await runCommand(['edge', '--data', edge, '--port', '0'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(why),
    })

  expect(await enrol()).toMatchObject({ code: 0 })
  await works()
  rmSync(join(edge, 'agent.json'))
  expect(await enrol()).toMatchObject({ code: 0 })
  await works()
  writeFileSync(join(edge, 'agent.json'), '{')
  await refusesToStart(/agent\.json is damaged: re-enrol this agent with untag edge enrol --replace/)
  expect(await enrol()).toMatchObject({ code: 1, stderr: expect.stringContaining('--replace') })
  expect(await enrol('--replace')).toMatchObject({ code: 0, stderr: expect.stringContaining('revokeAgent') })
  await works()
  const damages = [
    [8_192, 8_192],
    [0, 100],
  ].slice(0, IS_FULL_SIZE ? 2 : 1)
  for (const [at = 0, bytes = 0] of damages) {
    const file = join(edge, 'ledger.db')
    const damaged = readFileSync(file)
    damaged.fill(0x5a, at, at + bytes)
    writeFileSync(file, damaged)
    await refusesToStart(/ledger\.db is damaged: re-enrol this agent with untag edge enrol --replace/)
    expect(await enrol('--replace')).toMatchObject({ code: 0, stderr: expect.stringContaining('ledger-damaged-') })
    await works()
  }
  expect(readdirSync(edge).filter((name) => /^ledger-damaged-.*\.db$/.test(name))).toHaveLength(damages.length)
})

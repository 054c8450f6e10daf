// @module-tag extended
import { chmodSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { credentialFile } from '../../host/credential-file.ts'
import { realPlatform } from '../../host/platform.ts'
import { agentReadiness, checkPorts } from '../../bin/commands/doctor.ts'
import { ensureBuilt } from '../support/built.ts'
import { temporaryFolder } from '../support/databases.ts'
import { openJourney, type Journey } from '../support/journey.ts'
import { runCommand } from '../support/commands.ts'

/** A port without a listener. */
const BOARDS = { station: '127.0.0.1:1', detacher: '127.0.0.1:2', gate: '127.0.0.1:3' }

describe('commands while the agent runs', () => {
  let journey: Journey
  let data: string
  beforeAll(async () => {
    ensureBuilt()
    journey = await openJourney({ boards: BOARDS })
    data = join(journey.folder, 'edge')
  })
  afterAll(() => journey?.stop())

  const url = () => String(journey.agent.ready['url'])
  const statusWith = async (headers: Record<string, string>) => (await fetch(`${url()}/v1/status`, { headers })).status
  const bearer = (credential: string) => ({ authorization: `Bearer ${credential}` })
  const edge = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCommand(['edge', ...args, '--data', data])
    expect([code, stderr]).toEqual([0, ''])
    return stdout
  }
  async function openLink(link: string): Promise<Response> {
    const { origin, pathname, hash } = new URL(link)
    expect(pathname).toBe('/pair')
    return fetch(`${origin}/v1/pair`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code: hash.slice(1) }),
    })
  }

  it('the first start logs one link, and the ready line does not contain it', async () => {
    expect(Object.keys(journey.agent.ready)).toEqual(['url', 'agentId'])
    const links = [...journey.agent.stderr().matchAll(/"pairingUrl":"([^"]+)"/g)].map(([, link = '']) => link)
    expect(links).toHaveLength(1)
    expect((await openLink(links[0] ?? '')).status).toBe(200)
    expect((await openLink(links[0] ?? '')).status).toBe(403)
  })

  it('doctor names configured devices that are not registered in the store', async () => {
    const station = journey.devices.pos_deactivator
    const file = join(journey.folder, 'doctor.json')
    const entry = (deviceId: string, output: number) => ({
      deviceId,
      driver: 'modbus',
      link: { tcp: '127.0.0.1:1' },
      output,
    })
    const scanner = { deviceId: 'scanner_1', driver: 'scanner', link: { tcp: '127.0.0.1:2' }, feeds: station }
    const doctor = async (...deviceIds: string[]) => {
      writeFileSync(file, JSON.stringify({ devices: [...deviceIds.map(entry), scanner] }))
      return runCommand(['doctor', '--data', data, '--config', file])
    }
    const wrong = await doctor(station, 'dev_typo')
    expect(wrong.stdout).toMatch(/✗ registration +dev_typo is unknown_device: .*registerDevice/)
    expect(wrong.code).toBe(1)
    // The agent runs with another file: what it says of its devices is not about this one.
    expect(wrong.stdout).toMatch(
      new RegExp(
        `✗ configuration +the running agent uses \\S+, not ${file}: .*restart the agent with --config ${file}`,
      ),
    )
    const right = await doctor(station)
    expect(right.stdout).toMatch(/✓ registration +1 device in store st_/)
    // The running agent names the three boards without power.
    const faults = right.stdout.split('\n').filter((line) => line.startsWith('✗'))
    expect(faults.shift()).toMatch(/^✗ configuration +the running agent uses/)
    expect(faults.map((line) => /^✗ dev_\w+ .*absent, (\S+): .*Check its power/.exec(line)?.[1])).toEqual(
      Object.values(BOARDS),
    )
    expect([right.code, right.stderr]).toEqual([1, ''])
    expect(right.stdout).toMatch(/✓ agent +agt_\w+ runs at[^]*✓ broker[^]*✓ ledger[^]*explains: device_absent\n/)
  })

  it('doctor recognises the cloud, its broker and the agent by their ports', async () => {
    const [cloud, agent] = [journey.cloud.ready['baseUrl'], url()].map((text) => Number(new URL(String(text)).port))
    const mqtt = Number(new URL(String(journey.cloud.ready['mqttUrl'])).port)
    const strange = createServer().listen(0, '127.0.0.1')
    await once(strange, 'listening')
    const { port: taken } = strange.address() as AddressInfo
    expect((await agentReadiness(agent))?.emergency).toBe(false)
    expect(await checkPorts({ cloud: cloud ?? 0, agent: agent ?? 0, mqtt })).toEqual([
      { port: cloud, state: 'ok', detail: expect.stringMatching(/^an untag cloud runs here; .*--port/) },
      { port: mqtt, state: 'ok', detail: expect.stringContaining(`the broker of the untag cloud on port ${cloud}`) },
      { port: agent, state: 'ok', detail: expect.stringContaining('an untag agent runs here') },
    ])
    expect((await checkPorts({ cloud: taken, agent: agent ?? 0, mqtt }))[0]).toEqual({
      port: taken,
      state: 'note',
      detail: expect.stringContaining('not recognised'),
    })
    strange.close()
  })

  it('credential prints only the credential, and --renew replaces it at once', async () => {
    const file = join(data, 'credential')
    const first = await edge('credential')
    expect(first).toMatch(/^untag_pair_[\w-]{32}\n$/)
    expect(await edge('credential')).toBe(first)
    expect(readFileSync(file, 'utf8')).toBe(first)
    expect(statSync(file).mode & 0o777).toBe(0o640)
    expect(await statusWith({})).toBe(401)
    expect(await statusWith(bearer(first.trim()))).toBe(200)
    const next = await edge('credential', '--renew')
    expect(next).not.toBe(first)
    expect(await statusWith(bearer(first.trim()))).toBe(401)
    expect(await statusWith(bearer(next.trim()))).toBe(200)
    expect((await fetch(`${url()}/station`, { headers: bearer(next.trim()) })).status).toBe(200)
    expect(statSync(file).mode & 0o777).toBe(0o640)
    expect(await edge('credential')).toBe(next)
  })

  it('link pairs a browser once; pairings lists and revokes browsers and programs', async () => {
    const link = (await edge('link')).trim()
    expect(link).toMatch(new RegExp(`^${url()}/pair#untag_link_[\\w-]{32}$`))
    const paired = await openLink(link)
    const cookie = paired.headers.get('set-cookie')?.split(';')[0] ?? ''
    expect(await statusWith({ cookie })).toBe(200)
    expect((await openLink(link)).status).toBe(403)

    const till = (await edge('pair', '--name', 'till 3')).trim()
    expect(await statusWith(bearer(till))).toBe(200)
    const list = await edge('pairings')
    expect(list).not.toContain('untag_')
    const ids = (kind: string) =>
      [...list.matchAll(new RegExp(`^(pr_\\S{12})  ${kind}  `, 'gm'))].map(([, id = '']) => id)
    expect(list).toMatch(/program {2}till 3 {2}paired \d{4}-\d\d-\d\d {2}never used$/m)
    expect(ids('browser')).toHaveLength(2)
    for (const id of [...ids('browser'), ...ids('program')])
      expect(await edge('pairings', '--revoke', id)).toBe(`revoked ${id}\n`)
    expect(await statusWith({ cookie })).toBe(401)
    expect(await statusWith(bearer(till))).toBe(401)
    const unknown = await runCommand(['edge', 'pairings', '--data', data, '--revoke', 'nothing'])
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('untag edge pairings lists them')])
  })

  it('link accepts only a name of the agent', async () => {
    const port = new URL(url()).port
    expect(await edge('link', '--host', 'localhost')).toContain(`http://localhost:${port}/pair#`)
    const other = await runCommand(['edge', 'link', '--data', data, '--host', 'evil.example'])
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining('--host must be one of 127.0.0.1')])
  })

  it('a later start logs no link; with requirePairing false, sign-in and pages need a credential and programs do not', async () => {
    const file = join(journey.folder, 'edge.json')
    const config = JSON.parse(readFileSync(file, 'utf8')) as object
    writeFileSync(file, JSON.stringify({ ...config, requirePairing: false }))
    await journey.agent.stop()
    await journey.startAgent()
    expect(journey.agent.stderr()).not.toContain('pairingUrl')
    expect(await statusWith({})).toBe(200)
    for (const [method, path] of [
      ['POST', '/v1/operator'],
      ['DELETE', '/v1/operator'],
      ['GET', '/v1/events'],
      ['POST', '/v1/setup/check'],
      ['GET', '/station'],
    ] as const)
      expect((await fetch(url() + path, { method })).status).toBe(401)
    // While the agent is stopped, the link has its last address.
    await journey.agent.stop()
    expect(await edge('link')).toContain(`${url()}/pair#`)
    await journey.startAgent()
  })
})

describe('the credential file', () => {
  const folder = temporaryFolder('credential')
  const { random } = realPlatform()
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('is created once, keeps its mode when renewed, and is replaced if it is damaged', () => {
    const file = credentialFile(folder, random)
    expect(file.read()).toBeUndefined()
    const made = file.ensure()
    expect([file.ensure(), credentialFile(folder, random).read()]).toEqual([made, made])
    chmodSync(join(folder, 'credential'), 0o600)
    expect(file.renew()).not.toBe(made)
    expect(statSync(join(folder, 'credential')).mode & 0o777).toBe(0o640)
    writeFileSync(join(folder, 'credential'), '')
    expect(file.read()).toBeUndefined()
    expect(file.ensure()).toMatch(/^untag_pair_/)
  })

  it.skipIf(process.getuid?.() !== 0)('keeps the agent’s user and group when root renews it', async () => {
    const { chownSync } = await import('node:fs')
    chownSync(join(folder, 'credential'), 1234, 2345)
    credentialFile(folder, random).renew()
    expect(statSync(join(folder, 'credential'))).toMatchObject({ uid: 1234, gid: 2345 })
  })
})

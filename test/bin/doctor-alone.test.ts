import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { checkAgent, type AgentCheck } from '../../bin/doctor/agent.ts'
import { checkCloud } from '../../bin/doctor/cloud.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import { readConfig } from '../../edge-agent/config.ts'
import type { Identity } from '../../edge-agent/identity/identity.ts'
import { openLedgerFile } from '../../edge-agent/ledger/file/ledger-file.ts'
import { openMetadata } from '../../edge-agent/ledger/file/watermark.ts'
import { LOCAL_URLS } from '../../edge-agent/ledger/pairings.ts'
import { RelayBoard } from '../../simulators/devices/modbus.ts'
import { realPlatform } from '../device-drivers/platform.ts'
import { temporaryFolder } from '../support/databases.ts'

const modbus = (deviceId: string, n: number) => ({
  deviceId,
  driver: 'modbus',
  link: { tcp: `10.0.0.${n}:502` },
  output: 0,
})

/** An agent that does not run, with a board that answers and one that does not. */
function stopped(): AgentCheck {
  const data = join(temporaryFolder('doctor'), 'edge')
  mkdirSync(data)
  const board = new RelayBoard({ platform: realPlatform, locks: [] })
  const port = memoryPort((link) => board.serve(link))
  const checked = readConfig(JSON.stringify({ devices: [modbus('dev_a', 1), modbus('dev_b', 2)] }))
  if (!checked.ok) throw new Error(checked.faults.join())
  return {
    data,
    identity: { agentId: 'agt_1' } as Identity,
    config: checked.config,
    file: undefined,
    platform: realPlatform,
    openLink: (link, signal) =>
      'tcp' in link && link.tcp === '10.0.0.1:502'
        ? port.open(signal)
        : Promise.reject(new Error('connection refused')),
    send: () => Promise.reject(new TypeError('fetch failed')),
  }
}

it('connects to the devices itself while no agent runs, and says that none runs', async () => {
  const check = stopped()
  const devices = [
    { what: 'dev_a', state: 'ok', detail: expect.stringContaining('ready') },
    {
      what: 'dev_b',
      state: 'wrong',
      cause: 'device_absent',
      detail: expect.stringMatching(/connection refused.*cable/),
    },
  ]
  expect(await checkAgent(check)).toEqual([
    { what: 'agent', state: 'note', detail: expect.stringContaining('untag edge --data') },
    ...devices,
  ])
  const db = openLedgerFile(join(check.data, 'ledger.db'))
  openMetadata(db).set(LOCAL_URLS, '["http://127.0.0.1:8090"]')
  db.close()
  expect(await checkAgent(check)).toEqual([
    { what: 'agent', state: 'wrong', cause: 'agent_not_running', detail: expect.stringContaining('start it with') },
    ...devices,
  ])
})

it('sends its credential to no other agent, names that agent, and leaves its devices alone', async () => {
  const asked: string[] = []
  const answerAs = (agentId: string): AgentCheck => ({
    ...stopped(),
    send: async (url, init) => {
      asked.push(
        `${new URL(String(url)).pathname}${new Headers(init?.headers).has('authorization') ? ' with credential' : ''}`,
      )
      return new Response('{}', { status: 401, headers: { 'x-untag': `agent; id=${agentId}` } })
    },
  })
  const detail = expect.stringMatching(/^the agent agt_2 answers at http:\S+, not agt_1 of .*--data/)
  expect(await checkAgent(answerAs('agt_2'))).toEqual([
    { what: 'agent', state: 'wrong', cause: 'agent_not_running', detail },
  ])
  expect(asked.splice(0)).toEqual(['/healthz'])
  expect(await checkAgent(answerAs('agt_1'))).toMatchObject([{ cause: 'credential_refused' }])
  expect(asked).toEqual(['/healthz', '/v1/status with credential'])
})

const answering = (dateMs: number, nowMs: number, endMs?: number) =>
  checkCloud({
    cloud: 'https://cloud.example/api/v1',
    isAgentRunning: true,
    send: async () => new Response('{}', { headers: { date: new Date(dateMs).toUTCString() } }),
    nowMs: () => nowMs,
    certificateEnd: async () => endMs,
  })

it.each([
  [29_000, 'ok', undefined, /like the clock/],
  [-29_000, 'ok', undefined, /like the clock/],
  [31_000, 'wrong', 'clock_wrong', /31 seconds behind the clock of the cloud: set the time/],
  [-3 * 86_400_000, 'wrong', 'clock_wrong', /3 days ahead of the clock of the cloud: set the time/],
])('compares the clock with the cloud: %i ms', async (differenceMs, state, cause, detail) => {
  const nowMs = Date.parse('2026-11-29T10:00:00Z')
  const clock = (await answering(nowMs + differenceMs, nowMs)).find(({ what }) => what === 'clock')
  expect(clock).toEqual({ what: 'clock', state, detail: expect.stringMatching(detail), ...(cause && { cause }) })
})

it.each([true, false])('says that the agent goes on only while it runs: %s', async (isAgentRunning) => {
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const [finding] = await checkCloud({
    cloud: 'http://127.0.0.1:9/api/v1',
    isAgentRunning,
    send: () => Promise.reject(refused),
    nowMs: () => 0,
    certificateEnd: async () => undefined,
  })
  expect(finding?.detail.includes('The agent goes on deciding offline')).toBe(isAgentRunning)
  // The step names the option that changes the address.
  expect(finding?.detail).toContain('If it has another address, set --cloud of untag edge enrol --replace')
})

it('names a certificate of the cloud that ends soon', async () => {
  const nowMs = Date.parse('2026-11-29T10:00:00Z')
  const days = (n: number) => answering(nowMs, nowMs, nowMs + n * 86_400_000)
  expect(await days(13)).toContainEqual({
    what: 'certificate',
    state: 'wrong',
    cause: 'certificate',
    detail: 'the certificate of the cloud ends in 13 days: renew it',
  })
  expect((await days(60)).every(({ state }) => state === 'ok')).toBe(true)
})

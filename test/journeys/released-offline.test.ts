// @module-tag extended
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { authorizationIn } from '../../host/credential-file.ts'
import type { Json } from '../support/cloud.ts'
import { eventually, openJourney, type Journey } from '../support/journey.ts'
import { runCommand } from '../support/commands.ts'
import { independentBoard, type IndependentBoard } from '../support/modbus-serial-board.ts'
import { processesOfTests, type RunningProcess } from '../support/processes.ts'
import { newEpc } from '../support/shop.ts'

/** Two agent processes of an offline store: one has the detacher, the other has the gate. */

const SECRET = 'a-secret-of-the-gate-reader'

let journey: Journey
let boards: Record<'station' | 'detacher' | 'gate' | 'second', IndependentBoard>
let second: RunningProcess | undefined
let detacher: string

beforeAll(async () => {
  const [station, own, gate, other] = await Promise.all([1, 2, 3, 4].map(() => independentBoard()))
  boards = { station: station!, detacher: own!, gate: gate!, second: other! }
  journey = await openJourney({
    boards: { station: boards.station.address, detacher: boards.detacher.address, gate: boards.gate.address },
  })
  const { folder, storeId, api, wire } = journey
  // Configures a reader at the gate that sends its reads over HTTP.
  const file = join(folder, 'edge.json')
  const config = JSON.parse(readFileSync(file, 'utf8')) as { devices: Json[] }
  const reader = { deviceId: 'gate-reader', driver: 'http-ingest', link: { push: 'gate-1' }, secret: SECRET }
  config.devices.push({ ...reader, mapping: 'keonn', clock: 'arrival', feeds: journey.devices.exit_gate })
  writeFileSync(file, JSON.stringify(config))
  await journey.agent.stop()
  await journey.startAgent()

  detacher = String((await api.call('registerDevice', { storeId, deviceType: 'self_checkout_detacher' })).deviceId)
  const { code } = await api.call('createEnrolmentCode', { storeId, name: 'second' })
  const data = join(folder, 'second')
  const cloud = `http://127.0.0.1:${wire.httpPort}/api/v1`
  await runCommand(['edge', 'enrol', '--cloud', cloud, '--code', String(code), '--data', data])
  mkdirSync(data, { recursive: true })
  const board = { driver: 'modbus', link: { tcp: boards.second.address }, output: 0, confirmInput: 0, pulseMs: 50 }
  writeFileSync(join(folder, 'second.json'), JSON.stringify({ devices: [{ deviceId: detacher, ...board }] }))
  second = await processesOfTests.start([
    'edge',
    '--data',
    data,
    '--config',
    join(folder, 'second.json'),
    '--port',
    '0',
  ])
})
afterAll(async () => {
  await second?.stop()
  await journey.stop()
  for (const board of Object.values(boards)) await board.close()
})

/** The authorization header of the agent with this address. */
const programAt = (url: unknown) =>
  authorizationIn(join(journey.folder, url === second?.ready['url'] ? 'second' : 'edge'))
const statusOf = async (url: unknown) =>
  (await (await fetch(`${url}/v1/status`, { headers: programAt(url) })).json()) as Json
const isReady = ({ online, devices }: Json) => online && devices.every((d: Json) => d.state === 'ready')
const detach = async (url: unknown, deviceId: string, body: Json): Promise<Json> => {
  const answer = await fetch(`${url}/v1/authorize`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...programAt(url) },
    body: JSON.stringify({ deviceId, protectionAction: 'detach_hard_tag', ...body }),
  })
  return (await answer.json()) as Json
}
const carryOut = async (epc: string): Promise<number> => {
  const read = { epc, antenna: '1', rssi: '-50', ts: '0' }
  const answer = await fetch(`${journey.agent.ready['url']}/ingest/gate-1`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-untag-secret': SECRET },
    body: JSON.stringify({ devid: 'gate', reads: [read] }),
  })
  return answer.status
}
const metric = async (url: unknown, name: string) => {
  const line = (await (await fetch(`${url}/metrics`)).text()).split('\n').find((each) => each.startsWith(`${name} `))
  return Number(line?.split(' ')[1] ?? Number.NaN)
}
const countOf = (kind: 'passed' | 'alarms') =>
  metric(journey.agent.ready['url'], `untag_gate_total{device="${journey.devices.exit_gate}",kind="${kind}"}`)

it('only goods released offline by another agent pass a gate, within a second', async () => {
  const { storeId, api, wire, products } = journey
  const other = second!
  const [product] = products as Json[]
  const [own, others, unpaid] = [newEpc(), newEpc(), newEpc()]
  await api.call('registerProtectedItems', {
    storeId,
    items: [own, others, unpaid].map((epc) => ({ epc, ean: product.ean, protectionTechnology: 'uhf_rfid' })),
  })
  for (const { ready } of [journey.agent, other])
    await eventually('both online', async () => isReady(await statusOf(ready['url'])))
  // Both have the policy that names the other agent, and the gate has the items.
  const policyOf = async () => (await api.call('fetchAgents', { storeId })).agents as Json[]
  await eventually('the same policy', async () => {
    const agents = await policyOf()
    return agents.length === 2 && new Set(agents.map(({ policyVersion }) => policyVersion)).size === 1
  })
  wire.cut()
  for (const { ready } of [journey.agent, other])
    await eventually('both offline', async () => !(await statusOf(ready['url'])).online)
  const { receipt } = await journey.buy([{ ean: String(product.ean), quantity: 2, epcs: [own, others] }])

  const first = await detach(journey.agent.ready['url'], journey.devices.self_checkout_detacher, { receipt, epc: own })
  expect(first).toMatchObject({ authorized: true, outcome: 'confirmed', offline: true })
  expect(await detach(other.ready['url'], detacher, { receipt, epc: others })).toMatchObject({
    authorized: true,
    outcome: 'confirmed',
    offline: true,
  })
  await eventually(
    'the notice',
    async () => (await metric(other.ready['url'], 'untag_release_notices_waiting')) === 0,
    1_000,
  )
  for (const epc of [own, others]) expect(await carryOut(epc)).toBe(200)
  await eventually('both have passed', async () => (await countOf('passed')) === 2)
  expect(await countOf('alarms')).toBe(0)
  expect(await carryOut(unpaid)).toBe(200)
  await eventually('the alarm', async () => (await countOf('alarms')) === 1)
})

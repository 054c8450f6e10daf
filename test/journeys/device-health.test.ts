// @module-tag extended
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../support/cloud.ts'
import { eventually, openJourney, type Journey } from '../support/journey.ts'
import { freePort } from '../support/ports.ts'
import { startProcess, type RunningProcess } from '../support/processes.ts'

const KNOWN_MS = 15_000

let journey: Journey
let board: RunningProcess
let port: number
const startBoard = async () =>
  void (board = await startProcess(['simulate', 'relay-board', '--port', String(port)], { stdin: 'pipe' }))

beforeAll(async () => {
  port = await freePort()
  await startBoard()
  journey = await openJourney({
    boards: { station: `127.0.0.1:${port}`, detacher: '127.0.0.1:2', gate: '127.0.0.1:3' },
  })
})
afterAll(async () => {
  await journey?.stop()
  await board?.kill()
})

const health = async (): Promise<Json> => {
  const { storeId, devices } = journey
  const listed = (await journey.api.call('fetchDevices', { storeId })) as Json
  return listed.devices.find((each: Json) => each.deviceId === devices.pos_deactivator).health
}
const becomes = (state: string) =>
  eventually(`the device ${state}`, async () => (await health()).state === state, KNOWN_MS)

it('knows within 15 s that the board of a connected agent was killed, that it is back, and that the agent was killed', async () => {
  await becomes('ready')
  await board.kill()
  await becomes('absent')
  await eventually('the reason', async () => (await health()).detail.includes(`127.0.0.1:${port}`), KNOWN_MS)
  await startBoard()
  await eventually('the repair', async () => (await health()).state === 'ready', 2 * KNOWN_MS)
  await journey.agent.kill()
  await becomes('unknown')
  expect(await health()).toMatchObject({ unknownBecause: 'agent_offline' })
  await journey.startAgent()
  await becomes('ready')
})

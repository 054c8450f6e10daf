// @module-tag extended
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { realPlatform } from '../../host/platform.ts'
import { killLoop, killNumber, STEPS, VICTIMS, type KillLoop } from '../verification/kills/kill-loop.ts'
import { seededRandom } from '../verification/simulation/virtual/virtual-platform.ts'
import type { Json } from '../support/cloud.ts'
import { eventually, openJourney, type Journey } from '../support/journey.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'
import { independentBoard, type IndependentBoard } from '../support/modbus-serial-board.ts'

/** At each step a kill by receipt and one by token, or one of both. `npm run prove` kills every victim at every step. */
const KILLS = STEPS.flatMap((_, turn) => {
  const byReceipt = 4 * turn + (turn % 4)
  const byToken = (victim: number) => 4 * (turn + STEPS.length) + (victim % 4)
  return IS_FULL_SIZE ? [byReceipt, byToken(turn + 1)] : [turn % 2 === 0 ? byReceipt : byToken(turn)]
}).map((n) => killNumber(n))

describe('power cuts', () => {
  let journey: Journey
  let boards: Record<'station' | 'detacher' | 'gate', IndependentBoard>
  let loop: KillLoop
  let isStopped = false

  beforeAll(async () => {
    boards = { station: await independentBoard(), detacher: await independentBoard(), gate: await independentBoard() }
    journey = await openJourney({
      boards: { station: boards.station.address, detacher: boards.detacher.address, gate: boards.gate.address },
    })
    await eventually('the boards', async () => (await journey.status()).devices.every((d: Json) => d.state === 'ready'))
    loop = killLoop({
      store: journey,
      board: boards.station,
      platform: realPlatform(),
      random: seededRandom(20_261_120),
    })
  })
  afterAll(async () => {
    if (!isStopped) await journey.stop()
    for (const board of Object.values(boards)) await board.close()
  })

  it('cover every step and victim, by receipt and by token, online and offline', () => {
    expect(new Set(KILLS.map(({ step }) => step)).size).toBe(STEPS.length)
    expect(new Set(KILLS.map(({ victim }) => victim)).size).toBe(new Set(VICTIMS.sqlite).size)
    for (const either of [true, false]) {
      expect(KILLS.some(({ withToken }) => withToken === either)).toBe(true)
      expect(KILLS.some(({ offline }) => offline === either)).toBe(true)
    }
  })

  it.each(STEPS)('%s: no device moves twice', async (step) => {
    for (const kill of KILLS.filter((k) => k.step === step)) expect(await loop.round(kill)).toEqual([])
  })

  it('lose and duplicate no event, and leave both databases sound', async () => {
    expect(await loop.audit()).toEqual([])
    await journey.stopProcesses()
    expect(await loop.checkFiles()).toEqual([])
    isStopped = true
    await journey.stop()
  })
})

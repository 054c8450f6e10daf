import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { realPlatform } from '../../bin/platform.ts'
import { pause } from '../../policy/platform.ts'
import { seededRandom } from '../../simulators/world/virtual-platform.ts'
import type { Json } from '../support/cloud.ts'
import { eventually, openJourney, type Journey } from '../support/journey.ts'
import { independentBoard, type IndependentBoard } from '../support/modbus-serial-board.ts'

/**
 * Power cuts at the agent and in the cloud, at every step of a release. Whatever happens: nothing moves
 * twice on one right (P1), and what was answered is told to the cloud, exactly once (P3).
 */
const AGENT_STEPS = ['as soon as it is asked', 'when the cloud is asked', 'when the output goes on', 'when the output goes off', 'when it has answered', 'while it tells the cloud', 'at any time'] as const
const CLOUD_STEPS = ['when it is asked', 'when the output goes on', 'when the agent has answered', 'at any time'] as const
const AGENT_ROUNDS = 6
const CLOUD_ROUNDS = 3
/** A release with everything around it takes about so long; kills at any time fall within, ms. */
const RELEASE_MS = 150

describe('power cuts', () => {
  const random = seededRandom(20_261_120)
  const { timers } = realPlatform()
  let journey: Journey
  let boards: Record<'station' | 'detacher' | 'gate', IndependentBoard>
  let kills = 0
  /** Events that a caller was told of. */
  const told = new Set<string>()
  const bought: { transactionId: string; pulses: number }[] = []

  const isUp = () => eventually('the boards', async () => (await journey.status()).devices.every((d: Json) => d.state === 'ready'))
  const online = () => eventually('online', async () => (await journey.status()).online === true, 30_000)

  beforeAll(async () => {
    boards = { station: await independentBoard(), detacher: await independentBoard(), gate: await independentBoard() }
    journey = await openJourney({ boards: { station: boards.station.address, detacher: boards.detacher.address, gate: boards.gate.address } })
    await isUp()
  })
  afterAll(async () => {
    await journey.stop()
    for (const board of Object.values(boards)) await board.close()
  })

  /** The right that is asked for: a receipt or a token, by the same words each time. */
  async function buyRight(withToken: boolean): Promise<{ transactionId: string; body: Json }> {
    const { transactionId, receipt } = await journey.buy([{ ean: journey.products[0].ean, quantity: 1 }])
    const body = { deviceId: journey.devices.pos_deactivator, protectionAction: 'deactivate_label' }
    if (!withToken) return { transactionId, body: { ...body, receipt } }
    const { authorizationToken } = await journey.api.call('verifySecurityTagDeactivation', { purchaseId: transactionId, deviceId: body.deviceId })
    return { transactionId, body: { ...body, token: authorizationToken } }
  }

  async function ask(body: Json): Promise<Json | undefined> {
    const answer = await journey.authorize(body).catch(() => undefined)
    if (typeof answer?.eventId === 'string') told.add(answer.eventId)
    return answer
  }

  /** Resolves at the step; the listeners are taken away again. */
  function reached(step: (typeof AGENT_STEPS | typeof CLOUD_STEPS)[number], answered: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        boards.station.onChange = () => undefined
        journey.wire.onAsked = () => undefined
        resolve()
      }
      if (step === 'as soon as it is asked') void pause(timers, 1).then(done)
      if (step === 'when the cloud is asked' || step === 'when it is asked') journey.wire.onAsked = done
      if (step === 'when the output goes on') boards.station.onChange = (coil, on) => coil === 0 && on && done()
      if (step === 'when the output goes off') boards.station.onChange = (coil, on) => coil === 0 && !on && done()
      if (step === 'when it has answered' || step === 'when the agent has answered') void answered.then(done)
      if (step === 'while it tells the cloud') void answered.then(() => (journey.wire.onAsked = done))
      if (step === 'at any time') void pause(timers, (random.bytes(1)[0] ?? 0) % RELEASE_MS).then(done)
      // A step that does not come, as with the cloud out of reach, is cut short.
      void answered.then(() => pause(timers, RELEASE_MS)).then(done)
    })
  }

  async function round(step: (typeof AGENT_STEPS | typeof CLOUD_STEPS)[number], kill: () => Promise<void>, withToken: boolean): Promise<void> {
    const { transactionId, body } = await buyRight(withToken)
    const before = boards.station.pulses()
    // Two at once, as when a page and a scanner say the same.
    const answered = Promise.all([ask(body), ask(body)])
    await reached(step, answered)
    await kill()
    kills++
    await answered
    const again = await ask(body)
    const pulses = boards.station.pulses() - before
    expect(pulses).toBeLessThanOrEqual(1)
    if (again?.authorized === true) expect(again.outcome).toBe('confirmed')
    // Used up, or somebody must look whether it moved.
    else expect(['already_redeemed', 'manual_assistance_required']).toContain(again?.reason)
    bought.push({ transactionId, pulses })
  }

  for (const step of AGENT_STEPS) {
    it(`the agent’s process dies ${step}`, { timeout: 120_000 }, async () => {
      for (let n = 0; n < AGENT_ROUNDS; n++) {
        const isOffline = n % 3 === 2
        const kill = async () => {
          await journey.agent.kill()
          await journey.startAgent()
          await isUp()
        }
        if (!isOffline) {
          await online()
          await round(step, kill, n % 2 === 1)
          continue
        }
        // The receipt was bought; then the network went.
        const cutAndKill = async () => {
          journey.wire.cut()
          await kill()
        }
        await round(step, cutAndKill, n % 2 === 1)
        journey.wire.restore()
      }
    })
  }

  for (const step of CLOUD_STEPS) {
    it(`the cloud’s process dies ${step}`, { timeout: 120_000 }, async () => {
      for (let n = 0; n < CLOUD_ROUNDS; n++) {
        await online()
        const kill = async () => {
          await journey.cloud.kill()
          await journey.startCloud()
        }
        await round(step, kill, n % 2 === 1)
      }
    })
  }

  it('nothing is lost and nothing is double', async () => {
    expect(kills).toBeGreaterThanOrEqual(50)
    await online()
    await eventually('an empty outbox', async () => (await journey.status()).queueDepth === 0, 30_000)
    const events = await journey.events()
    const ids = events.map((e) => e.eventId)
    expect(new Set(ids).size).toBe(ids.length)
    expect([...told].filter((id) => !ids.includes(id))).toEqual([])
    for (const { transactionId, pulses } of bought) {
      const own = events.filter((e) => e.purchaseId === transactionId)
      const redeemed = own.filter((e) => ['protection.action.completed', 'protection.action.failed'].includes(e.type))
      // One right, one redemption; what moved is known, or known not to be known.
      expect(redeemed).toHaveLength(1)
      expect(pulses === 1 || redeemed[0].outcome === 'unknown').toBe(true)
      const { securityTagStatus } = (await journey.api.call('fetchPurchase', { transactionId })) as Json
      if (redeemed[0].outcome === 'confirmed') expect(securityTagStatus).toBe('deactivated')
    }
    expect(events.filter((e) => e.type === 'protection.exception.raised' && e.reason === 'double_redeem')).toEqual([])
  }, 60_000)
})

// @module-tag extended
import { mkdirSync, rmSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../support/cloud.ts'
import { temporaryFolder } from '../support/databases.ts'
import { fakeTime, newBoot, NO_FAKETIME, NO_REBOOT, type FakeTime } from '../support/fake-time.ts'
import { eventually, openJourney, type Journey } from '../support/journey.ts'
import { independentBoard, type IndependentBoard } from '../support/modbus-serial-board.ts'
import type { ProcessEnvironment } from '../support/processes.ts'

const HOUR = 3_600
const DAY = 24 * HOUR
const YEAR = 365 * DAY
/** Clock offset after a boot without a clock battery, s: the clock starts in 1970. */
const DEAD_CLOCK = 300 - Math.floor(Date.now() / 1_000)

const why = NO_FAKETIME ?? NO_REBOOT

/** Sets the wall clocks of real processes forward and back (ADR trusted-time). */
describe.skipIf(why !== null)(`wall clocks that jump${why === null ? '' : ` (${why})`}`, () => {
  let folder: string
  let boards: Record<'station' | 'detacher' | 'gate', IndependentBoard>
  let cloudTime: FakeTime
  let agentTime: FakeTime
  let journey: Journey
  const agentIn: ProcessEnvironment = {}
  const bought: string[] = []
  let ended: string

  beforeAll(async () => {
    folder = temporaryFolder('clocks')
    mkdirSync(folder, { recursive: true })
    ;[cloudTime, agentTime] = [fakeTime(folder, 'cloud'), fakeTime(folder, 'agent')]
    agentIn.env = agentTime.env
    // Two hours ago, so that the first tokens have expired when the clocks are correct again.
    cloudTime.set(-2 * HOUR)
    agentTime.set(-2 * HOUR)
    boards = { station: await independentBoard(), detacher: await independentBoard(), gate: await independentBoard() }
    journey = await openJourney({
      boards: { station: boards.station.address, detacher: boards.detacher.address, gate: boards.gate.address },
      cloudIn: { env: cloudTime.env },
      agentIn,
    })
    await isUp()
    ended = await token((await buy()).transactionId)
  })
  afterAll(async () => {
    await journey.stop()
    for (const board of Object.values(boards)) await board.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const isUp = () =>
    eventually('the boards', async () => (await journey.status()).devices.every((d: Json) => d.state === 'ready'))
  const online = () => eventually('online', async () => (await journey.status()).online === true)
  const offline = async () => {
    journey.wire.cut()
    await eventually('offline', async () => (await journey.status()).online === false)
  }
  const buy = async () => {
    const purchase = await journey.buy([{ ean: journey.products[0].ean, quantity: 1 }])
    bought.push(purchase.transactionId)
    return purchase
  }
  const token = async (purchaseId: string) => {
    const { authorizationToken } = (await journey.api.call('verifySecurityTagDeactivation', {
      purchaseId,
      deviceId: journey.devices.pos_deactivator,
    })) as Json
    return String(authorizationToken)
  }
  const release = (body: { token: string } | { receipt: string }) =>
    journey.authorize({ deviceId: journey.devices.pos_deactivator, protectionAction: 'deactivate_label', ...body })
  const granted = async (body: { token: string } | { receipt: string }) => {
    const { authorized, reason } = await release(body)
    expect([authorized, reason]).toEqual([true, undefined])
  }
  const denied = async (body: { token: string } | { receipt: string }, reason: unknown) =>
    expect(await release(body)).toMatchObject({ authorized: false, reason })
  const post = (operation: string, body: object) =>
    fetch(`${journey.baseUrl}/${operation}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${journey.key}` },
      body: JSON.stringify(body),
    })

  /** Reboots the agent's machine with this clock offset. */
  async function reboot(seconds: number): Promise<void> {
    await journey.agent.kill()
    agentTime.set(seconds)
    agentIn.through = newBoot(folder)
    await journey.startAgent()
    await isUp()
  }
  async function restartCloud(seconds: number): Promise<void> {
    await journey.cloud.kill()
    cloudTime.set(seconds)
    await journey.startCloud()
  }

  it('never make expired tokens valid again once the agent has the time', async () => {
    await restartCloud(0)
    // The agent ran two hours behind, so the current signed time is far ahead and needs a confirmation. A correct clock
    // at the start is one.
    await reboot(0)
    await online()
    await denied({ token: ended }, 'token_expired')
    agentTime.set(-2 * HOUR)
    await denied({ token: ended }, 'token_expired')
    await offline()
    await denied({ token: ended }, 'token_expired')
    await reboot(-2 * HOUR)
    await denied({ token: ended }, 'token_expired')
    journey.wire.restore()
    await online()
  })

  it('keep valid tokens and receipts valid while the agent runs, online or offline', async () => {
    const [first, second, third] = [await buy(), await buy(), await buy()]
    const tokens = [await token(second.transactionId), await token(third.transactionId)] as const
    agentTime.set(DAY)
    await granted({ receipt: first.receipt })
    await offline()
    await granted({ token: tokens[0] })
    agentTime.set(-YEAR)
    await granted({ token: tokens[1] })
    await denied({ token: tokens[0] }, 'already_redeemed')
    await denied({ receipt: first.receipt }, 'already_redeemed')
    agentTime.set(0)
    journey.wire.restore()
    await online()
  })

  it.each([
    // Without trusted time an operator must be present.
    ['a dead clock', DEAD_CLOCK, /^(clock_untrusted|manual_assistance_required)$/],
    ['a clock two days ahead', 2 * DAY, /^token_expired$/],
  ])('deny after an offline start with %s, until the agent is online', async (_what, seconds, reason) => {
    const [first, second] = [await buy(), await buy()]
    const good = await token(second.transactionId)
    await offline()
    await reboot(seconds)
    await denied({ receipt: first.receipt }, expect.stringMatching(reason))
    await denied({ token: good }, expect.stringMatching(reason))
    journey.wire.restore()
    await online()
    await granted({ receipt: first.receipt })
    await granted({ token: good })
  })

  it('stop the cloud’s signatures while its own clock is untrusted; the store continues', async () => {
    const [first, second] = [await buy(), await buy()]
    const ask = async () => {
      const answer = await post('verifySecurityTagDeactivation', {
        purchaseId: second.transactionId,
        deviceId: journey.devices.pos_deactivator,
      })
      return { status: answer.status, body: (await answer.json()) as Json }
    }
    const signsNothing = async () => {
      expect(await ask()).toMatchObject({ status: 503, body: { reason: 'clock_untrusted' } })
      expect((await fetch(`${journey.baseUrl}/time?nonce=0123456789abcdef`)).status).toBe(503)
    }
    cloudTime.set(DAY)
    await signsNothing()
    await granted({ receipt: first.receipt })
    await denied({ receipt: first.receipt }, 'already_redeemed')
    await restartCloud(-YEAR)
    await signsNothing()
    await restartCloud(0)
    expect((await ask()).body).toMatchObject({ deactivationAuthorized: true })
    await online()
    await granted({ receipt: second.receipt })
  })

  it('leave the events in the cloud complete, each stored once', async () => {
    await eventually('an empty outbox', async () => (await journey.status()).queueDepth === 0)
    const events = await journey.events()
    expect(new Set(events.map((e) => e.eventId)).size).toBe(events.length)
    // With the clock two days ahead the agent had no trusted time, so it recorded no release then.
    for (const event of events.filter((e) => e.type === 'protection.action.completed'))
      expect(Math.abs(Date.parse(event.occurredAt) - Date.now())).toBeLessThan(3 * HOUR * 1_000)
    for (const transactionId of bought.slice(1))
      expect(
        events.filter((e) => e.purchaseId === transactionId && e.type === 'protection.action.completed'),
      ).toHaveLength(1)
  })
})

// @module-tag extended
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../support/cloud.ts'
import { eventually, openJourney, type Journey } from '../support/journey.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'
import { independentBoard, type IndependentBoard } from '../support/modbus-serial-board.ts'
import { NO_OTHER_NETWORK, otherNetwork, type OtherNetwork } from '../support/other-network.ts'

/** The cloud runs in its own network namespace, and the kernel drops packets between it and the agent. */
describe.skipIf(NO_OTHER_NETWORK !== null)(
  `a cloud in another network${NO_OTHER_NETWORK === null ? '' : ` (${NO_OTHER_NETWORK})`}`,
  () => {
    let boards: Record<'station' | 'detacher' | 'gate', IndependentBoard>
    let network: OtherNetwork
    let journey: Journey
    const bought: string[] = []
    /** Purchases per fault. */
    const count = IS_FULL_SIZE ? 3 : 1

    beforeAll(async () => {
      network = otherNetwork()
      boards = { station: await independentBoard(), detacher: await independentBoard(), gate: await independentBoard() }
      journey = await openJourney({
        boards: { station: boards.station.address, detacher: boards.detacher.address, gate: boards.gate.address },
        cloudHost: network.host,
        cloudIn: { through: network.through },
      })
      await eventually('the boards', async () =>
        (await journey.status()).devices.every((d: Json) => d.state === 'ready'),
      )
    })
    afterAll(async () => {
      await journey.stop()
      network.remove()
      for (const board of Object.values(boards)) await board.close()
    })

    /** Makes purchases while the network works and returns their receipts. */
    const receipts = async () => {
      const made: string[] = []
      for (let n = 0; n < count; n++) {
        const { transactionId, receipt } = await journey.buy([{ ean: journey.products[0].ean, quantity: 1 }])
        bought.push(transactionId)
        made.push(receipt)
      }
      return made
    }
    const release = (receipt: string) =>
      journey.authorize({ deviceId: journey.devices.pos_deactivator, protectionAction: 'deactivate_label', receipt })
    async function releasesOnce(receipt: string): Promise<void> {
      const before = boards.station.pulses()
      expect(await release(receipt)).toMatchObject({ authorized: true, outcome: 'confirmed' })
      expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
      expect(boards.station.pulses()).toBe(before + 1)
    }
    async function hasAllOnce(): Promise<void> {
      await eventually('online', async () => (await journey.status()).online === true)
      await eventually('an empty outbox', async () => (await journey.status()).queueDepth === 0)
      const events = await journey.events()
      expect(new Set(events.map((e) => e.eventId)).size).toBe(events.length)
      for (const transactionId of bought) {
        expect(
          events.filter((e) => e.purchaseId === transactionId && e.type === 'protection.action.completed'),
        ).toHaveLength(1)
        expect((await journey.api.call('fetchPurchase', { transactionId })) as Json).toMatchObject({
          securityTagStatus: 'deactivated',
        })
      }
      expect(events.filter((e) => e.reason === 'double_redeem')).toEqual([])
    }

    it('does not stop the agent when the cable is pulled, and receives everything once later', async () => {
      const good = await receipts()
      network.unplug()
      for (const receipt of good) await releasesOnce(receipt)
      expect(await journey.status()).toMatchObject({ online: false })
      network.plug()
      await hasAllOnce()
    })

    it('works with 300 ms latency and 30 % packet loss: correct decisions, complete events', async () => {
      const good = await receipts()
      network.lose(30)
      journey.wire.delay(300)
      for (const receipt of good) await releasesOnce(receipt)
      network.lose(0)
      journey.wire.delay(0)
      await hasAllOnce()
    })
  },
)

// @module-tag extended
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RunningProcess } from '../verification/kills/processes.ts'
import type { Json } from '../support/cloud.ts'
import { eventually, openJourney, type Journey } from '../support/journey.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'
import { independentBoard, type IndependentBoard } from '../support/modbus-serial-board.ts'

/**
 * I13 in real processes: releases, denials and lost connections leave no additional file handles and little
 * heap. The simulation cannot measure this.
 */

/** On SIGUSR2, writes the number of open handles and the heap size after garbage collection. */
const PROBE = `
import { readdirSync, renameSync, writeFileSync } from 'node:fs'
import v8 from 'node:v8'
import vm from 'node:vm'
v8.setFlagsFromString('--expose-gc')
const gc = vm.runInNewContext('gc')
process.on('SIGUSR2', () => {
  gc()
  gc()
  const file = process.env.PROBE_FOLDER + '/' + process.pid + '.json'
  writeFileSync(file + '.tmp', JSON.stringify({ files: readdirSync('/proc/self/fd').length, kilobytes: Math.round(process.memoryUsage().heapUsed / 1024) }))
  renameSync(file + '.tmp', file)
})
`

interface Measured {
  files: number
  kilobytes: number
}

const isLinux = existsSync('/proc/self/fd')
const [ROUNDS, RELEASES, CUTS] = IS_FULL_SIZE ? [3, 80, 2] : [2, 30, 1]
/**
 * Limit for the growth of the heap after the first round, KB. Caches use half of it. In full size, a leak of 20 KB per
 * release exceeds it.
 */
const KILOBYTES_MORE = 3_000

describe.skipIf(!isLinux)('open handles and the heap (needs /proc, which Linux has)', () => {
  let journey: Journey
  let boards: Record<'station' | 'detacher' | 'gate', IndependentBoard>
  const folder = mkdtempSync(join(tmpdir(), 'untag-probe-'))

  beforeAll(async () => {
    writeFileSync(join(folder, 'probe.mjs'), PROBE)
    const env = { NODE_OPTIONS: `--import=${join(folder, 'probe.mjs')}`, PROBE_FOLDER: folder }
    boards = { station: await independentBoard(), detacher: await independentBoard(), gate: await independentBoard() }
    journey = await openJourney({
      boards: { station: boards.station.address, detacher: boards.detacher.address, gate: boards.gate.address },
      cloudIn: { env },
      agentIn: { env },
    })
    await eventually('the boards', async () => (await journey.status()).devices.every((d: Json) => d.state === 'ready'))
  })
  afterAll(async () => {
    await journey.stop()
    for (const board of Object.values(boards)) await board.close()
    rmSync(folder, { recursive: true })
  })

  async function measure({ child }: RunningProcess): Promise<Measured> {
    const file = join(folder, `${child.pid}.json`)
    rmSync(file, { force: true })
    child.kill('SIGUSR2')
    await eventually('a measurement', () => Promise.resolve(existsSync(file)))
    return JSON.parse(readFileSync(file, 'utf8')) as Measured
  }

  const isOnline = async (online: boolean) => (await journey.status()).online === online
  const deviceId = () => journey.devices.pos_deactivator

  async function work(): Promise<void> {
    for (let n = 0; n < RELEASES; n++) {
      const { transactionId, receipt } = await journey.buy([{ ean: String(journey.products[0]?.ean), quantity: 1 }])
      const shown =
        n % 2 === 0
          ? { receipt }
          : {
              token: (
                await journey.api.call('verifySecurityTagDeactivation', {
                  purchaseId: transactionId,
                  deviceId: deviceId(),
                })
              ).authorizationToken,
            }
      const ask = () => journey.authorize({ deviceId: deviceId(), protectionAction: 'deactivate_label', ...shown })
      expect(await ask()).toMatchObject({ authorized: true })
      expect(await ask()).toMatchObject({ authorized: false })
      if (n % (RELEASES / CUTS) > 0) continue
      journey.wire.cut()
      await eventually('offline', () => isOnline(false))
      expect(await ask()).toMatchObject({ authorized: false })
      journey.wire.restore()
      await eventually('online', () => isOnline(true))
    }
    await eventually('an empty outbox', async () => (await journey.status()).queueDepth === 0)
  }

  it('do not grow with the number of releases', async () => {
    const seen: Record<'agent' | 'cloud', Measured>[] = []
    for (let round = 0; round < ROUNDS; round++) {
      await work()
      seen.push({ agent: await measure(journey.agent), cloud: await measure(journey.cloud) })
    }
    const [first, last] = [seen[0], seen.at(-1)]
    for (const part of ['agent', 'cloud'] as const) {
      expect(last?.[part].files, `files of the ${part}: ${JSON.stringify(seen)}`).toBeLessThanOrEqual(
        (first?.[part].files ?? 0) + 4,
      )
      expect(last?.[part].kilobytes, `heap of the ${part}: ${JSON.stringify(seen)}`).toBeLessThan(
        (first?.[part].kilobytes ?? 0) + KILOBYTES_MORE,
      )
    }
  })
})

import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { readDiskLogs, RECORDED_CALLS, type DiskEvent, type PartLog } from './disk-log.ts'
import { runCommand } from '../part.ts'
import { outboxEmpty, boardsReady, openFaultStore, until, type FaultStore } from '../rig.ts'
import type { TraceOptions } from '../strace.ts'

/** Disk changes and outputs of a store, from empty folders on. */
export interface Recording {
  events: DiskEvent[]
  /** Device id by the TCP port of its board. */
  deviceAt: Readonly<Record<string, string>>
}

/** Number of purchases: enough that SQLite makes its automatic checkpoints. */
const PURCHASES = 30
const UNITS = 4
/** Number of shoppers who buy and release at the same time. */
const AT_ONCE = 3

/**
 * Records a store under strace, with releases, denials, checkpoints, stops, kills and a key change.
 *
 * @param keep Folder for a copy of the final files.
 */
export async function record(keep?: string): Promise<Recording> {
  const logs: PartLog[] = []
  const traceOf = (name: string, folder: string): TraceOptions => {
    const log = join(folder, `${logs.length}-${name}.strace`)
    logs.push({ part: name === 'keys' || name === 'cloud' ? 'cloud' : 'agent', log })
    return { log, calls: RECORDED_CALLS, whole: true }
  }
  const rig = await openFaultStore(traceOf)
  try {
    await work(rig, (name) => traceOf(name, rig.folder))
    await rig.agent.stop()
    await rig.cloud.stop()
    if (keep !== undefined) cpSync(rig.disks, keep, { recursive: true })
    const deviceAt = Object.fromEntries(
      Object.entries(rig.boardPorts).map(([type, port]) => [
        String(port),
        rig.devices[type as keyof FaultStore['devices']],
      ]),
    )
    return { events: readDiskLogs(rig.disks, logs), deviceAt }
  } finally {
    await rig.close()
  }
}

async function work(rig: FaultStore, traceOf: (name: string) => TraceOptions): Promise<void> {
  await boardsReady(rig)
  const third = Math.floor(PURCHASES / 3)
  await registerItems(rig, 0)
  await trade(rig, 0, third)
  await refundUnreleased(rig, 0)

  await rig.agent.kill()
  await rig.startAgent(traceOf('agent'))
  await boardsReady(rig)
  await trade(rig, third, 2 * third)
  await registerItems(rig, 1)

  await rig.cloud.kill()
  // While the cloud is down, the journal of the agent holds the new rows.
  await rig.startCloud(traceOf('cloud'))
  await runCommand(['edge', 'rotate-key', '--data', join(rig.disks, 'edge')], traceOf('rotate-key'))
  await rig.agent.stop()
  await rig.startAgent(traceOf('agent'))
  await boardsReady(rig)
  await trade(rig, 2 * third, PURCHASES)
  await failOnce(rig)
  await refundUnreleased(rig, 1)
  await outboxEmpty(rig)
}

async function trade(rig: FaultStore, from: number, to: number): Promise<void> {
  const waiting = Array.from({ length: to - from }, (_, i) => from + i)
  const shopper = async () => {
    for (let n = waiting.shift(); n !== undefined; n = waiting.shift()) await release(rig, n)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, shopper))
}

/** Buys UNITS units and requests one release more, half of the purchases by token and half by receipt. */
async function release(rig: FaultStore, n: number): Promise<void> {
  const { purchaseId, receipt } = await rig.buy(`p${n}`, UNITS)
  const deviceId = rig.devices.pos_deactivator
  const request = { deviceId, protectionAction: 'deactivate_label' }
  const verified =
    n % 2 === 0 ? await rig.ask('verifySecurityTagDeactivation', { purchaseId, deviceId }, `p${n}-verify`) : undefined
  const token = verified?.body['authorizationToken']
  for (let unit = 0; unit <= UNITS; unit++)
    await rig.authorize({ ...request, ...(typeof token === 'string' ? { token } : { receipt }) })
}

/** Runs one release at a lock that does not move, and repeats it at a lock that does. */
async function failOnce(rig: FaultStore): Promise<void> {
  const { receipt } = await rig.buy('failing', 2)
  const request = { deviceId: rig.devices.pos_deactivator, protectionAction: 'deactivate_label', receipt }
  rig.boards.pos_deactivator.stick(0, false)
  await rig.authorize(request)
  rig.boards.pos_deactivator.stick(0, null)
  await rig.authorize(request)
}

/** Refunds a purchase before its release, so that the agents receive denials. */
async function refundUnreleased(rig: FaultStore, n: number): Promise<void> {
  const { purchaseId, receipt } = await rig.buy(`refunded${n}`)
  await rig.ask('refundPayment', { purchaseId }, `refund${n}`)
  await rig.authorize({ deviceId: rig.devices.pos_deactivator, protectionAction: 'deactivate_label', receipt })
}

const ITEMS = 60

async function registerItems(rig: FaultStore, n: number): Promise<void> {
  const before = (await rig.status())?.items.known ?? 0
  const items = Array.from({ length: ITEMS }, (_, i) => ({
    epc: `E2801170000002${String(n).padStart(4, '0')}${String(i).padStart(6, '0')}`,
    ean: rig.ean,
  }))
  await rig.ask('registerProtectedItems', { storeId: rig.storeId, items }, `items${n}`)
  await until('the items at the gate', async () => ((await rig.status())?.items.known ?? 0) >= before + ITEMS)
}

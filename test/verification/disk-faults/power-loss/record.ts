import { join } from 'node:path'
import { readDiskLogs, RECORDED_CALLS, type DiskEvent, type PartLog } from './disk-log.ts'
import { runCommand } from '../untag-process.ts'
import { outboxEmpty, boardsReady, openFaultStore, until, type FaultStore } from '../fault-store.ts'
import type { TraceOptions } from '../strace.ts'

/** Disk changes and outputs of a store that starts with empty folders. */
export interface Recording {
  events: DiskEvent[]
  /** Device id by the TCP port of its board. */
  deviceAt: Readonly<Record<string, string>>
}

/** Default number of purchases: enough that SQLite makes its automatic checkpoints. */
const PURCHASES = 30
const UNITS = 4
/** Number of shoppers who buy and release at the same time. */
const AT_ONCE = 3

/** Records a store under strace, with releases, denials, checkpoints, stops, kills and a key change. */
export async function record(purchases = PURCHASES): Promise<Recording> {
  const logs: PartLog[] = []
  const traceOf = (name: string, folder: string): TraceOptions => {
    const log = join(folder, `${logs.length}-${name}.strace`)
    logs.push({ part: name === 'keys' || name === 'cloud' ? 'cloud' : 'agent', log })
    return { log, calls: RECORDED_CALLS, whole: true }
  }
  const store = await openFaultStore(traceOf)
  try {
    await work(store, purchases, (name) => traceOf(name, store.folder))
    await store.agent.stop()
    await store.cloud.stop()
    const deviceAt = Object.fromEntries(
      Object.entries(store.boardPorts).map(([type, port]) => [
        String(port),
        store.devices[type as keyof FaultStore['devices']],
      ]),
    )
    return { events: readDiskLogs(store.disks, logs), deviceAt }
  } finally {
    await store.close()
  }
}

async function work(store: FaultStore, purchases: number, traceOf: (name: string) => TraceOptions): Promise<void> {
  await boardsReady(store)
  const third = Math.floor(purchases / 3)
  await registerItems(store, 0)
  await trade(store, 0, third)
  await refundUnreleased(store, 0)

  await store.agent.kill()
  await store.startAgent(traceOf('agent'))
  await boardsReady(store)
  await trade(store, third, 2 * third)
  await registerItems(store, 1)

  await store.cloud.kill()
  await store.startCloud(traceOf('cloud'))
  await runCommand(['edge', 'rotate-key', '--data', join(store.disks, 'edge')], traceOf('rotate-key'))
  await store.agent.stop()
  await store.startAgent(traceOf('agent'))
  await boardsReady(store)
  await trade(store, 2 * third, purchases)
  await failOnce(store)
  await refundUnreleased(store, 1)
  await outboxEmpty(store)
}

async function trade(store: FaultStore, from: number, to: number): Promise<void> {
  const waiting = Array.from({ length: to - from }, (_, i) => from + i)
  const shopper = async () => {
    for (let n = waiting.shift(); n !== undefined; n = waiting.shift()) await release(store, n)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, shopper))
}

/**
 * Buys UNITS units and requests UNITS + 1 releases. Purchases with an even number use a token, and the others use the
 * receipt.
 */
async function release(store: FaultStore, n: number): Promise<void> {
  const { purchaseId, receipt } = await store.buy(`p${n}`, UNITS)
  const deviceId = store.devices.pos_deactivator
  const request = { deviceId, protectionAction: 'deactivate_label' }
  const verified =
    n % 2 === 0 ? await store.ask('verifySecurityTagDeactivation', { purchaseId, deviceId }, `p${n}-verify`) : undefined
  const token = verified?.body['authorizationToken']
  for (let unit = 0; unit <= UNITS; unit++)
    await store.authorize({ ...request, ...(typeof token === 'string' ? { token } : { receipt }) })
}

/** Requests a release at a lock that does not move, and repeats it at a lock that moves. */
async function failOnce(store: FaultStore): Promise<void> {
  const { receipt } = await store.buy('failing', 2)
  const request = { deviceId: store.devices.pos_deactivator, protectionAction: 'deactivate_label', receipt }
  store.boards.pos_deactivator.stick(0, false)
  await store.authorize(request)
  store.boards.pos_deactivator.stick(0, null)
  await store.authorize(request)
}

/** Refunds a purchase before its release, so that the agents receive denials. */
async function refundUnreleased(store: FaultStore, n: number): Promise<void> {
  const { purchaseId, receipt } = await store.buy(`refunded${n}`)
  await store.ask('refundPayment', { purchaseId }, `refund${n}`)
  await store.authorize({ deviceId: store.devices.pos_deactivator, protectionAction: 'deactivate_label', receipt })
}

const ITEMS = 60

async function registerItems(store: FaultStore, n: number): Promise<void> {
  const before = (await store.status())?.items.known ?? 0
  const items = Array.from({ length: ITEMS }, (_, i) => ({
    epc: `E2801170000002${String(n).padStart(4, '0')}${String(i).padStart(6, '0')}`,
    ean: store.ean,
  }))
  await store.ask('registerProtectedItems', { storeId: store.storeId, items }, `items${n}`)
  await until('the items at the gate', async () => ((await store.status())?.items.known ?? 0) >= before + ITEMS)
}

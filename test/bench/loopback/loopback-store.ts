import { llrpReader, type LlrpReader } from '../../../simulators/devices/llrp.ts'
import { RelayBoard } from '../../../simulators/devices/modbus.ts'
import { serveTcp, type TcpService } from '../../../simulators/devices/serve.ts'
import { realPlatform } from '../../../host/platform.ts'
import { processesOf } from '../../verification/kills/processes.ts'
import { eventually, openStoreProcesses, type StoreProcesses } from '../../verification/kills/store-processes.ts'

/** Root of the checkout, from `dist/test/bench/loopback`. */
const ROOT = new URL('../../../..', import.meta.url).pathname
/** Maximum wait for an agent, ms: until its devices are ready, or until it knows the items. */
const READY_MS = 60_000

/** The options of Node.js with which `untag` runs. */
export const NODE_OPTIONS = '--max-semi-space-size=4'
export const processes = processesOf(ROOT)

/** A store with `untag cloud` and `untag edge` as processes, and simulated devices in this process. */
export interface LoopbackStore extends StoreProcesses {
  readonly gate: LlrpReader
}

/** Runs `work` in a new store in `folder`. `barrier`: board of the exit, instead of the LLRP reader. */
export async function withLoopbackStore<T>(
  folder: string,
  work: (store: LoopbackStore) => Promise<T>,
  barrier?: RelayBoard,
): Promise<T> {
  const platform = realPlatform()
  const env = { NODE_OPTIONS, NODE_ENV: 'production' }
  const lock = { coil: 0, input: 0, openMs: 30, closeMs: 30 }
  const gate = llrpReader({ platform, antennas: 2 })
  const services: TcpService[] = []
  const serve = async (device: { serve: LlrpReader['serve'] }) => {
    const service = await serveTcp({ port: 0, serve: (link) => device.serve(link) })
    services.push(service)
    return `127.0.0.1:${service.port}`
  }
  let store: StoreProcesses | undefined
  try {
    const boards = {
      station: await serve(new RelayBoard({ platform, locks: [lock] })),
      detacher: await serve(new RelayBoard({ platform, locks: [lock] })),
    }
    const exit = barrier
      ? { boards: { ...boards, gate: await serve(barrier) } }
      : { boards, gateReader: await serve(gate) }
    store = await openStoreProcesses({
      processes,
      parentFolder: folder,
      ...exit,
      cloudIn: { env },
      agentIn: { env },
    })
    const { status } = store
    const areReady = async () => (await status())['devices'] as { state: string }[]
    await eventually('the devices', async () => (await areReady()).every(({ state }) => state === 'ready'), READY_MS)
    return await work(Object.assign(store, { gate }))
  } finally {
    await store?.stop()
    for (const service of services) await service.close()
  }
}

/** Registers `count` new items of the store's first product and waits until the agent knows them. Returns the EPCs. */
export async function registerItems(store: LoopbackStore, count: number, firstSerial: number): Promise<string[]> {
  const epcs = Array.from(
    { length: count },
    (_, i) => `E280${(firstSerial + i).toString(16).toUpperCase().padStart(20, '0')}`,
  )
  const ean = eanOf(store)
  const known = async () => ((await store.status())['items'] as { known: number }).known
  const before = await known()
  const items = epcs.map((epc) => ({ epc, ean, protectionTechnology: 'uhf_rfid' }))
  await store.api.call('registerProtectedItems', { storeId: store.storeId, items })
  await eventually('the items at the agent', async () => (await known()) >= before + count, READY_MS)
  return epcs
}

/** Barcode of a cheap product that needs no staff. */
export function eanOf({ products }: LoopbackStore): string {
  return String(products[0]?.['ean'])
}

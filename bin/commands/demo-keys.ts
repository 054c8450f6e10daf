import { styleText } from 'node:util'
import type { Platform } from '../../policy/platform.ts'
import type { Shopper } from '../../simulators/services/shopper.ts'
import type { NetworkSwitch } from '../../host/network-switch.ts'
import { printLine as say } from '../../host/output.ts'
import type { DemoDevices } from './demo-devices.ts'
import { nextProduct, newUnpaidItem, type DemoStore } from './demo-store.ts'
import type { DemoWalks } from './demo-walks.ts'
import type { RunningEdge } from './edge.ts'
import { isInBackground } from './edge-access.ts'

export interface DemonstrationParts {
  platform: Platform
  baseUrl: string
  key: string
  /** PIN of the operator. */
  pin: string
  /** Password of the owner at the console. */
  consolePassword: string
  /** Notes to print, one sentence each, for example that a port is already in use. */
  notes: readonly string[]
  api: Shopper
  store: DemoStore
  edge: RunningEdge
  devices: DemoDevices
  network: NetworkSwitch
  /** Folder of all data. */
  data: string
  /** The agent's data folder. */
  edgeData: string
  quit(): void
}

/** The action of each key. */
type Keys = Readonly<Record<string, () => Promise<void> | void>>

const soft = (text: string) => styleText('gray', text)

/** The keys for actions of shoppers. */
export function shopperKeys({ api, store, devices, network }: DemonstrationParts, walks: DemoWalks): Keys {
  let lastReceipt: string | undefined
  return {
    async s() {
      const basket = await nextProduct(api, store.storeId)
      say(soft(`A shopper buys "${basket.name}" with the phone and shows the receipt at the staff station.`))
      const bought = await api.buy({ storeId: store.storeId, items: [{ ean: basket.ean, quantity: 1 }] })
      lastReceipt = bought.receipt
      await devices.lanes.station.scanner.scan(bought.receipt, 'Q1')
    },
    async r() {
      if (lastReceipt === undefined) return say(soft('There is no receipt yet: press s first.'))
      say(soft('The shopper shows the same receipt again.'))
      await devices.lanes.station.scanner.scan(lastReceipt, 'Q1')
    },
    u: () => walks.unpaid(network.isCut),
    async p() {
      if (network.isCut) return say(soft('The gate receives no new payments while its network is cut: press o first.'))
      const { hasPassed, transactionId } = await walks.paid()
      if (!hasPassed)
        return say(styleText('yellow', '? Exit gate: the reader did not see the tag leave; press p again'))
      say(styleText('green', '✓ Exit gate: a paid tag leaves, the gate stays silent (decided at the gate)'))
      void walks.untilUnloaded(transactionId).then(
        (isUnloaded) => isUnloaded && say(soft('  the paid tag has left: its purchase is UNLOADED')),
        () => undefined,
      )
    },
    async d() {
      if (network.isCut)
        return say(
          soft('The agent receives no new payments while its network is cut: press s to show a receipt, or o first.'),
        )
      const { epc, name, ean } = await newUnpaidItem(api, store.storeId)
      say(soft(`A shopper pays for "${name}" and holds its hard tag to the self-checkout detacher.`))
      await api.buy({ storeId: store.storeId, items: [{ ean, quantity: 1, epcs: [epc] }] })
      await devices.lanes.detacher.scanner.scan(epc)
    },
  }
}

/** The keys for the network, the fire panel and the end of the demonstration. */
export function storeKeys({ network, devices, data, quit }: DemonstrationParts, walks: DemoWalks): Keys {
  return {
    async o() {
      if (network.isCut) network.restore()
      else {
        await walks.prepare()
        network.cut()
      }
      say(
        network.isCut
          ? styleText('yellow', 'The network of the store is cut. Press s: each receipt still works once.')
          : styleText('green', 'The network is back. The agent sends its waiting events.'),
      )
    },
    e() {
      const isActive = !devices.isEmergency
      devices.setEmergency(isActive)
      say(
        isActive
          ? styleText(
              'red',
              'The fire panel at the exit gate is active: the gate opens and stays open. Press e to reset it.',
            )
          : styleText('green', 'The fire panel is reset: the gate locks again.'),
      )
    },
    q() {
      say(soft(`untag stops. The key and the data stay in ${data}. Delete that folder to start with new data.`))
      quit()
    },
  }
}

/** Runs the action of each pressed key, one after the other. Without a terminal, reads keys from piped input. */
export function pressKeys(actions: Keys): void {
  let busy = Promise.resolve()
  const press = (key: string) => {
    const action = actions[key]
    if (!action) return
    busy = busy.then(async () => action()).catch((error: unknown) => say(styleText('red', (error as Error).message)))
  }
  if (process.stdin.isTTY && isInBackground()) return
  if (process.stdin.isTTY) {
    process.stdin.setRawMode(true)
    process.stdin.on('data', (bytes) => press(bytes.toString() === '\u0003' ? 'q' : bytes.toString().toLowerCase()))
  } else {
    process.stdin.on('data', (bytes) => [...bytes.toString()].forEach((key) => press(key)))
    process.stdin.on('error', () => undefined)
  }
}

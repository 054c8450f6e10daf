import { printLine as say, printReady, writesJson } from '../../host/output.ts'
import { styleText } from 'node:util'
import { consoleUrlAt } from '../../cloud/platform/users/console-address.ts'
import type { FeedEvent } from '../../edge-agent/feed.ts'
import type { ProtectionAction } from '../../policy/vocabulary.ts'
import type { DemoDevices, DemoLane } from './demo-devices.ts'
import { openDemoTill, type DemoTill, demoWalks, type DemoWalks } from './demo-walks.ts'
import type { RunningEdge } from './edge.ts'
import { OPERATOR_NAME, OWNER_EMAIL } from './demo-secrets.ts'
import type { Platform } from '../../policy/platform.ts'
import type { Shopper } from '../../simulators/services/shopper.ts'
import type { NetworkSwitch } from '../../host/network-switch.ts'
import { nextProduct, newUnpaidItem, type DemoStore } from './demo-store.ts'
import { isInBackground } from './edge-access.ts'

interface DemonstrationParts {
  platform: Platform
  /** True if the sandbox has just been filled. */
  isNew: boolean
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
function shopperKeys({ api, store, devices, network }: DemonstrationParts, walks: DemoWalks, till: DemoTill): Keys {
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
    async t() {
      if (!(await walks.paidAtTill(network.isCut, till)))
        return say(styleText('yellow', '? Exit gate: the reader did not see the tag leave; press t again'))
      const how = network.isCut ? ' without the cloud' : ''
      say(styleText('green', `✓ Exit gate: the gate stays silent, because the till told the agent${how}`))
    },
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
function storeKeys({ network, devices, data, quit }: DemonstrationParts, walks: DemoWalks): Keys {
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

/** Keys that may wait while an action runs. Further ones are refused, because their effect would come much later. */
const WAITING_KEYS = 3

/**
 * Returns a function that runs the action of a key, one after the other. `q` waits for none. `limit`: keys that may wait.
 * It tells with `tell` if a key has to wait, or was not taken.
 */
export function keyRunner(
  actions: Keys,
  tell: (line: string) => void,
  limit = WAITING_KEYS,
): (key: string) => Promise<void> {
  let busy = Promise.resolve()
  let waiting = 0
  return (key) => {
    const action = actions[key]
    if (!action) return Promise.resolve()
    if (key === 'q') return Promise.resolve(action())
    if (waiting > limit) {
      tell(soft(`Not taken: [${key}]. ${waiting} keys are still at work: press it again when they are done.`))
      return Promise.resolve()
    }
    if (waiting > 0) tell(soft(`[${key}] follows after ${waiting === 1 ? 'the key' : `the ${waiting} keys`} before.`))
    waiting++
    busy = busy
      .then(async () => action())
      .catch((error: unknown) => tell(styleText('red', (error as Error).message)))
      .finally(() => void waiting--)
    return busy
  }
}

/** Runs the actions of pressed keys. Without a terminal, reads keys from piped input, all of which count. */
function pressKeys(actions: Keys): void {
  const run = keyRunner(actions, say, process.stdin.isTTY ? WAITING_KEYS : Infinity)
  const press = (key: string) => void run(key)
  if (process.stdin.isTTY && isInBackground()) return
  if (process.stdin.isTTY) {
    process.stdin.setRawMode(true)
    process.stdin.on('data', (bytes) => {
      const keys = bytes.toString().toLowerCase()
      // Arrows and function keys are several characters, and no key of the demonstration.
      if (!keys.startsWith('\u001B')) for (const key of keys) press(key === '\u0003' ? 'q' : key)
    })
  } else {
    process.stdin.on('data', (bytes) => [...bytes.toString()].forEach((key) => press(key)))
    process.stdin.on('error', () => undefined)
  }
}

/** Alarms that wait for a cause in a new demonstration. */
const OPEN_ALARMS = 2

/** Prints the addresses. Each pressed key simulates a shopper or a fault. */
export async function demonstration(parts: DemonstrationParts): Promise<void> {
  const { platform, edge, devices, store, api } = parts
  const till = await openDemoTill({ api, storeId: store.storeId, edge, platform })
  const walks = demoWalks({ platform, api, storeId: store.storeId, edge, devices, say: (line) => say(soft(line)) })
  if (parts.isNew) await walks.leaveAlarms(OPEN_ALARMS)
  printWelcome(parts)
  void narrate(edge, devices)
  pressKeys({ ...shopperKeys(parts, walks, till), ...storeKeys(parts, walks) })
}

/** The command as it runs in the folder of this process: npm starts it in a checkout. */
function ownCommand(env: NodeJS.ProcessEnv): string {
  return ['start', 'dev'].includes(env['npm_lifecycle_event'] ?? '') ? 'node bin/untag.js' : 'untag'
}

function printWelcome({ baseUrl, key, pin, consolePassword, notes, edge, store, edgeData }: DemonstrationParts): void {
  const pairingUrl = edge.newPairingUrl()
  const origin = new URL(baseUrl).origin
  const consoleUrl = consoleUrlAt(origin)
  const [link = '', code = ''] = pairingUrl.split('#')
  say()
  say(`  ${styleText('bold', 'untag')} runs on this machine, with simulated devices and sandbox data.`)
  for (const note of notes) say(`  ${styleText('yellow', note)}`)
  say()
  const hasKeys = process.stdin.isTTY
  if (!hasKeys) say('  These keys work in a terminal, or piped into this program:')
  say('  Press here: [s] scan a paid receipt  [r] scan it again  [d] detach a paid tag  [u] carry an unpaid item out')
  say('              [p] carry a paid item out  [t] pay at the till and carry it out')
  say('              [o] cut/restore the network  [e] fire panel on/off  [q] quit')
  say()
  say(`  Staff station   ${link}?device=${store.devices.station}#${code}`)
  say(
    soft(
      `                  Pairs your browser and shows the page of the staff. Sign in as ${OPERATOR_NAME} with PIN ${pin}.`,
    ),
  )
  say(
    soft(`                  The link works once, within 15 minutes. Another link: untag edge link --data ${edgeData}`),
  )
  say(`  Exit gate       ${edge.url}/gate?device=${store.devices.gate}`)
  say(soft('                  Shows the page of the guards. Open the staff station first: it pairs the browser.'))
  say(`  Set-up          ${edge.url}/setup`)
  say(soft('                  Adds a device with a set-up code, which you make in the console on the page Devices.'))
  say(`  Console         ${consoleUrl}`)
  say(soft(`                  Sign in as ${OWNER_EMAIL} with the password ${consolePassword}`))
  say(`  API reference   ${origin}/docs`)
  say(soft('                  Describes every operation, with examples.'))
  say()
  say(`  Cloud API       ${baseUrl}`)
  say(`  Sandbox key     ${key}`)
  say()
  say('  Copy these lines into another terminal to call the API:')
  say()
  say(`  export UNTAG_KEY=${key} UNTAG_API=${baseUrl}`)
  say(`  ${ownCommand(process.env)} api fetchStores`)
  say(`  curl -s ${baseUrl}/fetchStores -H 'authorization: Bearer ${key}' -H 'content-type: application/json' -d '{}'`)
  say()
  say(soft('  untag stands for node bin/untag.js in a checkout.'))
  say()
  if (hasKeys) say(`  ${styleText('bold', 'Open the staff station, then press s here.')}`)
  if (hasKeys) say()
  const isInteractive = process.stdin.isTTY && process.stdout.isTTY
  if (!isInteractive || writesJson())
    printReady({
      baseUrl,
      key,
      agentUrl: edge.url,
      pairingUrl,
      consoleUrl,
      consoleUser: OWNER_EMAIL,
      consolePassword,
    })
}

/** Prints the decisions of the lanes and the actions of their devices. */
async function narrate({ agent }: RunningEdge, { lanes }: DemoDevices): Promise<void> {
  const names = new Map(Object.values(lanes).map((lane: DemoLane) => [lane.deviceId, lane.name]))
  let queued = 0
  let hasUnsentEvents = false
  for await (const event of agent.feed.listen(new AbortController().signal)) {
    if (event.type === 'result') {
      say(describe(event, names.get(event.deviceId) ?? event.deviceId))
      hasUnsentEvents ||= event.result.kind === 'decision' && event.result.answer.offline
    }
    if (event.type !== 'status') continue
    const { queueDepth, online } = event.status
    if (!online && queueDepth !== queued && queueDepth > 0)
      say(soft(`  ${queueDepth === 1 ? '1 event waits' : `${queueDepth} events wait`} for the cloud`))
    queued = queueDepth
    if (!online || queueDepth > 0 || !hasUnsentEvents) continue
    hasUnsentEvents = false
    say(soft('  the cloud has received all events'))
  }
}

function describe({ result }: FeedEvent & { type: 'result' }, name: string): string {
  if (result.kind === 'operator') return `${name}: ${result.name} has signed in`
  if (result.kind === 'not_understood') return styleText('yellow', `? ${name}: ${result.why}`)
  if (result.kind === 'receipt') return `${name}: receipt read, ${result.left} to release`
  if (result.kind === 'order') return `${name}: order ${result.order.orderId}, ${result.order.status}`
  if (result.kind === 'alarm') return styleText('red', `! ${name}: ${result.what}`)
  const { answer } = result
  // If the answer has no event id, the gate itself decided on a tag, by the agent's replica.
  const isOfTag = result.item !== undefined && answer.action === 'authorize_exit' && answer.eventId === null
  const how = isOfTag ? 'decided at the gate' : answer.offline ? 'decided offline' : 'decided by the cloud'
  if (!answer.authorized) return styleText('red', `✗ ${name}: refused, ${answer.reason} (${how})`)
  const left = answer.remaining > 0 ? `, ${answer.remaining} left` : ''
  const outcome = answer.outcome === null ? '' : `, ${answer.outcome}`
  return styleText('green', `✓ ${name}: ${DONE[answer.action]}${outcome} (${how}${left})`)
}

/** What the device did for each authorized action. */
const DONE: Readonly<Record<ProtectionAction, string>> = {
  deactivate_label: 'label deactivated',
  detach_hard_tag: 'hard tag detached',
  unlock_fixture: 'fixture unlocked',
  authorize_exit: 'exit opened',
  suppress_alarm: 'alarm suppressed',
  verify_item_status: 'item checked',
}

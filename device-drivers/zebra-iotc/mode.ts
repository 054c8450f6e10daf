import { isDeepStrictEqual } from 'node:util'
import { objectOf } from '../kit/protocol/tag-sighting.ts'
import type { Finding } from '../kit/device.ts'
import { configuredAntennas, hasBothSides } from '../kit/reader-settings.ts'
import type { ZebraIotcSettings } from './settings.ts'
import type { Cancel, Platform } from '../../policy/platform.ts'
import {
  zebraCommand,
  zebraResponse,
  type ZebraCommand,
  type ZebraResponse,
  type ZebraTopics,
} from './protocol/messages.ts'
import type { MqttLine, Published } from '../kit/mqtt-line.ts'

export type ZebraAnswer =
  | { readonly kind: 'answered'; readonly payload: Record<string, unknown> }
  | { readonly kind: 'refused'; readonly detail: string }
  /** No answer. `possiblySent`: the reader may have received the command. */
  | { readonly kind: 'lost'; readonly possiblySent: boolean; readonly detail: string }

/** Sends commands to one reader and matches the responses by id. */
export interface ZebraCommands {
  /** Never rejects. */
  request(by: 'management' | 'control', command: ZebraCommand, payload?: object): Promise<ZebraAnswer>
  /** Handles a message of a response topic. False if the message is no response. */
  onResponse(value: unknown): boolean
  /** Ends all pending commands as lost. */
  end(reason: string): void
}

const MAX_WAITING = 64

/** Makes the client, which sends each command once. */
export function zebraCommands(
  line: MqttLine,
  topics: ZebraTopics,
  platform: Platform,
  timeoutMs: number,
): ZebraCommands {
  const waiting = new Map<string, { settle: (answer: ZebraAnswer) => void; cancel: Cancel }>()
  const prefix = Buffer.from(platform.random.bytes(4)).toString('hex')
  let count = 0
  let over: string | null = null

  function settle(id: string, answer: ZebraAnswer): void {
    const open = waiting.get(id)
    waiting.delete(id)
    open?.cancel()
    open?.settle(answer)
  }

  const answerOf = ({ isSuccess, payload }: ZebraResponse): ZebraAnswer =>
    isSuccess
      ? { kind: 'answered', payload }
      : { kind: 'refused', detail: `the reader refuses: ${JSON.stringify(payload).slice(0, 200)}` }

  return {
    request(by, command, payload = {}) {
      const topic = topics[`${by}Command`]
      const unsent = (detail: string): Promise<ZebraAnswer> =>
        Promise.resolve({ kind: 'lost', possiblySent: false, detail })
      if (over !== null) return unsent(over)
      if (topic === undefined) return unsent(`no topic for ${by} is configured`)
      if (waiting.size >= MAX_WAITING) return unsent(`${MAX_WAITING} commands wait for this reader already`)
      const id = `${prefix}-${++count}`
      return new Promise((settled) => {
        let published: Published | false = false
        const late = () => {
          settle(id, { kind: 'lost', possiblySent: true, detail: `no answer to ${command} within ${timeoutMs} ms` })
          // Without an acknowledgement the command may still wait in a queue, and the reader may execute it too late.
          // Therefore the connection ends, which discards the command. After an acknowledgement the connection stays
          // open for the other devices.
          if (!published || !published.isAcknowledged())
            line.end(`the broker did not acknowledge ${command} within ${timeoutMs} ms`)
        }
        waiting.set(id, { settle: settled, cancel: platform.timers.after(timeoutMs, late) })
        void line.publish(topic, zebraCommand(command, id, payload)).then((message) => {
          published = message
          if (!message)
            settle(id, { kind: 'lost', possiblySent: true, detail: 'the connection to the broker has ended' })
        })
      })
    },
    onResponse(value) {
      const response = zebraResponse(value)
      if (response) settle(response.id, answerOf(response))
      return response !== null
    },
    end(reason) {
      over = reason
      for (const id of waiting.keys()) settle(id, { kind: 'lost', possiblySent: true, detail: reason })
    },
  }
}

/**
 * Operating modes of the IoT Connector, as in Zebra's schemas `operatingMode.v1`, `tagReportFilter.v1`, `query` and
 * `tagMetaData` (Read2Cloud 1.0). The reader's defaults apply to fields that its mode lacks.
 */

export type ZebraMode = Readonly<Record<string, unknown>>

/** Duration of a filter that reports each tag once for ever, s. */
const FOR_EVER_S = 4_294_967_295

interface Defaults {
  readonly filter: string
  readonly duration: number
  readonly reportsAntenna: boolean
}

const SIMPLE: Defaults = { filter: 'RADIO_WIDE', duration: FOR_EVER_S, reportsAntenna: false }
const PER_ANTENNA: Defaults = { filter: 'PER_ANTENNA', duration: FOR_EVER_S, reportsAntenna: true }
const DEFAULTS: Readonly<Record<string, Defaults>> = { PORTAL: PER_ANTENNA, CONVEYOR: PER_ANTENNA }

/** True if `power` lists the power of each of these antennas. */
function fitsAntennas(power: unknown, present: ZebraMode | null, antennas: readonly number[]): boolean {
  return Array.isArray(power) && (antennas.length === 0 || isDeepStrictEqual(present?.['antennas'], antennas))
}

/** The mode that a gate needs: each read is reported at once, with its antenna. Keeps the power of the present mode. */
export function advisedMode(settings: ZebraIotcSettings, present: ZebraMode | null): ZebraMode {
  const antennas = configuredAntennas(settings)
  const power = present?.['transmitPower']
  return {
    type: 'SIMPLE',
    ...(antennas.length > 0 ? { antennas } : {}),
    ...(typeof power === 'number' || fitsAntennas(power, present, antennas) ? { transmitPower: power } : {}),
    query: { tagPopulation: 32, sel: 'ALL', session: 'S0', target: 'A' },
    tagMetaData: ['ANTENNA', 'RSSI'],
    reportFilter: { type: 'PER_ANTENNA', duration: 0 },
  }
}

/** What must be changed at this mode. `mode` is null if the agent cannot read it. */
export function modeFindings(settings: ZebraIotcSettings, mode: ZebraMode | null): Finding[] {
  const payload = JSON.stringify(advisedMode(settings, mode))
  const found: Finding[] = []
  const add = (code: Finding['code'], what: string | null): void => {
    if (what === null) return
    // One payload mends all, and is long.
    const advice =
      found.length > 0
        ? 'the same set_mode changes it'
        : `${settings.setMode ? '' : 'add "setMode": true, or '}send set_mode with the payload ${payload}`
    found.push({ code, detail: `${what}; ${advice}`, isWarning: false })
  }
  if (!mode) {
    // A handheld without topics for commands has no antennas that could be missed.
    if (!settings.antennas) return []
    return [
      {
        code: 'reader_mode',
        detail: `the agent cannot read the reader's mode; add controlCommand and controlResponse to "topics" and let the reader use the payload ${payload}`,
        isWarning: false,
      },
    ]
  }
  add('reader_filters', filterOf(settings, mode))
  add('reader_mode', missingOf(settings, mode) ?? pausesOf(mode))
  const session = hasBothSides(settings) ? sessionOtherThan0(mode) : null
  if (session !== null)
    add('reader_session', `the mode uses session ${session}, in which a tag is silent for seconds after each read`)
  const narrowing = NARROWING.find((field) => isSet(mode[field]))
  if (narrowing !== undefined && !found.some(({ code }) => code === 'reader_filters'))
    found.push({
      code: 'reader_filters',
      detail: `the mode reports only the tags that match its "${narrowing}"; remove it if it does not let all your tags pass`,
      isWarning: true,
    })
  return found
}

/** Fields that select which tags the reader reports. */
const NARROWING = ['filter', 'selects', 'rssiFilter'] as const
/** Fields that start or stop the radio without a command. */
const CONDITIONS = ['radioStartConditions', 'radioStopConditions'] as const
/** Longest pause between two rounds of the antennas, ms. */
const MAX_PAUSE_MS = 400

const isSet = (value: unknown): boolean => typeof value === 'object' && value !== null && Object.keys(value).length > 0

/** Why the reader does not read all the time; null if it does. */
function pausesOf(mode: ZebraMode): string | null {
  const condition = CONDITIONS.find((field) => isSet(mode[field]))
  if (condition !== undefined) return `the reader does not read all the time (${condition})`
  if (isSet(objectOf(mode['modeSpecificSettings'])?.['startTrigger']))
    return `the mode ${typeOf(mode)} reads only after its trigger (modeSpecificSettings.startTrigger)`
  const pause = objectOf(mode['delayBetweenAntennaCycles'])
  const ms = Number(pause?.['duration'] ?? 0)
  return pause?.['type'] !== 'DISABLED' && ms > MAX_PAUSE_MS
    ? `the reader pauses for ${ms} ms between two rounds (delayBetweenAntennaCycles)`
    : null
}

const typeOf = (mode: ZebraMode): string => (typeof mode['type'] === 'string' ? mode['type'] : 'SIMPLE')
const defaultsOf = (mode: ZebraMode): Defaults => DEFAULTS[typeOf(mode)] ?? SIMPLE

/** How the mode filters reads; null if it reports each of them. */
function filterOf(settings: ZebraIotcSettings, mode: ZebraMode): string | null {
  const type = typeOf(mode)
  if (type === 'INVENTORY') return 'the mode INVENTORY reports tags at intervals instead of at each read'
  const filter = objectOf(mode['reportFilter'])
  const duration = filter?.['duration'] ?? defaultsOf(mode).duration
  const kind = filter?.['type'] ?? defaultsOf(mode).filter
  const where = kind === 'PER_ANTENNA' ? 'at each antenna' : 'at all antennas together'
  if (duration === FOR_EVER_S) return `the mode ${type} reports each tag only once ${where} (reportFilter)`
  if (duration !== 0)
    return `the mode ${type} reports each tag only once in ${String(duration)} s ${where} (reportFilter)`
  if (kind !== 'PER_ANTENNA' && settings.antennas) return `the mode ${type} filters ${where} (reportFilter RADIO_WIDE)`
  return null
}

/** What the mode does not report of the configured antennas; null if nothing is missing. */
function missingOf(settings: ZebraIotcSettings, mode: ZebraMode): string | null {
  if (!settings.antennas) return null
  const metaData = mode['tagMetaData']
  const reportsAntenna = Array.isArray(metaData) ? metaData.includes('ANTENNA') : defaultsOf(mode).reportsAntenna
  if (!reportsAntenna) return 'the mode does not report the antenna of a read (tagMetaData lacks ANTENNA)'
  const used: unknown = mode['antennas']
  const unused = Array.isArray(used)
    ? configuredAntennas(settings).find((antenna) => !used.includes(antenna))
    : undefined
  return unused === undefined ? null : `the mode does not read with antenna ${unused} (antennas)`
}

/** The first session other than S0; null if all antennas use S0. The default is S1. */
function sessionOtherThan0(mode: ZebraMode): string | null {
  const queries: unknown[] = Array.isArray(mode['query']) ? (mode['query'] as unknown[]) : [mode['query']]
  const sessions = queries.map((query) => String(objectOf(query)?.['session'] ?? 'S1'))
  return sessions.find((session) => session !== 'S0') ?? null
}

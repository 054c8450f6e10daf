import { z } from 'zod'
import type { Cancel, Platform } from '../../policy/platform.ts'
import { THINGMAGIC, thingMagicCodec } from '../protocols/thingmagic/frame.ts'
import type { ThingMagicFrame } from '../protocols/thingmagic/frame.ts'
import {
  decodeThingMagicTag,
  decodeVersion,
  isBootLoader,
  setAntennas,
  setOutput,
  setReadPower,
  START_READING,
  statusText,
  STILL_READING,
  STOP_READING,
  TELL_EVERY_READ,
  THINGMAGIC_REGIONS,
  thingMagicCommand,
  TOO_HOT,
  USE_GEN2,
  useAsOutput,
} from '../protocols/thingmagic/messages.ts'
import type { ThingMagicRegion } from '../protocols/thingmagic/messages.ts'
import { linkKey, LinkSettings } from '../transports/link-settings.ts'
import type { SharedLinks } from '../transports/shared-links.ts'
import type { Capabilities } from './capabilities.ts'
import { result, SIGNALS } from './device.ts'
import type { DeviceIdentity, ProtectionDevice, Signal } from './device.ts'
import { DeviceId } from './driver.ts'
import type { Driver } from './driver.ts'
import { eventQueue } from './event-queue.ts'
import type { Exchange, ExchangeAnswer } from './exchange.ts'
import { FEEDS_FROM_NEAR } from './feeding.ts'
import { keepReading } from './keep-reading.ts'
import type { KeptReading } from './keep-reading.ts'
import { linkDevice, settled } from './link-device.ts'
import type { LinkSession } from './link-device.ts'
import { noiseReport } from './noise-report.ts'
import { frameOf, readerLine } from './reader-line.ts'
import type { SwitchAnswer } from './release.ts'
import { tagPresence } from './tag-presence.ts'
import { timedSignals } from './timed-signals.ts'

const whole = (from: number, to: number, error: string) => z.int({ error }).min(from, { error }).max(to, { error })
const REGION_NAMES = Object.keys(THINGMAGIC_REGIONS) as [ThingMagicRegion, ...ThingMagicRegion[]]
const powerError = { error: 'give dBm, 0 to 31.5, as the law and the module allow' }
const Lamp = z.strictObject(
  { output: whole(1, 4, 'give the number of the pin, 1 to 4') },
  { error: 'give { "output": 1 }' },
)

/** A UHF reader module of ThingMagic (M6e, Nano, Micro, M7e) on a serial line. */
export const ThingMagicSettings = z.strictObject({
  deviceId: DeviceId,
  driver: z.literal('thingmagic'),
  link: LinkSettings,
  ...FEEDS_FROM_NEAR,
  region: z.enum(REGION_NAMES, {
    error: `give the region that the law of the place asks for: ${REGION_NAMES.map((name) => `"${name}"`).join(', ')}`,
  }),
  antennas: z
    .array(whole(1, 4, 'antennas are numbered 1 to 4'), { error: 'give a list such as [1]' })
    .min(1, { error: 'give at least one antenna' })
    .max(4)
    .default([1]),
  powerDbm: z.number(powerError).min(0, powerError).max(31.5, powerError).optional(),
  siren: Lamp.optional(),
  amber: Lamp.optional(),
  green: Lamp.optional(),
  repeatMs: whole(0, 60_000, 'give milliseconds, 0 to 60000').default(250),
  goneMs: whole(100, 60_000, 'give milliseconds, 100 to 60000').default(1_000),
  requestTimeoutMs: whole(50, 5_000, 'give milliseconds, 50 to 5000').default(1_000),
})
export type ThingMagicSettings = z.infer<typeof ThingMagicSettings>

/** Only reads; its list of antennas says which are used, not where they face. */
function thingMagicCapabilities(settings: ThingMagicSettings): Capabilities {
  return {
    releases: 'nothing',
    confirmInput: undefined,
    passage: false,
    departures: 'reported',
    antennas: undefined,
    siren: settings.siren && { seconds: undefined },
    feeds: settings.feeds,
    staffCards: false,
    minimumRssiDbm: settings.nearDbm,
    emergency: undefined,
    opensInEmergency: undefined,
    webhook: undefined,
  }
}

type Line = Exchange<ThingMagicFrame>

/** It gives a sign of life every second while it reads. */
const QUIET_MS = 2_500
/** Heat is told once, and again when it had been over for so long. */
const HEAT_OVER_MS = 60_000
const MOST_OFF_TRIES = 3
const NOT_CONNECTED: SwitchAnswer = { kind: 'lost', handed: false, detail: 'the reader is not connected' }

/** One that reads. */
interface Reader {
  readonly reading: KeptReading
  ask(frame: ThingMagicFrame): Promise<ExchangeAnswer<ThingMagicFrame>>
  end(reason: string): void
}

function openThingMagic(settings: ThingMagicSettings, links: SharedLinks, platform: Platform): ProtectionDevice {
  const { clock, timers } = platform
  const queue = eventQueue()
  const noise = noiseReport(platform, queue.put)
  const presence = tagPresence({ platform, repeatMs: settings.repeatMs, goneMs: settings.goneMs, tell: queue.put })
  const offTimers = new Map<Signal, Cancel>()
  let hotMs = -HEAT_OVER_MS
  let current: Reader | null = null

  function onStray(frame: ThingMagicFrame) {
    current?.reading.heard()
    const tag = decodeThingMagicTag(frame)
    if (tag) {
      const { epc, ...seen } = tag
      presence.seen([{ tag: { epc }, ...seen, seenAtMs: clock.elapsed() }])
      return null
    }
    if (frame.opcode !== THINGMAGIC.readMany)
      return { bytes: frame.data.length, detail: 'a frame that answers nothing' }
    if (frame.status === TOO_HOT) {
      if (clock.elapsed() - hotMs >= HEAT_OVER_MS) {
        queue.put({ type: 'fault', detail: 'the reader is too hot and reads less; give it air or less power' })
      }
      hotMs = clock.elapsed()
    } else if (frame.status !== STILL_READING && frame.status !== 0) {
      queue.put({ type: 'fault', detail: `reading: ${statusText(frame.status ?? 0)}` })
    }
    return null
  }

  const protocol = readerLine({
    name: 'ThingMagic reader',
    codec: () => thingMagicCodec('host'),
    onStray,
    noise,
    platform,
  })

  /** Reading is stopped for it, as the modules take no other command while they read. */
  async function put({ reading, ask }: Reader, pin: number, on: boolean): Promise<SwitchAnswer> {
    const answer = (await reading.hold()) ? await ask(setOutput(pin, on)) : NOT_CONNECTED
    if (answer.kind !== 'answered') return answer.kind === 'lost' ? answer : NOT_CONNECTED
    if (answer.frame.status === 0) return { kind: 'done' }
    return { kind: 'refused', detail: statusText(answer.frame.status ?? 0), undecided: false }
  }

  /** The pin as it shall be. */
  async function write(signal: Signal, ms: number): Promise<SwitchAnswer> {
    offTimers.get(signal)?.()
    offTimers.delete(signal)
    if (ms > 0)
      offTimers.set(
        signal,
        timers.after(ms, () => void write(signal, 0)),
      )
    const pin = settings[signal]?.output
    const reader = current
    if (!reader || pin === undefined) return NOT_CONNECTED
    const answer = await put(reader, pin, ms > 0)
    // How the pin is nobody knows, or it stays on: a new session writes all of them again.
    if (answer.kind === 'lost' || (answer.kind === 'refused' && ms === 0)) reader.end(`pin ${pin}: ${answer.detail}`)
    await reader.reading.go()
    return answer
  }

  /** For the last time: nobody writes it again. */
  async function putOff(reader: Reader, pin: number | undefined): Promise<void> {
    if (pin === undefined) return
    for (let tries = 0; tries < MOST_OFF_TRIES; tries++) if ((await put(reader, pin, false)).kind === 'done') return
  }

  const configured = new Set(SIGNALS.filter((signal) => settings[signal]))
  const signals = timedSignals(clock, configured, write)

  async function begin(session: LinkSession<Line>, signal: AbortSignal): Promise<DeviceIdentity> {
    current = null
    const ask = async (frame: ThingMagicFrame): Promise<ExchangeAnswer<ThingMagicFrame>> => {
      const answer = await session.speaker.ask({
        frame,
        who: 'the reader',
        timeoutMs: settings.requestTimeoutMs,
        signal: session.over,
        answers: ({ opcode }) => opcode === frame.opcode,
      })
      if (answer.kind === 'answered') current?.reading.heard()
      return answer
    }
    async function asked(frame: ThingMagicFrame, what: string | null): Promise<ThingMagicFrame> {
      const answer = await ask(frame)
      const got = frameOf(answer, session, signal)
      if (what !== null && got.status !== 0) {
        throw new Error(
          `the reader refuses ${what}: ${statusText(got.status ?? 0)}; check the settings of ${settings.deviceId}`,
        )
      }
      return got
    }

    // It may still be reading from before. One that does not read may refuse to stop.
    await asked(STOP_READING, null)
    if (isBootLoader(await asked(thingMagicCommand(THINGMAGIC.currentProgram), 'to tell its program'))) {
      await asked(thingMagicCommand(THINGMAGIC.bootFirmware), 'to start its firmware')
    }
    const version = decodeVersion(await asked(thingMagicCommand(THINGMAGIC.version), 'to tell its version'))
    if (!version) throw new Error('the reader does not tell its version')
    await asked(USE_GEN2, 'Gen2 tags')
    await asked(
      thingMagicCommand(THINGMAGIC.setRegion, [THINGMAGIC_REGIONS[settings.region]]),
      `region ${settings.region}`,
    )
    await asked(setAntennas(settings.antennas), `antennas ${settings.antennas.join(', ')}`)
    if (settings.powerDbm !== undefined)
      await asked(setReadPower(settings.powerDbm), `a power of ${settings.powerDbm} dBm`)
    await asked(TELL_EVERY_READ, 'to tell every read')
    const written = new Map<Signal, boolean>()
    for (const [name, ms] of signals.due()) {
      const pin = settings[name]?.output
      if (pin === undefined) continue
      await asked(useAsOutput(pin, ms > 0), `pin ${pin} as an output`)
      // Not all firmware takes the level together with the direction.
      await asked(setOutput(pin, ms > 0), `pin ${pin}`)
      written.set(name, ms > 0)
    }
    await asked(START_READING, 'to read')
    async function start(): Promise<void> {
      const answer = await ask(START_READING)
      // Without power for a moment, it has forgotten its region and everything else.
      if (answer.kind === 'answered' && answer.frame.status !== 0) {
        session.end(`the reader does not read any more: ${statusText(answer.frame.status ?? 0)}`)
      }
    }
    const reading = keepReading({
      platform,
      quietMs: QUIET_MS,
      reads: true,
      over: session.over,
      stop: () => ask(STOP_READING),
      start,
      onSilent: session.silent,
    })
    current = { reading, ask, end: session.end }
    // What has changed meanwhile found nobody to write it.
    for (const [name, ms] of signals.due()) if (written.get(name) !== ms > 0) void write(name, ms)
    return {
      description: `ThingMagic reader ${version.hardware} at ${linkKey(settings.link)}`,
      firmwareVersion: version.firmware,
    }
  }

  return linkDevice({
    link: settings.link,
    links,
    platform,
    queue,
    protocol,
    begin,
    release: () => settled(result('failed', false, 'not_supported', 'this reader only reads')),
    signal: signals.signal,
    emergency: (_open, silent) => signals.silence(silent),
    async switchOff(session) {
      signals.allOff()
      for (const cancel of offTimers.values()) cancel()
      offTimers.clear()
      const reader = current
      if (!session || !reader) return
      for (const name of configured) await putOff(reader, settings[name]?.output)
      await reader.reading.hold()
    },
    stopped() {
      noise.stop()
      presence.stop()
    },
  })
}

/** UHF reader modules of ThingMagic: M6e, Nano, Micro, M7e. */
export const thingMagicDriver: Driver<ThingMagicSettings, typeof ThingMagicSettings> = {
  name: 'thingmagic',
  settings: ThingMagicSettings,
  linkUse: () => null,
  claims: ({ deviceId, ...settings }) =>
    SIGNALS.flatMap((signal) => {
      const lamp = settings[signal]
      return lamp ? [{ setting: `${signal}.output`, on: `pin ${lamp.output} of ${deviceId}` }] : []
    }),
  capabilities: thingMagicCapabilities,
  open: openThingMagic,
}

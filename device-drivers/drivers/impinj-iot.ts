import { pause } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'
import { gpoRequest, IMPINJ_FACTORY_LOGIN, IMPINJ_PATHS, levelOf } from '../protocols/impinj-iot/requests.ts'
import { objectOf } from '../protocols/tag-sighting.ts'
import type { SharedLinks } from '../transports/shared-links.ts'
import type { RunningCommand } from './command-queue.ts'
import { result } from './device.ts'
import type { DeviceIdentity, ProtectionDevice } from './device.ts'
import type { Driver } from './driver.ts'
import { emergencyEvent } from './emergency-input.ts'
import { eventQueue } from './event-queue.ts'
import { basicAuth } from './http/conversation.ts'
import { jsonOf, refusal, restClient } from './http/rest-client.ts'
import { dataStream } from './impinj-iot/data-stream.ts'
import { signalOutputs } from './reader-settings.ts'
import { claimsOf, impinjIotCapabilities, ImpinjIotSettings, inputsOf } from './impinj-iot/settings.ts'
import { setUpReader } from './impinj-iot/set-up.ts'
import { inputEvents } from './input-events.ts'
import { watchLevel } from './level-watch.ts'
import { settled } from './link-device.ts'
import { startPulse } from './llrp/pulse.ts'
import { readerClock } from './llrp/reader-clock.ts'
import { noiseReport } from './noise-report.ts'
import { outputCommands } from './output-commands.ts'
import { openSession } from './session.ts'
import type { Session } from './session.ts'
import { readOf } from './tag-read.ts'
import { wantedOutputs } from './wanted-outputs.ts'
import type { WriteAnswer } from './write-answer.ts'

/** How often the reader is asked whether it still reads; the answer also keeps the connection open. */
const LOOK_EVERY_MS = 2_000
const MOST_MISSED = 2
const KEEPALIVES_MISSED = 3
const NOT_CONNECTED = 'the reader is not connected'

function openImpinjIot(settings: ImpinjIotSettings, links: SharedLinks, platform: Platform): ProtectionDevice {
  const { timers } = platform
  const { link, user, password, requestTimeoutMs: timeoutMs } = settings
  const authorization = basicAuth(user, password)
  const queue = eventQueue()
  const noise = noiseReport(platform, queue.put)
  const clock = readerClock(platform.clock)
  const onFault = (detail: string) => queue.put({ type: 'fault', detail })
  const watched = new Set(inputsOf(settings))
  const rest = restClient({ link, links, platform, timeoutMs, headers: { authorization } })
  const stream = dataStream({
    link: { ...link, channel: 'stream' },
    links,
    platform,
    authorization,
    timeoutMs,
    silenceMs: settings.keepaliveSeconds * KEEPALIVES_MISSED * 1_000,
    onTags: (sightings) => queue.putReads(sightings.map((sighting) => readOf(sighting, clock))),
    onInput({ input, on, utcUs }) {
      if (!watched.has(input)) return
      const ageMs = platform.clock.elapsed() - clock.seenAt({ utcUs })
      for (const event of inputEvents({ input, on, ageMs }, settings.passageInput)) {
        queue.put(event)
        if (event.type === 'input') tellEmergency(input, on)
      }
    },
    onFault,
    onNoise: noise.add,
  })
  const outputs = wantedOutputs({
    release: settings.release?.gpo,
    signals: signalOutputs(settings),
    opensInEmergency: settings.opensInEmergency,
    setting: 'gpo',
    platform,
    write: (output, on) => write(output, on),
  })
  let session: Session | null = null
  let hasWarned = false

  async function write(output: number, on: boolean, once = false): Promise<WriteAnswer> {
    if (!session || session.over.aborted) return { kind: 'lost', handed: false, detail: NOT_CONNECTED }
    const current = session
    const answer = await rest.ask({ method: 'PUT', path: IMPINJ_PATHS.gpos, body: gpoRequest([[output, on]]), once })
    if (answer.kind === 'answered' && answer.status >= 200 && answer.status < 300) return { kind: 'answered' }
    if (answer.kind === 'answered' && answer.status < 500)
      return { kind: 'refused', detail: `the reader ${refusal(answer)}` }
    // In which state the output is nobody knows: a new session writes all of them again.
    if (answer.kind === 'answered' || answer.handed) current.end(refusal(answer))
    return { kind: 'lost', handed: answer.kind === 'answered' || answer.handed, detail: refusal(answer) }
  }

  function tellEmergency(input: number, level: boolean): void {
    const event = emergencyEvent(settings.emergency, input, level)
    if (event) queue.put(event)
  }

  /** Reads the emergency input now and from now on. Rejects if the reader does not tell its level. */
  async function watchEmergency(current: Session): Promise<void> {
    if (!settings.emergency) return
    const { input } = settings.emergency
    const read = async () => {
      const answer = objectOf(jsonOf(await rest.ask({ method: 'GET', path: IMPINJ_PATHS.gpis })))
      return answer ? levelOf(answer, input) : null
    }
    const level = await read()
    if (level === null)
      throw new Error(`the reader does not tell the level of input (GPI) ${input}, so it cannot serve as "emergency"`)
    tellEmergency(input, level)
    void watchLevel({
      timers,
      over: current.over,
      read,
      onLevel: (now) => tellEmergency(input, now),
      onSilent: () => current.end(`the reader no longer tells the level of input (GPI) ${input}`),
    })
  }

  /** Ends the session when the reader no longer answers, or no longer reads. */
  async function lookAfter(current: Session): Promise<void> {
    for (let missed = 0; missed < MOST_MISSED;) {
      await pause(timers, LOOK_EVERY_MS, current.over).catch(() => {})
      if (current.over.aborted) return
      const answer = await rest.ask({ method: 'GET', path: IMPINJ_PATHS.status })
      const status = objectOf(jsonOf(answer))?.['status']
      // Between two triggers it rests.
      if (status === 'idle' && !settings.readWhile) {
        onFault('the reader had stopped to read; it is started again')
        return current.end('the reader no longer reads')
      }
      missed = status === undefined ? missed + 1 : 0
      if (missed === MOST_MISSED) current.end(`the reader does not tell its status: ${refusal(answer)}`)
    }
  }

  function warnOfFactoryPassword(): void {
    if (hasWarned || user !== IMPINJ_FACTORY_LOGIN.user || password !== IMPINJ_FACTORY_LOGIN.password) return
    hasWarned = true
    onFault('the reader still has its factory password, which everybody knows: change it on the reader and here')
  }

  async function identify(signal: AbortSignal): Promise<DeviceIdentity> {
    session?.end('identified anew')
    const begun = openSession()
    session = begun
    try {
      const identity = await setUpReader({ rest, settings, clock, signal, wanted: () => outputs.atConnect() })
      await watchEmergency(begun)
      await stream.open(begun, signal)
      if (signal.aborted) throw signal.reason as Error
      if (begun.over.aborted) throw new Error(await begun.lost)
      warnOfFactoryPassword()
      void lookAfter(begun)
      return identity
    } catch (error) {
      begun.end('not identified')
      throw error
    }
  }

  function release(signal: AbortSignal): RunningCommand {
    const refuse = (...why: Parameters<typeof result>): RunningCommand => settled(result(...why))
    if (!settings.release)
      return refuse('failed', false, 'not_supported', 'no release is configured; add "release": { "gpo": … }')
    if (!session || session.over.aborted) return refuse('failed', false, 'not_ready', NOT_CONNECTED)
    const { gpo, pulseMs } = settings.release
    return startPulse({
      gpo,
      pulseMs,
      timers,
      signal,
      write: (on) => write(gpo, on, on),
      isHeldOpen: () => outputs.isHeldOpen,
      onPulse: () => outputs.pulse(),
      onFault,
    })
  }

  async function sayGoodbye(signal: AbortSignal): Promise<void> {
    if (!session || session.over.aborted) return
    const off = outputs.toSwitchOff().map((output) => [output, false] as const)
    if (off.length > 0) await rest.ask({ method: 'PUT', path: IMPINJ_PATHS.gpos, body: gpoRequest(off), signal })
    await rest.ask({ method: 'POST', path: IMPINJ_PATHS.stop, signal })
  }

  function letGo(): void {
    session?.end('closed')
    rest.leave()
    noise.stop()
    queue.end()
  }

  const commands = outputCommands({
    platform,
    outputs,
    release: (_command, signal) => release(signal),
    sayGoodbye,
    letGo,
  })
  return {
    async connect(signal, onFailure) {
      session?.end('connected anew')
      await rest.connect(signal, onFailure)
    },
    identify,
    untilLost: () => session?.lost ?? Promise.resolve('the link was lost'),
    events: queue.events,
    ...commands,
  }
}

/** Impinj readers with the IoT device interface: tag reads, sirens and lamps, barriers. */
export const impinjIotDriver: Driver<ImpinjIotSettings, typeof ImpinjIotSettings> = {
  name: 'impinj-iot',
  settings: ImpinjIotSettings,
  linkUse: () => null,
  claims: claimsOf,
  capabilities: impinjIotCapabilities,
  open: openImpinjIot,
}

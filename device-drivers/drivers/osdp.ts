import type { Platform } from '../../policy/platform.ts'
import {
  buzzer,
  led,
  nakText,
  OSDP_COMMAND,
  OSDP_REPLY,
  osdpCommand,
  outputOff,
  outputOn,
  outputOnFor,
} from '../protocols/osdp/messages.ts'
import type { OsdpCard, OsdpCommand } from '../protocols/osdp/messages.ts'
import { linkKey, linkMode } from '../transports/link-settings.ts'
import type { SharedLinks } from '../transports/shared-links.ts'
import type { RunningCommand } from './command-queue.ts'
import { result, SIGNALS } from './device.ts'
import type { CommandResult, DeviceIdentity, ProtectionDevice, Signal } from './device.ts'
import type { Driver } from './driver.ts'
import { doorWatch } from './door-watch.ts'
import { emergencyEvent } from './emergency-input.ts'
import { eventQueue } from './event-queue.ts'
import { holdOpen } from './hold-open.ts'
import { watchInputs } from './input-watch.ts'
import type { InputWatch } from './input-watch.ts'
import { linkDevice, settled } from './link-device.ts'
import type { LinkSession } from './link-device.ts'
import { noiseReport } from './noise-report.ts'
import { startDialogue } from './osdp/dialogue.ts'
import type { Dialogue, OsdpAnswer, SendOptions } from './osdp/dialogue.ts'
import { expectReply, identifyDevice } from './osdp/identify.ts'
import { OSDP_LINE } from './osdp/line.ts'
import type { OsdpLine } from './osdp/line.ts'
import { osdpCapabilities, osdpClaims, OsdpSettings } from './osdp/settings.ts'
import { watchDevice } from './osdp/watch-device.ts'
import { startRelease } from './release.ts'
import type { SwitchAnswer } from './release.ts'
import { timedSignals } from './timed-signals.ts'
import { writeResult } from './write-answer.ts'

const NOT_CONNECTED: SwitchAnswer = { kind: 'lost', handed: false, detail: 'the device is not connected' }
const NO_INPUTS: InputWatch = { next: async () => ({ kind: 'missed' }) }

function switched(answer: OsdpAnswer): SwitchAnswer {
  if (answer.kind === 'lost') return answer
  if (answer.kind === 'nak') return { kind: 'refused', detail: nakText(answer.code), undecided: answer.repeated }
  if (answer.code === OSDP_REPLY.ack || answer.code === OSDP_REPLY.outputStatus) return { kind: 'done' }
  return { kind: 'refused', detail: `an answer of another kind (code ${answer.code})`, undecided: true }
}

function signalCommand(settings: OsdpSettings, signal: Signal, ms: number): OsdpCommand | null {
  const { siren } = settings
  if (signal === 'siren') {
    if (!siren) return null
    if ('buzzer' in siren) return buzzer(ms)
    return ms > 0 ? outputOnFor(siren.output, ms) : outputOff(siren.output)
  }
  const lamp = settings[signal]
  return lamp ? led(lamp.led, signal, ms) : null
}

function openOsdp(settings: OsdpSettings, links: SharedLinks, platform: Platform): ProtectionDevice {
  const { clock, timers } = platform
  const { output, confirmInput, passageInput, door, pulseMs, emergency } = settings
  const watched = [emergency?.input, confirmInput, passageInput, door?.input].filter((input) => input !== undefined)
  const queue = eventQueue()
  const noise = noiseReport(platform, queue.put)
  let dialogue: Dialogue | null = null
  let inputs: InputWatch = NO_INPUTS
  let pulses = 0

  const onFault = (detail: string) => queue.put({ type: 'fault', detail })
  const send = async (command: OsdpCommand | null, options?: SendOptions): Promise<SwitchAnswer> =>
    dialogue && command ? switched(await dialogue.send(command, options)) : NOT_CONNECTED
  const configured = new Set(SIGNALS.filter((signal) => signalCommand(settings, signal, 0)))
  const signals = timedSignals(platform.clock, configured, (signal, ms) => send(signalCommand(settings, signal, ms)))

  const hold = holdOpen({
    timers,
    waits: settings.opensInEmergency === true,
    isPulsing: () => pulses > 0,
    async write(on) {
      if (output === undefined) return { kind: 'answered' }
      const answer = await send(on ? outputOn(output) : outputOff(output))
      return answer.kind === 'done' ? { kind: 'answered' } : answer
    },
  })

  const doorOf =
    door &&
    doorWatch({
      platform,
      openSeconds: door.openSeconds,
      pulseMs,
      onState(state, alarm) {
        queue.put({ type: 'door', state })
        if (alarm) onFault(alarm)
        if (alarm !== undefined && settings.siren)
          void signals.signal('siren', alarm === null ? 0 : settings.siren.seconds)
      },
    })

  function onCard({ bits, hex }: OsdpCard): void {
    // What is not whole bytes is a number that an installer has put on the card, no UID.
    if (settings.cards === 'scans' || bits % 8 !== 0) queue.put({ type: 'scan', text: hex })
    else queue.put({ type: 'tags', reads: [{ tag: { tagUid: hex }, seenAtMs: platform.clock.elapsed() }] })
  }

  function onInput(input: number, on: boolean): void {
    queue.put({ type: 'input', input, on })
    if (input === passageInput && on) queue.put({ type: 'passage' })
    if (input === door?.input) doorOf?.set(on)
    tellEmergency(input, on)
  }

  function tellEmergency(input: number, on: boolean): void {
    const event = emergencyEvent(emergency, input, on)
    if (event) queue.put(event)
  }

  function statesOf(data: Uint8Array): Map<number, boolean> {
    return new Map(watched.map((input) => [input, data[input] === 1]))
  }

  async function readOnce(asked: Dialogue): Promise<Map<number, boolean>> {
    if (watched.length === 0) return new Map()
    const data = await expectReply(
      asked,
      osdpCommand(OSDP_COMMAND.inputStatus),
      [OSDP_REPLY.inputStatus],
      'to tell its inputs',
    )
    const missing = watched.find((input) => input >= data.length)
    if (missing !== undefined) {
      throw new Error(
        `the device has no input ${missing}, only ${data.length}; check the settings of ${settings.deviceId}`,
      )
    }
    return statesOf(data)
  }

  function startWatching(found: Dialogue, before: ReadonlyMap<number, boolean>, over: AbortSignal): void {
    const read = async () => {
      const answer = await found.send(osdpCommand(OSDP_COMMAND.inputStatus), { lane: 'poll' })
      return answer.kind === 'reply' && answer.code === OSDP_REPLY.inputStatus ? statesOf(answer.data) : null
    }
    const { pollMs } = settings
    inputs =
      watched.length === 0
        ? NO_INPUTS
        : watchInputs({ platform, read, pollMs, before, signal: over, onChange: onInput })
    const release = output === undefined ? null : { output, isOn: () => pulses > 0 || hold.isOpen !== false }
    void watchDevice({ dialogue: found, platform, pollMs, over, release, onCard, onFault })
  }

  async function begin(session: LinkSession<OsdpLine>, signal: AbortSignal): Promise<DeviceIdentity> {
    dialogue = null
    const stopNoise = session.speaker.onNoise(noise.add)
    session.over.addEventListener('abort', stopNoise, { once: true })
    const start = () =>
      startDialogue({
        line: session.speaker,
        address: settings.address,
        check: settings.check,
        timeoutMs: settings.requestTimeoutMs,
        timers,
        over: session.over,
        onSilent: session.silent,
        onBroken: session.end,
        onFault,
      })
    const { identity, dialogue: found } = await identifyDevice({ settings, platform, start, onFault })
    session.heard()
    if (output !== undefined && hold.isOpen !== undefined)
      await expectReply(
        found,
        hold.isOpen ? outputOn(output) : outputOff(output),
        [OSDP_REPLY.ack, OSDP_REPLY.outputStatus],
        `output ${output}`,
      )
    // From here on a signal that comes meanwhile goes behind these.
    dialogue = found
    for (const name of signals.due().keys()) {
      // Looked up at the last moment, for it may have been switched while another was written.
      const command = signalCommand(settings, name, signals.due().get(name) ?? 0)
      if (command) await expectReply(found, command, [OSDP_REPLY.ack, OSDP_REPLY.outputStatus], `the ${name}`)
    }
    const before = await readOnce(found)
    if (signal.aborted) throw signal.reason as Error
    const isOpen = door && before.get(door.input)
    if (isOpen !== undefined) doorOf?.set(isOpen)
    before.forEach((on, input) => tellEmergency(input, on))
    startWatching(found, before, session.over)
    const { vendor, model, version, serialNumber, firmwareVersion } = identity
    const secured = settings.key === undefined ? 'without secure channel' : 'in secure channel'
    return {
      description: `OSDP device ${vendor} ${model}.${version}, address ${settings.address} at ${linkKey(settings.link)}, ${secured}`,
      firmwareVersion,
      serialNumber,
    }
  }

  function onPulse(): () => void {
    pulses++
    doorOf?.released()
    return () => void pulses--
  }

  function release(session: LinkSession<OsdpLine>, signal: AbortSignal): RunningCommand {
    if (output === undefined)
      return settled(result('failed', false, 'not_supported', 'no output is configured; add "output": …'))
    const switchOutput = (on: boolean, options?: SendOptions) =>
      send(on ? outputOnFor(output, pulseMs) : outputOff(output), options)
    return startRelease({
      switchOutput,
      inputs,
      over: session.over,
      clock,
      timers,
      output,
      confirmInput,
      pulseMs,
      deviceEnds: true,
      endInput: door?.input,
      signal,
      isHeldOpen: () => hold.isOpen === true,
      onPulse,
      onFault,
    })
  }

  async function onEmergency(open: boolean, silent: boolean): Promise<CommandResult> {
    doorOf?.heldOpen(open)
    const silenced = signals.silence(silent)
    if (open && output === undefined) return result('failed', false, 'not_supported', 'there is no output to open')
    const written = await hold.set(open)
    await silenced
    return writeResult(written, 'while the emergency lasts')
  }

  async function switchOff(session: LinkSession<OsdpLine> | null): Promise<void> {
    signals.allOff()
    hold.stop()
    if (!session) return
    // What an emergency holds open stays open while no agent runs.
    if (output !== undefined && hold.isOpen === false) await send(outputOff(output))
    for (const name of configured) await send(signalCommand(settings, name, 0))
  }

  return linkDevice({
    link: settings.link,
    links,
    platform,
    queue,
    protocol: OSDP_LINE,
    begin,
    release: (_command, session, signal) => release(session, signal),
    signal: signals.signal,
    emergency: onEmergency,
    switchOff,
    stopped() {
      noise.stop()
      doorOf?.stop()
    },
  })
}

/** Card readers, locks and cabinets on OSDP v2, in a secure channel. */
export const osdpDriver: Driver<OsdpSettings, typeof OsdpSettings> = {
  name: 'osdp',
  settings: OsdpSettings,
  linkUse: (settings) => `OSDP, ${linkMode(settings.link)}`,
  claims: osdpClaims,
  capabilities: osdpCapabilities,
  open: openOsdp,
}

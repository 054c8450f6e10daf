import type { Platform } from '../../policy/platform.ts'
import {
  OSDP_COMMAND,
  OSDP_REPLY,
  osdpCommand,
  outputOff,
  outputOn,
  outputOnFor,
  type OsdpCard,
  type OsdpCommand,
} from './protocol/messages.ts'
import { linkKey, linkMode, type LinkSettings } from '../transports/link-settings.ts'
import type { SharedLinks } from '../transports/shared-links.ts'
import { type RunningCommand, completedCommand, type ReleaseCommand } from '../kit/device-commands.ts'
import {
  result,
  setUpLimit,
  SIGNALS,
  type CommandResult,
  type DeviceIdentity,
  type Signal,
  writeResult,
} from '../kit/device.ts'
import type { Driver } from '../kit/driver.ts'
import { doorWatch, type DoorWatch } from '../kit/door-watch.ts'
import { emergencyEvent } from '../kit/emergency-input.ts'
import { EventQueue } from '../kit/event-queue.ts'
import { holdOpen, type HoldOpen, watchInputs, type InputWatch } from '../kit/input-watch.ts'
import { linkDevice, type LinkDeviceOptions, type LinkSession } from '../kit/link-device.ts'
import { noiseReport, type NoiseReport } from '../kit/noise-report.ts'
import { signalCommand, switchAnswerOf, expectReply, identifyDevice, watchDevice } from './identify.ts'
import { Dialogue, type SendOptions, OSDP_LINE, type OsdpLine } from './dialogue.ts'
import { osdpCapabilities, exclusiveResourcesOf, OsdpSettings } from './settings.ts'
import { startRelease, type SwitchAnswer } from '../kit/release.ts'
import { timedSignals, type TimedSignals } from '../kit/desired-outputs.ts'

const NOT_CONNECTED: SwitchAnswer = { kind: 'lost', possiblySent: false, detail: 'the device is not connected' }
const NO_INPUTS: InputWatch = { next: async () => ({ kind: 'missed' }) }

/** One OSDP device. */
class OsdpDevice implements LinkDeviceOptions<OsdpLine> {
  readonly #settings: OsdpSettings
  readonly protocol = OSDP_LINE
  readonly link: LinkSettings
  readonly links: SharedLinks
  readonly platform: Platform
  readonly #output: number | undefined
  readonly #door: { input: number; openSeconds: number } | undefined
  readonly #watched: number[]
  readonly queue = new EventQueue()
  readonly #noise: NoiseReport
  #dialogue: Dialogue | null = null
  #inputs: InputWatch = NO_INPUTS
  #pulses = 0
  readonly #configured: ReadonlySet<Signal>
  readonly #signals: TimedSignals
  readonly #hold: HoldOpen
  readonly #doorWatch: DoorWatch | undefined

  readonly #onFault = (detail: string): void => this.queue.put({ type: 'fault', detail })
  readonly setUpLimitMs: number

  constructor(settings: OsdpSettings, links: SharedLinks, platform: Platform) {
    this.#settings = settings
    this.setUpLimitMs = setUpLimit(settings.requestTimeoutMs)
    this.link = settings.link
    this.links = links
    this.platform = platform
    this.#output = settings.output
    this.#door = settings.door
    this.#watched = [
      settings.emergency?.input,
      settings.confirmInput,
      settings.passageInput,
      settings.door?.input,
    ].filter((input) => input !== undefined)
    this.#noise = noiseReport(platform, this.queue.put)
    this.#configured = new Set(SIGNALS.filter((signal) => signalCommand(settings, signal, 0)))
    this.#signals = timedSignals(platform.clock, this.#configured, (signal, ms) =>
      this.#send(signalCommand(settings, signal, ms)),
    )
    this.#hold = holdOpen({
      timers: platform.timers,
      waits: settings.opensInEmergency === true,
      isPulsing: () => this.#pulses > 0,
      write: async (on) => {
        if (settings.output === undefined) return { kind: 'answered' }
        const answer = await this.#send(on ? outputOn(settings.output) : outputOff(settings.output))
        return answer.kind === 'done' ? { kind: 'answered' } : answer
      },
    })
    this.#doorWatch =
      settings.door &&
      doorWatch({
        platform,
        openSeconds: settings.door.openSeconds,
        pulseMs: settings.pulseMs,
        onState: (state, alarm) => {
          this.queue.put({ type: 'door', state })
          if (alarm) this.#onFault(alarm)
          if (alarm !== undefined && settings.siren)
            void this.#signals.signal('siren', alarm === null ? 0 : settings.siren.seconds)
        },
      })
  }

  async begin(session: LinkSession<OsdpLine>, signal: AbortSignal): Promise<DeviceIdentity> {
    this.#dialogue = null
    const stopNoise = session.client.onNoise(this.#noise.add)
    session.over.addEventListener('abort', stopNoise, { once: true })
    const start = () =>
      new Dialogue({
        line: session.client,
        address: this.#settings.address,
        check: this.#settings.check,
        timeoutMs: this.#settings.requestTimeoutMs,
        timers: this.platform.timers,
        over: session.over,
        onUnresponsive: session.markUnresponsive,
        onBroken: session.end,
        onFault: this.#onFault,
      })
    const { identity, dialogue } = await identifyDevice({
      settings: this.#settings,
      platform: this.platform,
      start,
      onFault: this.#onFault,
    })
    session.markResponsive()
    if (this.#output !== undefined && this.#hold.isOpen !== undefined)
      await expectReply(
        dialogue,
        this.#hold.isOpen ? outputOn(this.#output) : outputOff(this.#output),
        [OSDP_REPLY.ack, OSDP_REPLY.outputStatus],
        `output ${this.#output}`,
      )
    // From here on `#send` can be called. A signal that starts during the loop is sent after the loop's current
    // command.
    this.#dialogue = dialogue
    for (const name of this.#signals.due().keys()) {
      // Reads the remaining time just before the write, because it may have changed while another signal was written.
      const command = signalCommand(this.#settings, name, this.#signals.due().get(name) ?? 0)
      if (command) await expectReply(dialogue, command, [OSDP_REPLY.ack, OSDP_REPLY.outputStatus], `the ${name}`)
    }
    const before = await this.#readOnce(dialogue)
    if (signal.aborted) throw signal.reason as Error
    const isOpen = this.#door && before.get(this.#door.input)
    if (isOpen !== undefined) this.#doorWatch?.set(isOpen)
    before.forEach((on, input) => this.#emitEmergency(input, on))
    this.#startWatching(dialogue, before, session.over)
    const { vendor, model, version, serialNumber, firmwareVersion } = identity
    const secured = this.#settings.key === undefined ? 'without secure channel' : 'in secure channel'
    return {
      description: `OSDP device ${vendor} ${model}.${version}, address ${this.#settings.address} at ${linkKey(this.#settings.link)}, ${secured}`,
      firmwareVersion,
      serialNumber,
    }
  }

  release(_command: ReleaseCommand, session: LinkSession<OsdpLine>, signal: AbortSignal): RunningCommand {
    const { output, confirmInput, pulseMs, door } = this.#settings
    if (output === undefined)
      return completedCommand(result('failed', false, 'not_supported', 'no output is configured; add "output": …'))
    const switchOutput = (on: boolean, options?: SendOptions) =>
      this.#send(on ? outputOnFor(output, pulseMs) : outputOff(output), options)
    return startRelease({
      switchOutput,
      inputs: this.#inputs,
      over: session.over,
      clock: this.platform.clock,
      timers: this.platform.timers,
      output,
      confirmInput,
      pulseMs,
      deviceEnds: true,
      endInput: door?.input,
      signal,
      isHeldOpen: () => this.#hold.isOpen === true,
      onPulse: () => this.#onPulse(),
      onFault: this.#onFault,
    })
  }

  signal(name: Signal, seconds: number): Promise<CommandResult> {
    return this.#signals.signal(name, seconds)
  }

  async emergency(open: boolean, silent: boolean): Promise<CommandResult> {
    this.#doorWatch?.heldOpen(open)
    const silenced = this.#signals.silence(silent)
    if (open && this.#output === undefined)
      return result('failed', false, 'not_supported', 'there is no output to open')
    const written = await this.#hold.set(open)
    await silenced
    return writeResult(written, 'while the emergency lasts')
  }

  async switchOff(session: LinkSession<OsdpLine> | null): Promise<void> {
    this.#signals.allOff()
    this.#hold.stop()
    if (!session) return
    // An output that an emergency holds open stays open after the agent has stopped.
    if (this.#output !== undefined && this.#hold.isOpen === false) await this.#send(outputOff(this.#output))
    for (const name of this.#configured) await this.#send(signalCommand(this.#settings, name, 0))
  }

  stopped(): void {
    this.#noise.stop()
    this.#doorWatch?.stop()
  }

  async #send(command: OsdpCommand | null, options?: SendOptions): Promise<SwitchAnswer> {
    return this.#dialogue && command ? switchAnswerOf(await this.#dialogue.send(command, options)) : NOT_CONNECTED
  }

  #onCard({ bits, hex }: OsdpCard): void {
    // Only a number of whole bytes can be a UID. Other card numbers are programmed by installers.
    if (this.#settings.cards === 'scans' || bits % 8 !== 0) this.queue.put({ type: 'scan', text: hex })
    else this.queue.put({ type: 'tags', reads: [{ tag: { tagUid: hex }, seenAtMs: this.platform.clock.elapsed() }] })
  }

  #onInput(input: number, on: boolean): void {
    this.queue.put({ type: 'input', input, on })
    if (input === this.#settings.passageInput && on) this.queue.put({ type: 'passage' })
    if (input === this.#door?.input) this.#doorWatch?.set(on)
    this.#emitEmergency(input, on)
  }

  #emitEmergency(input: number, on: boolean): void {
    const event = emergencyEvent(this.#settings.emergency, input, on)
    if (event) this.queue.put(event)
  }

  #statesOf(data: Uint8Array): Map<number, boolean> {
    return new Map(this.#watched.map((input) => [input, data[input] === 1]))
  }

  async #readOnce(dialogue: Dialogue): Promise<Map<number, boolean>> {
    if (this.#watched.length === 0) return new Map()
    const data = await expectReply(
      dialogue,
      osdpCommand(OSDP_COMMAND.inputStatus),
      [OSDP_REPLY.inputStatus],
      'to report its inputs',
    )
    const missing = this.#watched.find((input) => input >= data.length)
    if (missing !== undefined) {
      throw new Error(
        `the device has no input ${missing}, only ${data.length}; check the settings of ${this.#settings.deviceId}`,
      )
    }
    return this.#statesOf(data)
  }

  #startWatching(dialogue: Dialogue, before: ReadonlyMap<number, boolean>, over: AbortSignal): void {
    const read = async () => {
      const answer = await dialogue.send(osdpCommand(OSDP_COMMAND.inputStatus), { lane: 'poll' })
      return answer.kind === 'reply' && answer.code === OSDP_REPLY.inputStatus ? this.#statesOf(answer.data) : null
    }
    const { pollMs } = this.#settings
    this.#inputs =
      this.#watched.length === 0
        ? NO_INPUTS
        : watchInputs({
            platform: this.platform,
            read,
            pollMs,
            initial: before,
            signal: over,
            onChange: (input, on) => this.#onInput(input, on),
          })
    const release =
      this.#output === undefined
        ? null
        : { output: this.#output, isOn: () => this.#pulses > 0 || this.#hold.isOpen !== false }
    void watchDevice({
      dialogue,
      platform: this.platform,
      pollMs,
      over,
      release,
      onCard: (card) => this.#onCard(card),
      onFault: this.#onFault,
    })
  }

  #onPulse(): () => void {
    this.#pulses++
    this.#doorWatch?.released()
    return () => void this.#pulses--
  }
}

/** Card readers, locks and cabinets with OSDP v2 (SIA OSDP 2.2, IEC 60839-11-5) in a secure channel. */
export const osdpDriver: Driver<OsdpSettings, typeof OsdpSettings> = {
  name: 'osdp',
  settings: OsdpSettings,
  linkUse: (settings) => `OSDP, ${linkMode(settings.link)}`,
  exclusiveResources: exclusiveResourcesOf,
  capabilities: osdpCapabilities,
  open: (settings, links, platform) => linkDevice(new OsdpDevice(settings, links, platform)),
}

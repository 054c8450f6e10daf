import type { Platform } from '../../policy/platform.ts'
import { linkKey } from '../transports/link-settings.ts'
import type { SharedLinks } from '../transports/shared-links.ts'
import { type RunningCommand, outputCommands, completedCommand, type DeviceCommands } from '../kit/device-commands.ts'
import { deviceLink, type DeviceLink } from '../kit/device-link.ts'
import {
  result,
  setUpLimit,
  type CommandResult,
  type DeviceCommand,
  type DeviceEvent,
  type DeviceIdentity,
  type ProtectionDevice,
  type WriteAnswer,
} from '../kit/device.ts'
import type { Driver } from '../kit/driver.ts'
import { EventQueue } from '../kit/event-queue.ts'
import { watchInputs } from '../kit/input-watch.ts'
import { auditOutputs, writeUncertain } from './audit.ts'
import { answerText, NO_SERVICE_MS, switchAnswer, type Board } from './board.ts'
import { MODBUS_BUS, type ModbusBus } from './bus.ts'
import { identifyBoard, isUnproven } from './identify.ts'
import { readInputs, beginSession, type ModbusSession } from './session.ts'
import { modbusSensors, type Sensors } from './sensors.ts'
import {
  exclusiveResourcesOf,
  framingOf,
  linkUseOf,
  modbusCapabilities,
  ModbusSettings,
  signalOutputs,
  wiringOf,
} from './settings.ts'
import { noiseReport, type NoiseReport } from '../kit/noise-report.ts'
import { startRelease, type SwitchOutput } from '../kit/release.ts'
import { desiredOutputs, type DesiredOutputs } from '../kit/desired-outputs.ts'

const NO_OUTPUT = 'the board releases nothing; give "output" in its settings'
const NOT_CONNECTED = 'the board is not connected'

/** One Modbus board. */
class ModbusDevice implements ProtectionDevice {
  readonly #settings: ModbusSettings
  readonly #platform: Platform
  readonly #queue = new EventQueue()
  readonly #noise: NoiseReport
  readonly #line: DeviceLink<ModbusBus>
  #session: ModbusSession | null = null
  readonly #outputs: DesiredOutputs
  readonly #sensors: Sensors
  readonly #commands: DeviceCommands
  readonly events: AsyncIterable<DeviceEvent>

  readonly #onFault = (detail: string): void => this.#queue.put({ type: 'fault', detail })
  readonly setUpLimitMs: number

  constructor(settings: ModbusSettings, links: SharedLinks, platform: Platform) {
    this.#settings = settings
    this.setUpLimitMs = setUpLimit(settings.requestTimeoutMs)
    this.#platform = platform
    this.#noise = noiseReport(platform, this.#queue.put)
    this.#line = deviceLink(links, settings.link, MODBUS_BUS[wiringOf(settings)], (reason) =>
      this.#session?.end(reason),
    )
    this.#outputs = desiredOutputs({
      release: settings.output,
      signals: signalOutputs(settings),
      opensInEmergency: settings.opensInEmergency,
      setting: 'output',
      platform,
      write: (output, on) => this.#write(output, on),
    })
    this.#sensors = modbusSensors({
      settings,
      platform,
      emit: this.#queue.put,
      siren: (seconds) => void (settings.siren && this.#outputs.signal('siren', seconds)),
    })
    this.#commands = outputCommands({
      platform,
      outputs: this.#outputs,
      onEmergency: (open) => this.#sensors.heldOpen(open),
      release: (_command, signal) => this.#release(signal),
      switchOff: (signal) => this.#switchOff(signal),
      dispose: () => this.#dispose(),
    })
    this.events = this.#queue.events
  }

  async connect(signal: AbortSignal, onFailure: (detail: string) => void): Promise<void> {
    this.#session?.end('reconnected')
    const member = await this.#line.connect(signal, onFailure)
    void member.lost.then(member.client.onNoise(this.#noise.add))
  }

  async identify(signal: AbortSignal): Promise<DeviceIdentity> {
    const member = this.#line.joined()
    this.#session?.end('identified again')
    const session = beginSession(member, this.#settings, this.#platform.clock, (finding) =>
      this.#queue.put({ type: 'finding', finding }),
    )
    this.#session = session
    try {
      const before = await identifyBoard({
        member,
        session,
        settings: this.#settings,
        outputs: this.#outputs,
        watched: this.#sensors.watched,
        signal,
      })
      if (isUnproven(session)) session.board.onFirstAnswer(() => session.end('the board answers now'))
      member.markResponsive()
      const common = { board: session.board, uncertain: session.uncertain, signal: session.over }
      let refusedSinceMs: number | null = null
      const read = async () => {
        const found = await readInputs(session.board, this.#sensors.watched)
        if (found instanceof Map || found.kind === 'lost') refusedSinceMs = null
        if (found instanceof Map) return found
        // A board that no longer reports its inputs would hide passages and the fire panel.
        const now = this.#platform.clock.elapsed()
        if (found.kind === 'exception') refusedSinceMs ??= now
        if (refusedSinceMs !== null && now - refusedSinceMs >= NO_SERVICE_MS)
          session.end(`unit ${this.#settings.unit} refuses to report its inputs: ${answerText(found)}`)
        return null
      }
      this.#sensors.initial(before)
      session.inputs = watchInputs({
        platform: this.#platform,
        signal: session.over,
        read,
        pollMs: this.#settings.pollMs,
        initial: before,
        onChange: this.#sensors.onChange,
      })
      void auditOutputs({
        ...common,
        timers: this.#platform.timers,
        outputs: this.#outputs,
        release: this.#settings.output,
        alone: this.#sensors.watched.length === 0,
        onFault: this.#onFault,
      })
    } catch (error) {
      session.end('not identified')
      throw error
    }
    return {
      description: `Modbus ${framingOf(this.#settings).toUpperCase()} unit ${this.#settings.unit} at ${linkKey(this.#settings.link)}`,
      findings: session.findings(),
    }
  }

  untilLost(): Promise<string> {
    return this.#session?.lost ?? Promise.resolve('the link was lost')
  }

  execute(command: DeviceCommand, signal: AbortSignal): Promise<CommandResult> {
    return this.#commands.execute(command, signal)
  }

  close(): Promise<void> {
    return this.#commands.close()
  }

  async #write(output: number, on: boolean): Promise<WriteAnswer> {
    if (!this.#session || this.#session.over.aborted)
      return { kind: 'lost', possiblySent: false, detail: NOT_CONNECTED }
    const { board, uncertain, over } = this.#session
    const answer = switchAnswer(await board.writeCoil(output, on))
    if (answer.kind === 'done') {
      uncertain.delete(output)
      return { kind: 'answered' }
    }
    uncertain.add(output)
    if (!over.aborted) void writeUncertain({ board, uncertain, outputs: this.#outputs, release: this.#settings.output })
    return answer.kind === 'refused' && answer.outputMayHaveMoved
      ? { kind: 'lost', possiblySent: true, detail: answer.detail }
      : answer
  }

  #release(signal: AbortSignal): RunningCommand {
    const current = this.#session
    if (!current?.inputs || current.over.aborted) {
      return completedCommand(result('failed', false, 'not_ready', NOT_CONNECTED))
    }
    const { board, bus, inputs, over, uncertain } = current
    const { output, pulseMs } = this.#settings
    if (output === undefined) return completedCommand(result('failed', false, 'not_supported', NO_OUTPUT))
    const pulse: Board['writeCoil'] = (coil, on, options) =>
      on && this.#settings.hardwarePulse ? board.flashCoil(coil, pulseMs, options) : board.writeCoil(coil, on, options)
    const switchOutput: SwitchOutput = async (on, options) => {
      const answer = switchAnswer(await pulse(output, on, options))
      if (answer.kind === 'done') uncertain.delete(output)
      else uncertain.add(output)
      return answer
    }
    const onPulse = () => {
      this.#sensors.released()
      return this.#outputs.pulse()
    }
    // A lock's pulse ends when the door opens. A deactivator's pulse ends after one deactivation.
    const endInput = this.#settings.door?.input ?? (this.#settings.interlock && this.#settings.confirmInput)
    const feedbackInput = this.#settings.interlock?.armedInput
    const free = bus.hold(this.#settings.unit)
    const release = startRelease({
      switchOutput,
      inputs,
      over,
      clock: this.#platform.clock,
      timers: this.#platform.timers,
      output,
      confirmInput: this.#settings.confirmInput,
      pulseMs,
      endInput,
      feedbackInput,
      signal,
      isHeldOpen: () => this.#outputs.isHeldOpen,
      onPulse,
      onFault: this.#onFault,
      deviceEnds: this.#settings.hardwarePulse !== undefined,
    })
    void release.finished.finally(free)
    return release
  }

  async #switchOff(signal: AbortSignal): Promise<void> {
    const board = this.#session?.board
    await Promise.all(this.#outputs.toSwitchOff().map((output) => board?.writeCoil(output, false, { signal })))
  }

  #dispose(): void {
    this.#session?.end('closed')
    this.#line.leave()
    this.#noise.stop()
    this.#sensors.stop()
    this.#queue.end()
  }
}

/**
 * Relay and input boards with Modbus (application protocol V1.1b3, RTU or TCP): detachers, locks, deactivators with a
 * contact, sirens, lamps, sensors.
 */
export const modbusDriver: Driver<ModbusSettings, typeof ModbusSettings> = {
  name: 'modbus',
  settings: ModbusSettings,
  linkUse: linkUseOf,
  exclusiveResources: exclusiveResourcesOf,
  capabilities: modbusCapabilities,
  open: (settings, links, platform) => new ModbusDevice(settings, links, platform),
}

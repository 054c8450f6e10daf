import type { Platform } from '../../policy/platform.ts'
import { linkKey } from '../transports/link-settings.ts'
import type { Membership, SharedLinks } from '../transports/shared-links.ts'
import type { RunningCommand } from './command-queue.ts'
import { deviceLink } from './device-link.ts'
import { result } from './device.ts'
import type { DeviceIdentity, ProtectionDevice } from './device.ts'
import type { Driver } from './driver.ts'
import { eventQueue } from './event-queue.ts'
import { watchInputs } from './input-watch.ts'
import { settled } from './link-device.ts'
import { auditOutputs, writeDoubtful } from './modbus/audit.ts'
import { switchAnswer } from './modbus/board.ts'
import type { Board } from './modbus/board.ts'
import { MODBUS_BUS } from './modbus/bus.ts'
import type { ModbusBus } from './modbus/bus.ts'
import { readInputs } from './modbus/inputs.ts'
import { modbusSensors } from './modbus/sensors.ts'
import { beginSession, misfit } from './modbus/session.ts'
import type { Session } from './modbus/session.ts'
import { claimsOf, framingOf, linkUseOf, modbusCapabilities, ModbusSettings, signalOutputs } from './modbus/settings.ts'
import { noiseReport } from './noise-report.ts'
import { outputCommands } from './output-commands.ts'
import { startRelease } from './release.ts'
import type { SwitchOutput } from './release.ts'
import { wantedOutputs } from './wanted-outputs.ts'
import type { WriteAnswer } from './write-answer.ts'

const NO_OUTPUT = 'the board releases nothing; give "output" in its settings'
const NOT_CONNECTED = 'the board is not connected'

function openModbus(settings: ModbusSettings, links: SharedLinks, platform: Platform): ProtectionDevice {
  const { clock, timers } = platform
  const { confirmInput, door, interlock } = settings
  const queue = eventQueue()
  const noise = noiseReport(platform, queue.put)
  const line = deviceLink(links, settings.link, MODBUS_BUS[framingOf(settings)], (reason) => session?.end(reason))
  let session: Session | null = null

  const onFault = (detail: string) => queue.put({ type: 'fault', detail })
  const outputs = wantedOutputs({
    release: settings.output,
    signals: signalOutputs(settings),
    opensInEmergency: settings.opensInEmergency,
    setting: 'output',
    platform,
    write,
  })

  async function write(output: number, on: boolean): Promise<WriteAnswer> {
    if (!session || session.over.aborted) return { kind: 'lost', handed: false, detail: NOT_CONNECTED }
    const { board, doubtful, over } = session
    const answer = switchAnswer(await board.writeCoil(output, on))
    if (answer.kind === 'done') {
      doubtful.delete(output)
      return { kind: 'answered' }
    }
    doubtful.add(output)
    if (!over.aborted) void writeDoubtful({ board, doubtful, outputs, release: settings.output })
    return answer.kind === 'refused' && answer.undecided
      ? { kind: 'lost', handed: true, detail: answer.detail }
      : answer
  }

  const sensors = modbusSensors({
    settings,
    platform,
    tell: queue.put,
    siren: (seconds) => void (settings.siren && outputs.signal('siren', seconds)),
  })
  const { watched } = sensors

  async function connect(signal: AbortSignal, onFailure: (detail: string) => void): Promise<void> {
    session?.end('connected anew')
    const member = await line.connect(signal, onFailure)
    void member.lost.then(member.speaker.onNoise(noise.add))
  }

  async function writeWanted(member: Membership<ModbusBus>, { board }: Session, signal: AbortSignal): Promise<void> {
    for (const output of outputs.atConnect().keys()) {
      if (signal.aborted) throw signal.reason as Error
      // Looked up at the last moment: a signal that comes meanwhile is written behind this one.
      const on = outputs.atConnect().get(output) === true
      const answer = await board.writeCoil(output, on)
      if (answer.kind !== 'answered') throw misfit(member, settings, answer, `output ${output}`)
    }
  }

  async function identify(signal: AbortSignal): Promise<DeviceIdentity> {
    const member = line.joined()
    session?.end('identified anew')
    const begun = beginSession(member, settings)
    session = begun
    try {
      await writeWanted(member, begun, signal)
      const before = await readInputs(begun.board, watched)
      if (!(before instanceof Map)) throw misfit(member, settings, before, `input ${watched.join(' or ')}`)
      if (signal.aborted) throw signal.reason as Error
      if (begun.over.aborted) throw new Error('the link was lost')
      member.heard()
      const common = { board: begun.board, doubtful: begun.doubtful, signal: begun.over }
      const read = async () => {
        const found = await readInputs(begun.board, watched)
        return found instanceof Map ? found : null
      }
      sensors.found(before)
      begun.inputs = watchInputs({
        platform,
        signal: begun.over,
        read,
        pollMs: settings.pollMs,
        before,
        onChange: sensors.changed,
      })
      void auditOutputs({ ...common, timers, outputs, release: settings.output, alone: watched.length === 0, onFault })
    } catch (error) {
      begun.end('not identified')
      throw error
    }
    return {
      description: `Modbus ${framingOf(settings).toUpperCase()} unit ${settings.unit} at ${linkKey(settings.link)}`,
    }
  }

  function release(signal: AbortSignal): RunningCommand {
    const current = session
    if (!current?.inputs || current.over.aborted) {
      return settled(result('failed', false, 'not_ready', NOT_CONNECTED))
    }
    const { board, inputs, over, doubtful } = current
    const { output, pulseMs } = settings
    if (output === undefined) return settled(result('failed', false, 'not_supported', NO_OUTPUT))
    const pulse: Board['writeCoil'] = (coil, on, options) =>
      on && settings.hardwarePulse ? board.flashCoil(coil, pulseMs, options) : board.writeCoil(coil, on, options)
    const switchOutput: SwitchOutput = async (on, options) => {
      const answer = switchAnswer(await pulse(output, on, options))
      if (answer.kind === 'done') doubtful.delete(output)
      else doubtful.add(output)
      return answer
    }
    const onPulse = () => {
      sensors.released()
      return outputs.pulse()
    }
    // The lock shuts again as soon as the door is open; a deactivator is armed for one deactivation.
    const endInput = door?.input ?? (interlock && confirmInput)
    const feedbackInput = interlock?.armedInput
    return startRelease({
      switchOutput,
      inputs,
      over,
      clock,
      timers,
      output,
      confirmInput,
      pulseMs,
      endInput,
      feedbackInput,
      signal,
      isHeldOpen: () => outputs.isHeldOpen,
      onPulse,
      onFault,
      deviceEnds: settings.hardwarePulse !== undefined,
    })
  }

  async function switchOff(signal: AbortSignal): Promise<void> {
    const board = session?.board
    await Promise.all(outputs.toSwitchOff().map((output) => board?.writeCoil(output, false, { signal })))
  }

  function letGo(): void {
    session?.end('closed')
    line.leave()
    noise.stop()
    sensors.stop()
    queue.end()
  }

  const { execute, close } = outputCommands({
    platform,
    outputs,
    onEmergency: sensors.heldOpen,
    release: (_command, signal) => release(signal),
    sayGoodbye: switchOff,
    letGo,
  })
  return {
    connect,
    identify,
    untilLost: () => session?.lost ?? Promise.resolve('the link was lost'),
    execute,
    events: queue.events,
    close,
  }
}

/** Relay and input boards: detachers, locks, deactivators with a contact, sirens, lamps, passage sensors. */
export const modbusDriver: Driver<ModbusSettings, typeof ModbusSettings> = {
  name: 'modbus',
  settings: ModbusSettings,
  linkUse: linkUseOf,
  claims: claimsOf,
  capabilities: modbusCapabilities,
  open: openModbus,
}

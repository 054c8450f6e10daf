import { setMaxListeners } from 'node:events'
import { deadline } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'
import { commandQueue } from './command-queue.ts'
import type { RunningCommand } from './command-queue.ts'
import { result } from './device.ts'
import type { DeviceCommand, ProtectionDevice } from './device.ts'
import { eitherSignal } from './either-signal.ts'
import type { WantedOutputs } from './wanted-outputs.ts'

const MOST_RELEASES_WAITING = 8
const CLOSE_WITHIN_MS = 2_000

export interface OutputCommandsOptions {
  readonly platform: Platform
  readonly outputs: WantedOutputs
  /** An emergency opens the device, or ends. */
  onEmergency?(open: boolean): void
  /** Begins one release; none other runs meanwhile. */
  release(command: DeviceCommand & { kind: 'release' }, signal: AbortSignal): RunningCommand
  /** Switches off what can still be reached, now that nothing runs any more; given up when `signal` aborts. */
  sayGoodbye(signal: AbortSignal): Promise<unknown>
  /** Lets go of the link and of everything that runs by itself. */
  letGo(): void
}

/**
 * What every device with outputs of its own makes of commands, until it is closed: a signal is written at once and past
 * whatever waits; releases wait for each other; who closes ends them, switches off what can be reached, and lets go.
 */
export function outputCommands({
  platform,
  outputs,
  onEmergency,
  release,
  sayGoodbye,
  letGo,
}: OutputCommandsOptions): Pick<ProtectionDevice, 'execute' | 'close'> {
  const releases = commandQueue(MOST_RELEASES_WAITING)
  const closing = new AbortController()
  // Every command that waits listens for the end of the device; the queue bounds them.
  setMaxListeners(0, closing.signal)

  return {
    async execute(command, signal) {
      if (closing.signal.aborted) return result('failed', false, 'not_ready', 'the device is being closed')
      if (command.kind === 'emergency') {
        onEmergency?.(command.open)
        return outputs.emergency(command.open, command.silent)
      }
      if (command.kind === 'signal') return outputs.signal(command.signal, command.seconds)
      const both = eitherSignal(signal, closing.signal)
      const told = await releases.run(both.signal, () => {
        const running = release(command, both.signal)
        void running.finished.then(both.done)
        return running
      })
      if (!told.commanded) both.done()
      return told
    },
    async close() {
      closing.abort(new DOMException('the device is being closed', 'AbortError'))
      outputs.allOff()
      const limit = deadline(platform.timers, CLOSE_WITHIN_MS)
      const outOfTime = new Promise<void>((resolve) =>
        limit.signal.addEventListener('abort', () => resolve(), { once: true }),
      )
      await Promise.race([releases.idle().then(() => sayGoodbye(limit.signal)), outOfTime])
      limit.done()
      letGo()
    },
  }
}

import { setMaxListeners } from 'node:events'
import type { Platform } from '../../policy/platform.ts'
import type { LinkSettings } from '../transports/link-settings.ts'
import type { LinkProtocol, Membership, SharedLinks, Speaker } from '../transports/shared-links.ts'
import type { RunningCommand } from './command-queue.ts'
import { DeviceCommands, settled } from './device-commands.ts'
import type { ReleaseCommand } from './device-commands.ts'
import { deviceLink } from './device-link.ts'
import type { DeviceLink } from './device-link.ts'
import { result } from './device.ts'
import type { CommandResult, DeviceCommand, DeviceEvent, DeviceIdentity, ProtectionDevice, Signal } from './device.ts'
import { eitherSignal } from './either-signal.ts'
import type { EventQueue } from './event-queue.ts'
import { openSession } from './session.ts'

/** From one `identify` to the loss of what it found. */
export interface LinkSession<S extends Speaker> {
  readonly speaker: S
  /** Aborts when the session is over. */
  readonly over: AbortSignal
  /** The device answered: the link is good. */
  heard(): void
  /** The device does not answer any more: the session is over, and the link when nobody else on it answers. */
  silent(detail: string): void
  /** The session is over for another reason. */
  end(reason: string): void
}

export interface LinkDeviceOptions<S extends Speaker> {
  readonly link: LinkSettings
  readonly links: SharedLinks
  readonly platform: Platform
  readonly queue: EventQueue
  readonly protocol: LinkProtocol<S>
  /** Asks the device who it is, sets it up, and starts what goes on until `session.over`. Rejects when it does not fit. */
  begin(session: LinkSession<S>, signal: AbortSignal): Promise<DeviceIdentity>
  /** Begins a release on a device that is ready; after `signal` nothing begins. Left out, commands fail with "the device has no such output". */
  release?(command: ReleaseCommand, session: LinkSession<S>, signal: AbortSignal): RunningCommand
  /** Sound or light; left out for a device without. */
  signal?(signal: Signal, seconds: number): Promise<CommandResult>
  /** What an emergency changes; left out for a device without outputs. */
  emergency?(open: boolean, silent: boolean): Promise<CommandResult>
  /** Outputs off; no release runs any more. `session` is null when the device is not there. */
  switchOff?(session: LinkSession<S> | null): Promise<void>
  /** Called when nothing is used any more. */
  stopped?(): void
}

/** The life of a device on a link, the same for every protocol: joins, sessions, commands, closing. */
export function linkDevice<S extends Speaker>(options: LinkDeviceOptions<S>): ProtectionDevice {
  return new LinkDevice(options)
}

class LinkDevice<S extends Speaker> implements ProtectionDevice {
  readonly events: AsyncIterable<DeviceEvent>
  readonly #options: LinkDeviceOptions<S>
  readonly #line: DeviceLink<S>
  readonly #commands: DeviceCommands
  #session: LinkSession<S> | null = null
  #ready = false
  #lost = Promise.resolve('the link was lost')

  constructor(options: LinkDeviceOptions<S>) {
    this.#options = options
    this.events = options.queue.events
    this.#line = deviceLink(options.links, options.link, options.protocol, (reason) => this.#session?.end(reason))
    this.#commands = new DeviceCommands({
      platform: options.platform,
      release: options.release && ((command, signal) => this.#release(command, signal)),
      signal: (signal, seconds) => options.signal?.(signal, seconds),
      emergency: (open, silent) => options.emergency?.(open, silent),
      switchOff: () => options.switchOff?.(this.#session?.over.aborted ? null : this.#session),
      letGo: () => this.#letGo(),
    })
  }

  async connect(signal: AbortSignal, onFailure: (detail: string) => void): Promise<void> {
    this.#session?.end('connected anew')
    this.#ready = false
    await this.#line.connect(signal, onFailure)
  }

  async identify(signal: AbortSignal): Promise<DeviceIdentity> {
    const member = this.#line.joined()
    this.#session?.end('identified anew')
    this.#ready = false
    const begun = this.#beginSession(member)
    this.#session = begun
    const either = eitherSignal(signal, begun.over)
    try {
      const identity = await this.#options.begin(begun, either.signal)
      if (either.signal.aborted) throw either.signal.reason as Error
      member.heard()
      this.#ready = true
      return identity
    } catch (error) {
      begun.end('not identified')
      throw error
    } finally {
      either.done()
    }
  }

  untilLost(): Promise<string> {
    return this.#lost
  }

  execute(command: DeviceCommand, signal: AbortSignal): Promise<CommandResult> {
    return this.#commands.execute(command, signal)
  }

  close(): Promise<void> {
    return this.#commands.close()
  }

  #beginSession({ speaker, heard, silent }: Membership<S>): LinkSession<S> {
    const { over, lost, end } = openSession()
    setMaxListeners(0, over)
    this.#lost = lost
    const onSilent = (detail: string) => {
      end(detail)
      silent(detail)
    }
    return { speaker, over, heard, silent: onSilent, end }
  }

  #release(command: ReleaseCommand, signal: AbortSignal): RunningCommand {
    const session = this.#session
    const usable = this.#ready && session && !session.over.aborted
    const running = usable ? this.#options.release?.(command, session, signal) : undefined
    return running ?? settled(result('failed', false, 'not_ready', 'the device is not connected'))
  }

  #letGo(): void {
    this.#session?.end('closed')
    this.#line.leave()
    this.#options.stopped?.()
    this.#options.queue.end()
  }
}

import { setMaxListeners } from 'node:events'
import type { Platform } from '../../policy/platform.ts'
import type { LinkSettings } from '../transports/link-settings.ts'
import type { LinkProtocol, Membership, SharedLinks, ProtocolClient } from '../transports/shared-links.ts'
import { type RunningCommand, DeviceCommands, completedCommand, type ReleaseCommand } from './device-commands.ts'
import { deviceLink, type DeviceLink, openSession } from './device-link.ts'
import { result } from './device.ts'
import type { CommandResult, DeviceCommand, DeviceEvent, DeviceIdentity, ProtectionDevice, Signal } from './device.ts'
import { eitherSignal } from './input-watch.ts'
import type { EventQueue } from './event-queue.ts'

/** A session lasts from `identify` until the device is lost. */
export interface LinkSession<S extends ProtocolClient> {
  readonly client: S
  /** Aborts when the session is over. */
  readonly over: AbortSignal
  /** Call this function when the device has answered. */
  markResponsive(): void
  /**
   * Call this function when the device does not answer. The session then ends. The link also ends if no other device
   * on the link answers.
   */
  markUnresponsive(detail: string): void
  /** Ends the session for a reason other than silence. */
  end(reason: string): void
}

export interface LinkDeviceOptions<S extends ProtocolClient> {
  readonly link: LinkSettings
  readonly links: SharedLinks
  readonly platform: Platform
  readonly queue: EventQueue
  readonly protocol: LinkProtocol<S>
  /** Default: 5,000; see `ProtectionDevice`. */
  readonly setUpLimitMs?: number
  /**
   * Identifies and configures the device, and starts its background tasks, which end when `session.over` aborts.
   * Rejects if the device does not fit the settings.
   */
  begin(session: LinkSession<S>, signal: AbortSignal): Promise<DeviceIdentity>
  /**
   * Begins a release on a ready device. After `signal` aborts, the release must not move the device. Undefined for a
   * device that releases nothing.
   */
  release?(command: ReleaseCommand, session: LinkSession<S>, signal: AbortSignal): RunningCommand
  /** Switches a siren or lamp. Undefined for a device without sirens and lamps. */
  signal?(signal: Signal, seconds: number): Promise<CommandResult>
  /**
   * Opens the output (`open`) and silences the sirens (`silent`) during an emergency, and undoes both after the
   * emergency. Undefined for a device without outputs.
   */
  emergency?(open: boolean, silent: boolean): Promise<CommandResult>
  /**
   * Called by `close` after the last release has ended. Switches the outputs off. `session` is null if the device is
   * not connected.
   */
  switchOff?(session: LinkSession<S> | null): Promise<void>
  /** Called at the end of `close`, before the events end. */
  stopped?(): void
}

/**
 * Makes a device on a link. `linkDevice` handles links, sessions, commands and closing, which are the same for all
 * protocols.
 */
export function linkDevice<S extends ProtocolClient>(options: LinkDeviceOptions<S>): ProtectionDevice {
  return new LinkDevice(options)
}

class LinkDevice<S extends ProtocolClient> implements ProtectionDevice {
  readonly events: AsyncIterable<DeviceEvent>
  readonly setUpLimitMs: number | undefined
  readonly #options: LinkDeviceOptions<S>
  readonly #line: DeviceLink<S>
  readonly #commands: DeviceCommands
  #session: LinkSession<S> | null = null
  #ready = false
  #lost = Promise.resolve('the link was lost')

  constructor(options: LinkDeviceOptions<S>) {
    this.#options = options
    this.events = options.queue.events
    this.setUpLimitMs = options.setUpLimitMs
    this.#line = deviceLink(options.links, options.link, options.protocol, (reason) => this.#session?.end(reason))
    this.#commands = new DeviceCommands({
      platform: options.platform,
      release: options.release && ((command, signal) => this.#release(command, signal)),
      signal: (signal, seconds) => options.signal?.(signal, seconds),
      emergency: (open, silent) => options.emergency?.(open, silent),
      switchOff: () => options.switchOff?.(this.#session?.over.aborted ? null : this.#session),
      dispose: () => this.#dispose(),
    })
  }

  async connect(signal: AbortSignal, onFailure: (detail: string) => void): Promise<void> {
    this.#session?.end('reconnected')
    this.#ready = false
    await this.#line.connect(signal, onFailure)
  }

  async identify(signal: AbortSignal): Promise<DeviceIdentity> {
    const member = this.#line.joined()
    this.#session?.end('identified again')
    this.#ready = false
    const session = this.#beginSession(member)
    this.#session = session
    const either = eitherSignal(signal, session.over)
    try {
      const identity = await this.#options.begin(session, either.signal)
      if (either.signal.aborted) throw either.signal.reason as Error
      member.markResponsive()
      this.#ready = true
      return identity
    } catch (error) {
      session.end('not identified')
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

  #beginSession({ client, markResponsive, markUnresponsive }: Membership<S>): LinkSession<S> {
    const { over, lost, end } = openSession()
    setMaxListeners(0, over)
    this.#lost = lost
    const onSilent = (detail: string) => {
      end(detail)
      markUnresponsive(detail)
    }
    return { client, over, markResponsive, markUnresponsive: onSilent, end }
  }

  #release(command: ReleaseCommand, signal: AbortSignal): RunningCommand {
    const session = this.#session
    const usable = this.#ready && session && !session.over.aborted
    const running = usable ? this.#options.release?.(command, session, signal) : undefined
    return running ?? completedCommand(result('failed', false, 'not_ready', 'the device is not connected'))
  }

  #dispose(): void {
    this.#session?.end('closed')
    this.#line.leave()
    this.#options.stopped?.()
    this.#options.queue.end()
  }
}

import { setMaxListeners } from 'node:events'
import { deadline } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'
import type { LinkSettings } from '../transports/link-settings.ts'
import type { LinkProtocol, Membership, SharedLinks, Speaker } from '../transports/shared-links.ts'
import { commandQueue } from './command-queue.ts'
import type { RunningCommand } from './command-queue.ts'
import { deviceLink } from './device-link.ts'
import { result } from './device.ts'
import type { CommandResult, DeviceCommand, DeviceIdentity, ProtectionDevice, Signal } from './device.ts'
import { eitherSignal } from './either-signal.ts'
import type { EventQueue } from './event-queue.ts'

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
  /** Begins a release on a device that is ready; after `signal` nothing begins. Left out for a device that releases nothing. */
  release?(
    command: Extract<DeviceCommand, { kind: 'release' }>,
    session: LinkSession<S>,
    signal: AbortSignal,
  ): RunningCommand
  /** Sound or light; left out for a device without. */
  signal?(signal: Signal, seconds: number): Promise<CommandResult>
  /** What an emergency changes; left out for a device without outputs. */
  emergency?(open: boolean, silent: boolean): Promise<CommandResult>
  /** Outputs off; no release runs any more. `session` is null when the device is not there. */
  switchOff?(session: LinkSession<S> | null): Promise<void>
  /** Called when nothing is used any more. */
  stopped?(): void
}

const MOST_RELEASES_WAITING = 8
const CLOSE_WITHIN_MS = 2_000

/** A command that ends without anything having begun. */
export function settled(told: CommandResult): RunningCommand {
  return { outcome: Promise.resolve(told), finished: Promise.resolve() }
}

/** The life of a device on a link, the same for every protocol: joins, sessions, one release at a time, closing. */
export function linkDevice<S extends Speaker>(options: LinkDeviceOptions<S>): ProtectionDevice {
  const { platform, queue } = options
  const releases = commandQueue(MOST_RELEASES_WAITING)
  const closing = new AbortController()
  // Every command that waits listens for the end of the device; the queue bounds them.
  setMaxListeners(0, closing.signal)
  const line = deviceLink(options.links, options.link, options.protocol, (reason) => session?.end(reason))
  let session: LinkSession<S> | null = null
  let ready = false
  let lost = Promise.resolve('the link was lost')

  function beginSession(member: Membership<S>): LinkSession<S> {
    let tell = (_reason: string) => {}
    lost = new Promise((resolve) => {
      tell = resolve
    })
    const over = new AbortController()
    setMaxListeners(0, over.signal)
    const end = (reason: string) => {
      if (over.signal.aborted) return
      over.abort(new DOMException(reason, 'AbortError'))
      tell(reason)
    }
    const silent = (detail: string) => {
      end(detail)
      member.silent(detail)
    }
    return { speaker: member.speaker, over: over.signal, heard: member.heard, silent, end }
  }

  async function connect(signal: AbortSignal, onFailure: (detail: string) => void): Promise<void> {
    session?.end('connected anew')
    ready = false
    await line.connect(signal, onFailure)
  }

  async function identify(signal: AbortSignal): Promise<DeviceIdentity> {
    const member = line.joined()
    session?.end('identified anew')
    ready = false
    const begun = beginSession(member)
    session = begun
    const either = eitherSignal(signal, begun.over)
    try {
      const identity = await options.begin(begun, either.signal)
      if (either.signal.aborted) throw either.signal.reason as Error
      member.heard()
      ready = true
      return identity
    } catch (error) {
      begun.end('not identified')
      throw error
    } finally {
      either.done()
    }
  }

  async function release(
    begin: NonNullable<LinkDeviceOptions<S>['release']>,
    command: Extract<DeviceCommand, { kind: 'release' }>,
    signal: AbortSignal,
  ): Promise<CommandResult> {
    const both = eitherSignal(signal, closing.signal)
    const told = await releases.run(both.signal, () => {
      const usable = ready && session && !session.over.aborted
      const running =
        usable && session
          ? begin(command, session, both.signal)
          : settled(result('failed', false, 'not_ready', 'the device is not connected'))
      void running.finished.then(both.done)
      return running
    })
    if (!told.commanded) both.done()
    return told
  }

  async function close(): Promise<void> {
    closing.abort(new DOMException('the device is being closed', 'AbortError'))
    const limit = deadline(platform.timers, CLOSE_WITHIN_MS)
    const outOfTime = new Promise<void>((resolve) =>
      limit.signal.addEventListener('abort', () => resolve(), { once: true }),
    )
    const inOrder = releases.idle().then(() => options.switchOff?.(session && !session.over.aborted ? session : null))
    await Promise.race([inOrder, outOfTime])
    limit.done()
    session?.end('closed')
    line.leave()
    options.stopped?.()
    queue.end()
  }

  return {
    connect,
    identify,
    untilLost: () => lost,
    async execute(command, signal) {
      if (closing.signal.aborted) return result('failed', false, 'not_ready', 'the device is being closed')
      if (command.kind === 'release' && options.release) return release(options.release, command, signal)
      const done =
        command.kind === 'signal'
          ? options.signal?.(command.signal, command.seconds)
          : command.kind === 'emergency'
            ? options.emergency?.(command.open, command.silent)
            : undefined
      return done ?? result('failed', false, 'not_supported', 'the device has no such output')
    },
    events: queue.events,
    close,
  }
}

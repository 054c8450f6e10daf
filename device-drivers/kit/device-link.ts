import type { AnyLink } from '../transports/link-settings.ts'
import type { LinkProtocol, Membership, SharedLinks, ProtocolClient } from '../transports/shared-links.ts'

/** A session lasts from `identify` until the device is lost. */
export interface Session {
  /** Aborts when the session is over. */
  readonly over: AbortSignal
  /** Resolves with the reason when the session is over. */
  readonly lost: Promise<string>
  end(reason: string): void
}

/** Makes a session. Only the first call of `end` has an effect. */
export function openSession(): Session {
  let resolveLost = (_reason: string) => {}
  const lost = new Promise<string>((resolve) => {
    resolveLost = resolve
  })
  const over = new AbortController()
  return {
    over: over.signal,
    lost,
    end(reason) {
      if (over.signal.aborted) return
      over.abort(new DOMException(reason, 'AbortError'))
      resolveLost(reason)
    },
  }
}

/**
 * One device's use of its link, which several devices may share. Drivers get this object from `linkDevice` or
 * `restClient`.
 */
export interface DeviceLink<S extends ProtocolClient> {
  /** Null before `connect`, after `leave`, and after the link was lost. */
  readonly member: Membership<S> | null
  /** Leaves the current link, then joins the link again. Retries until `signal` aborts, and reports each failure. */
  connect(signal: AbortSignal, onFailure: (detail: string) => void): Promise<Membership<S>>
  /** Returns `member`. If the link was lost, throws the reason. */
  joined(): Membership<S>
  /** Resolves with the reason when the link is lost. */
  lost(): Promise<string>
  leave(): void
}

const LOST = 'the link was lost'

/**
 * Makes the `DeviceLink` of a device; `connect` joins the link. `onLost` is called when the link is lost, but not after
 * `leave`.
 */
export function deviceLink<S extends ProtocolClient>(
  links: SharedLinks,
  link: AnyLink,
  protocol: LinkProtocol<S>,
  onLost: (reason: string) => void = () => {},
): DeviceLink<S> {
  let member: Membership<S> | null = null
  let lost = Promise.resolve(LOST)
  let why = LOST

  function leave(): void {
    const left = member
    member = null
    lost = Promise.resolve(LOST)
    why = LOST
    left?.leave()
  }

  return {
    get member() {
      return member
    },
    async connect(signal, onFailure) {
      leave()
      const joined = await links.join(link, protocol, signal, onFailure)
      member = joined
      lost = joined.lost
      void joined.lost.then((reason) => {
        if (member !== joined) return
        member = null
        why = reason
        onLost(reason)
      })
      return joined
    },
    joined() {
      if (!member) throw new Error(why)
      return member
    },
    lost: () => lost,
    leave,
  }
}

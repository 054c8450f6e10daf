import type { AnyLink } from '../transports/link-settings.ts'
import type { LinkProtocol, Membership, SharedLinks, ProtocolClient } from '../transports/shared-links.ts'

/** The place of one device on its link. Every driver has one: `linkDevice` and `restClient` bring their own. */
export interface DeviceLink<S extends ProtocolClient> {
  /** Null before `connect`, and after the link was lost or left. */
  readonly member: Membership<S> | null
  /** Leaves the link that there was and joins again; tries for ever, telling each failure, until `signal` aborts. */
  connect(signal: AbortSignal, onFailure: (detail: string) => void): Promise<Membership<S>>
  /** The member; throws with the reason if the link was lost. */
  joined(): Membership<S>
  /** Resolves with the reason when there is no member any more. */
  lost(): Promise<string>
  leave(): void
}

const LOST = 'the link was lost'

/** A device that has not joined its link yet. `onLost` is not called for a link that was left. */
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

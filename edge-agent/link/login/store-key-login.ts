import type { Clock } from '../../../policy/platform.ts'
import type { StoreKeys } from '../../identity/store-keys.ts'
import type { Trust } from '../../trust/trust.ts'

/** Logs in again when the policy names a store key that the agent does not hold, as after another agent was revoked. */
export interface StoreKeyLogin {
  /** Milliseconds until the next login for the key is due. Undefined: the agent holds the key. */
  readonly waitMs: number | undefined
  run(): Promise<void>
}

export interface StoreKeyLoginParts {
  clock: Pick<Clock, 'elapsed'>
  trust: Pick<Trust, 'policy'>
  keys: Pick<StoreKeys, 'find'>
  login(): Promise<unknown>
}

/** The login was not answered, or the key was replaced in between: tries again after, ms. */
const RETRY_MS = 5_000

/** No login was made for any key yet. */
export function storeKeyLogin({ clock, trust, keys, login }: StoreKeyLoginParts): StoreKeyLogin {
  let requested: { id: string; atMs: number } | undefined

  function missing(): string | undefined {
    const id = trust.policy?.storeKey
    return keys.find(id) === undefined ? id : undefined
  }

  return {
    get waitMs() {
      const id = missing()
      if (id === undefined) return undefined
      return id === requested?.id ? Math.max(0, requested.atMs + RETRY_MS - clock.elapsed()) : 0
    },
    async run() {
      const id = missing()
      if (id === undefined) return
      requested = { id, atMs: clock.elapsed() }
      // The present login stays valid, whatever comes of this one.
      await login()
    },
  }
}

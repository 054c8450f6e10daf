import type { Clock } from '../../../policy/platform.ts'
import type { StoreKeys } from '../../identity/store-keys.ts'
import type { Trust } from '../../trust/trust.ts'

/**
 * Logs in again if the policy names a store key that the agent lacks. The store key changes when an agent is revoked.
 */
export interface StoreKeyLogin {
  /** Time until the next login for the key is due, ms. Undefined if the agent holds the key. */
  readonly waitMs: number | undefined
  run(): Promise<void>
}

export interface StoreKeyLoginParts {
  clock: Pick<Clock, 'elapsed'>
  trust: Pick<Trust, 'policy'>
  keys: Pick<StoreKeys, 'find'>
  login(): Promise<unknown>
}

/** Delay before the next login, if the last one did not deliver the key, ms. */
const RETRY_MS = 5_000

/** Creates the check. The first login for a key is due at once. */
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
      // If this login fails, the access token of the last login stays valid.
      await login()
    },
  }
}

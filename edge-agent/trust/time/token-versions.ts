import type { AgentClock } from './clock.ts'

/** Under which versions a genuine token was issued, and when. */
export interface IssuedUnder {
  readonly policy: number
  /** Receipts do not name it. */
  readonly keys?: number
  readonly issuedS: number
}

/**
 *   cloud ──✗── agent         a frozen agent cannot know that there is something newer,
 *     └─ token ─ shopper ──▲  and every shopper's token says under which versions it was issued
 *
 * Kept in memory: the next shopper says it again.
 */
export interface ToldVersions {
  hear(issued: IssuedUnder): void
  /** Whether something newer than these was in force after this, the last that the cloud said itself (ms). */
  areNewer(have: { readonly policy: number | undefined; readonly keys: number | undefined }, heardMs: number): boolean
  /** Whoever signed may have stolen the key. */
  forget(): void
}

interface Told {
  readonly ver: number
  readonly issuedS: number
}

/** How far clocks may lie apart (contracts §4), s. */
const CLOCKS_DIFFER_S = 60

/** Nothing was told yet. */
export function toldVersions(clock: Pick<AgentClock, 'now'>): ToldVersions {
  const told: { policy?: Told | undefined; keys?: Told | undefined } = {}

  /** The latest word counts, and not the highest: a cloud that was restored may begin lower. */
  function note(kind: 'policy' | 'keys', ver: number | undefined, issuedS: number): void {
    if (ver !== undefined && issuedS >= (told[kind]?.issuedS ?? 0)) told[kind] = { ver, issuedS }
  }

  return {
    hear({ policy, keys, issuedS }) {
      // Of what a clock issued that was ahead nobody knows when that was.
      if (issuedS > clock.now().nowMs / 1_000 + CLOCKS_DIFFER_S) return
      note('policy', policy, issuedS)
      note('keys', keys, issuedS)
    },
    areNewer(have, heardMs) {
      // Within one second nobody knows which came first.
      const isNewer = (of: Told | undefined, ver: number | undefined) =>
        of !== undefined && (of.issuedS + 1) * 1_000 > heardMs && of.ver > (ver ?? 0)
      return isNewer(told.policy, have.policy) || isNewer(told.keys, have.keys)
    },
    forget: () => void (told.policy = told.keys = undefined),
  }
}

import type { AgentClock } from './clock.ts'

/** Under which versions a genuine token was issued, and when. */
export interface IssuedVersions {
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
export interface TokenVersions {
  note(issued: IssuedVersions): void
  /** Whether something newer than these was in force after this, the last that the cloud said itself (ms). */
  areNewer(have: { readonly policy: number | undefined; readonly keys: number | undefined }, heardMs: number): boolean
  /** Whoever signed may have stolen the key. */
  clear(): void
}

interface IssuedVersion {
  readonly ver: number
  readonly issuedS: number
}

/** How far clocks may lie apart (ADR 0015), s. */
const CLOCKS_DIFFER_S = 60

/** Nothing was told yet. */
export function tokenVersions(clock: Pick<AgentClock, 'now'>): TokenVersions {
  const told: { policy?: IssuedVersion | undefined; keys?: IssuedVersion | undefined } = {}

  /** The latest word counts, and not the highest: a cloud that was restored may begin lower. */
  function note(kind: 'policy' | 'keys', ver: number | undefined, issuedS: number): void {
    if (ver !== undefined && issuedS >= (told[kind]?.issuedS ?? 0)) told[kind] = { ver, issuedS }
  }

  return {
    note({ policy, keys, issuedS }) {
      // Of what a clock issued that was ahead nobody knows when that was.
      if (issuedS > clock.now().nowMs / 1_000 + CLOCKS_DIFFER_S) return
      note('policy', policy, issuedS)
      note('keys', keys, issuedS)
    },
    areNewer(have, heardMs) {
      // Within one second nobody knows which came first.
      const isNewer = (of: IssuedVersion | undefined, ver: number | undefined) =>
        of !== undefined && (of.issuedS + 1) * 1_000 > heardMs && of.ver > (ver ?? 0)
      return isNewer(told.policy, have.policy) || isNewer(told.keys, have.keys)
    },
    clear: () => void (told.policy = told.keys = undefined),
  }
}

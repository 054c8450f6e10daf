import type { AgentClock } from './clock.ts'

/** Document versions that a verified token or receipt names, and the issue time of the token or receipt. */
export interface IssuedVersions {
  readonly policy: number
  /** Absent for receipts, which name no key set. */
  readonly keys?: number
  readonly issuedS: number
}

/**
 * Document versions that the latest tokens and receipts name. An attacker may withhold documents from the agent, but
 * tokens reach the agent through shoppers. The versions are in memory only, because the next token names them again.
 */
export interface TokenVersions {
  note(issued: IssuedVersions): void
  /** True if a token issued after the last cloud contact (`lastContactMs`) names a newer version than `have`. */
  areNewer(
    have: { readonly policy: number | undefined; readonly keys: number | undefined },
    lastContactMs: number,
  ): boolean
  /** Discards all versions, because a signing key was compromised. */
  clear(): void
}

interface IssuedVersion {
  readonly ver: number
  readonly issuedS: number
}

/** Maximum difference of clocks, s (ADR trusted-time). */
const CLOCKS_DIFFER_S = 60

/** Creates an empty list of versions. */
export function tokenVersions(clock: Pick<AgentClock, 'now'>): TokenVersions {
  const newest: { policy?: IssuedVersion | undefined; keys?: IssuedVersion | undefined } = {}

  /**
   * Stores the version of the latest token, not the highest version, because a restored cloud may use lower versions.
   */
  function note(kind: 'policy' | 'keys', ver: number | undefined, issuedS: number): void {
    if (ver !== undefined && issuedS >= (newest[kind]?.issuedS ?? 0)) newest[kind] = { ver, issuedS }
  }

  return {
    note({ policy, keys, issuedS }) {
      // An issue time in the future comes from a wrong clock.
      if (issuedS > clock.now().nowMs / 1_000 + CLOCKS_DIFFER_S) return
      note('policy', policy, issuedS)
      note('keys', keys, issuedS)
    },
    areNewer(have, lastContactMs) {
      // Issue times are rounded down to whole seconds, so one second is added.
      const isNewer = (of: IssuedVersion | undefined, ver: number | undefined) =>
        of !== undefined && (of.issuedS + 1) * 1_000 > lastContactMs && of.ver > (ver ?? 0)
      return isNewer(newest.policy, have.policy) || isNewer(newest.keys, have.keys)
    },
    clear: () => void (newest.policy = newest.keys = undefined),
  }
}

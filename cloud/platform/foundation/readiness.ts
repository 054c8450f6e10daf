import { sql } from 'kysely'
import { pause, type Platform } from '../../../policy/platform.ts'
import type { CertificateStatus } from './config.ts'
import type { Db, Replica, ReplicaStatus } from '../persistence/database.ts'

/** Limit for each check, ms: load balancers poll every few seconds. */
const CHECK_LIMIT_MS = 2_000
/** A result is reused for this time, ms, because anyone may call `/readyz`. */
const RESULT_LIFE_MS = 1_000

/** A part that is not ready, and why. */
interface Unready {
  check: 'database' | 'disk' | 'clock' | 'keys' | 'broker' | 'process'
  reason: string
}

export interface ReadinessParts {
  platform: Platform
  reads: Db
  replica?: Replica | undefined
  authority: {
    readonly clock: { untrustedReason(): string | null }
    readonly freshnessSigner: { readonly kid: string }
  }
  /** Rejects if the data folder cannot be written. */
  probeDisk(): Promise<void>
  isBrokerListening(): boolean
  /** Undefined if this process serves no TLS. */
  certificate?: (() => CertificateStatus) | undefined
}

/** Reports whether this process can serve callers. */
export interface Readiness {
  /** The parts that are not ready; empty if all parts are ready. Takes 2 s at most. */
  check(): Promise<readonly Unready[]>
  /** Makes `check` report this process as not ready, because it will stop. The process still serves. */
  leave(): void
  /**
   * State of the replica, if there is one. If the replica fails, the primary answers all reads, so the cloud stays
   * ready.
   */
  replica(): ReplicaStatus | undefined
  /** State of the TLS certificate, if there is one. A bad or expired certificate does not make the cloud unready. */
  certificate(): CertificateStatus | undefined
}

/** Checks everything that each call needs. Use `/healthz`, not this check, to decide about a restart. */
export function readiness(parts: ReadinessParts): Readiness {
  const { platform, reads, replica, authority, probeDisk, isBrokerListening } = parts
  let isLeaving = false
  let latest: { atMs: number; result: Promise<readonly Unready[]> } | undefined

  async function inTime(check: Unready['check'], probe: Promise<unknown>): Promise<Unready[]> {
    const limit = new AbortController()
    const tooLate = pause(platform.timers, CHECK_LIMIT_MS, limit.signal).then(
      () => ({ check, reason: `did not answer within ${CHECK_LIMIT_MS / 1_000} s` }),
      () => undefined,
    )
    const failure = probe.then(
      () => undefined,
      (error: unknown) => ({ check, reason: error instanceof Error ? error.message : 'failed' }),
    )
    const found = await Promise.race([failure, tooLate])
    limit.abort()
    return found ? [found] : []
  }

  async function checkAll(): Promise<readonly Unready[]> {
    const untrusted = authority.clock.untrustedReason()
    const [database, disk] = await Promise.all([
      inTime('database', sql`select 1`.execute(reads)),
      inTime('disk', probeDisk()),
    ])
    return [
      ...database,
      ...disk,
      ...(untrusted === null ? [] : [{ check: 'clock' as const, reason: untrusted }]),
      ...(authority.freshnessSigner.kid ? [] : [{ check: 'keys' as const, reason: 'no signing key is loaded' }]),
      ...(isBrokerListening() ? [] : [{ check: 'broker' as const, reason: 'the broker does not listen' }]),
    ]
  }

  return {
    leave: () => void (isLeaving = true),
    check() {
      if (isLeaving) return Promise.resolve([{ check: 'process', reason: 'it is stopping' }])
      const nowMs = platform.clock.elapsed()
      if (latest === undefined || nowMs - latest.atMs >= RESULT_LIFE_MS) latest = { atMs: nowMs, result: checkAll() }
      return latest.result
    },
    replica: () => replica?.status(),
    certificate: () => parts.certificate?.(),
  }
}

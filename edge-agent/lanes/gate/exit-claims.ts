import type { TagName } from '../../../device-drivers/drivers/device.ts'
import type { Cancel, Platform } from '../../../policy/platform.ts'
import type { ClaimExit } from '../../decisions/claim-exit.ts'
import { LedgerFull } from '../../ledger/file/commit.ts'
import type { Log } from '../../log.ts'
import { gateTagOf } from './tags/gate-tag.ts'

/**
 * Claims the exit rights of paid tags that have left, one tag at a time. If a claim may succeed later, retries it every
 * 15 s until 4½ minutes after the exit. Examples are an unreachable cloud, a leased right and a full disk. Requests and
 * signals never wait for these claims.
 */
export interface ExitClaims {
  /** Adds a tag to the queue. `leftMs`: trusted time at which the tag left. */
  add(deviceId: string, tag: TagName, leftMs: number): void
  /** Drops waiting claims. Resolves when the running claim is durable. */
  stop(): Promise<void>
}

export interface ExitClaimsParts {
  platform: Platform
  /** Trusted time, ms. */
  nowMs(): number
  claim: ClaimExit
  log: Log
}

const RETRY_MS = 15_000
/** Maximum time between exit and claim, ms. The cloud records older requests but does not grant them (ADR 0009). */
const CLAIM_TIMEOUT_MS = 270_000
const WAITING_LIMIT = 2_000
/** Time in which a tag that leaves again causes no second claim, ms. */
const REMEMBERED_MS = 3_600_000
const REMEMBERED_LIMIT = 10_000

interface Waiting {
  deviceId: string
  tag: TagName
  leftMs: number
}

/** Opens an empty queue. */
export function openExitClaims({ platform, nowMs, claim, log }: ExitClaimsParts): ExitClaims {
  const { clock, timers } = platform
  let waiting: Waiting[] = []
  const done = new Map<string, number>()
  let underWay: Promise<void> | undefined
  let timer: Cancel | undefined
  let isStopped = false

  function remember(tag: string): void {
    const [oldest] = done.keys()
    if (done.size >= REMEMBERED_LIMIT && oldest !== undefined) done.delete(oldest)
    done.delete(tag)
    done.set(tag, clock.elapsed())
  }

  const isDone = (tag: string) => clock.elapsed() - (done.get(tag) ?? Number.NEGATIVE_INFINITY) < REMEMBERED_MS

  async function work(): Promise<void> {
    const later: Waiting[] = []
    for (let next = waiting.shift(); next && !isStopped; next = waiting.shift()) {
      if (nowMs() - next.leftMs > CLAIM_TIMEOUT_MS || isDone(gateTagOf(next.tag))) continue
      // If the claim throws, the agent retries it later. A full disk is expected, so that error is not logged.
      const became = await claim(next.deviceId, next.tag, next.leftMs).catch((error: unknown) => {
        if (!(error instanceof LedgerFull))
          log.error({ err: error, deviceId: next.deviceId }, 'the exit right of a tag could not be claimed')
        return 'later' as const
      })
      if (became === 'later') later.push(next)
      else remember(gateTagOf(next.tag))
    }
    waiting = [...later, ...waiting]
  }

  function start(): void {
    if (underWay || isStopped) return
    timer?.()
    timer = undefined
    underWay = work().finally(() => {
      underWay = undefined
      if (waiting.length > 0 && !isStopped) timer ??= timers.after(RETRY_MS, start)
    })
  }

  return {
    add(deviceId, tag, leftMs) {
      if (isStopped || waiting.length >= WAITING_LIMIT || isDone(gateTagOf(tag))) return
      waiting.push({ deviceId, tag, leftMs })
      start()
    },
    async stop() {
      isStopped = true
      timer?.()
      waiting = []
      await underWay
    },
  }
}
